"""The controls of a judge in a build: planted candidates, and passages that the source itself cites.

What the source cites stays a candidate with a label. Planted controls never become documents.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from r2med.assessment.panels.planted_controls import Control, can_test, in_turn, plant
from r2med.assessment.rubrics.item import Item
from r2med.assessment.rubrics.rubric import Rubric
from r2med.construction.items import Candidate
from r2med.construction.labels import CITED, CONTROLS
from r2med.construction.steps.full_candidates import FullCandidate
from r2med.construction.steps.pool_contributions import SOURCE
from r2med.models.llm.llm_cards import LLMCard


def is_cited(candidate: Candidate) -> bool:
    """Return True if the source of the question itself cites the passage."""
    return not candidate.control and any(found.member == SOURCE for found in candidate.found)


def build_controls(candidates: Sequence[FullCandidate], rubric: Rubric, judge: LLMCard) -> tuple[Control, ...]:
    """Return the controls for one judge. Half of them are to be answered yes.

    If they cannot test a judge, all that there are count as controls.
    """
    found: dict[str, list[Control]] = {
        kind: in_turn(each) for kind, each in _by_kind(candidates, rubric, judge).items()
    }
    planted = plant(found, "build")
    return planted if can_test(planted) else tuple(each for kind in found.values() for each in kind)


def _by_kind(candidates: Sequence[FullCandidate], rubric: Rubric, judge: LLMCard) -> dict[str, list[list[Control]]]:
    """Return kind -> the controls of each question.

    Of a page that the source cites, the passage counts that comes first among the candidates: it has most proposals. A
    passage that the judge itself wrote does not count.
    """
    found: dict[str, dict[str, list[Control]]] = defaultdict(lambda: defaultdict(list))
    cited: set[tuple[str, str]] = set()
    for full in candidates:
        candidate, page = full.candidate, (full.question.id, full.chunk.page)
        if candidate.control and candidate.author != judge.model:
            kind = candidate.control
        elif is_cited(candidate) and page not in cited:
            cited.add(page)
            kind = CITED
        else:
            continue
        yes = rubric.controls.get(kind, CONTROLS.get(kind, False))
        item = Item((candidate.question, candidate.chunk), {"text": full.text}, rubric.name)
        found[kind][full.question.id].append(Control(item, kind, yes))
    return {kind: list(each.values()) for kind, each in found.items()}
