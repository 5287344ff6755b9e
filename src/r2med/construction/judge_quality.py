"""What LLM judges said beside each other and beside people, and the share of their labels that people accept."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from r2med.assessment.panels.ratings import Ratings
from r2med.assessment.review.reviews import Pair
from r2med.assessment.rubrics.rubric import Verdict
from r2med.construction.items import Judgement
from r2med.construction.labels import LABELLING, Labelling, LabelName
from r2med.evaluation.measure.intervals import wilson
from r2med.foundation.pages.cells import Estimate

SCORES = ("0", "1", "2", "3", "4", "5")
"""The scores of judges."""
LABEL_ORDER: tuple[LabelName, ...] = ("negative", "discarded", "positive")
"""Labels from the lowest to the highest, for coefficients of agreement."""

Decisions = Mapping[Pair, Verdict]
"""Decisions of people, by candidate."""
Confusion = Counter[tuple[LabelName, Verdict]]
"""(label of judges, decision of people) -> number of reviewed candidates."""


def judge_ratings(judgements: Iterable[Judgement], labelling: Labelling = LABELLING) -> dict[str, Ratings]:
    """Return both scores of each judge, and the label that they give. Controls do not count."""
    given = [judgement for judgement in judgements if not judgement.control]

    def ratings(words: Sequence[str], said: Callable[[Judgement], str]) -> Ratings:
        return Ratings.of(words, (((each.question, each.chunk), each.judge, said(each)) for each in given))

    return {
        "relevance": ratings(SCORES, lambda each: str(each.relevance)),
        "support": ratings(SCORES, lambda each: str(each.support)),
        "label": ratings(LABEL_ORDER, lambda each: labelling.name(each.relevance, each.support)),
    }


def judge_confusions(
    judgements: Iterable[Judgement], decisions: Decisions, labelling: Labelling = LABELLING
) -> dict[str, Confusion]:
    """Return judge -> the labels by its own scores against the decisions of people. Controls do not count."""
    confusions: dict[str, Confusion] = defaultdict(Counter)
    for judgement in judgements:
        verdict = decisions.get((judgement.question, judgement.chunk))
        if verdict is not None and not judgement.control:
            confusions[judgement.judge][labelling.name(judgement.relevance, judgement.support), verdict] += 1
    return dict(sorted(confusions.items()))


@dataclass(frozen=True)
class AcceptedShare:
    """The candidates with one label by the judges, and what people decided about those that they reviewed."""

    items: int
    accepted: int
    rejected: int
    undecided: int

    @property
    def reviewed(self) -> int:
        """Number of candidates that people reviewed."""
        return self.accepted + self.rejected + self.undecided

    @property
    def share(self) -> Estimate | None:
        """The share of decided candidates that people accepted, with Wilson's interval; None if none is decided."""
        decided = self.accepted + self.rejected
        if not decided:
            return None
        share = self.accepted / decided
        low, high = wilson(np.array([share]), np.array([decided]))
        return Estimate(share, float(low[0]), float(high[0]))
