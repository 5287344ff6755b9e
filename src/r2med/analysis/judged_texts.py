"""Judge texts that answer questions, by an LLM that first gets planted controls."""

from __future__ import annotations

from collections.abc import Sequence
from math import nan

from r2med.analysis.llm_questions import Questions
from r2med.assessment.answers.answer_controls import answer_controls, references_of
from r2med.assessment.panels.panel import Panel
from r2med.assessment.panels.planted_controls import plant
from r2med.assessment.panels.raters import LLMRater
from r2med.assessment.rubrics.item import Item
from r2med.assessment.rubrics.rubric import RUBRICS
from r2med.data.dataset import Query

GRADES = "answer-grade"
"""The rubric of the judge, and the name of its questions in plans and notes."""


def judge_texts(items: Sequence[tuple[str, Query, str]], questions: Questions) -> tuple[list[float], list[str]]:
    """Judge items (dataset, query, text): 1 is right, 0 wrong, NaN undecided. Return this with notes.

    The LLM first gets planted controls made from these texts. Raises UserError if it fails them.
    """
    verdicts, notes = _ratings(items, questions) if items else ({}, [])
    given = (verdicts.get(number) for number in range(len(items)))
    return [nan if is_right is None else float(is_right) for is_right in given], notes


def _ratings(items: Sequence[tuple[str, Query, str]], questions: Questions) -> tuple[dict[int, bool | None], list[str]]:
    """Return the number of an item -> the verdict of the LLM, and notes. A rehearsal asks nothing."""
    rubric = RUBRICS[GRADES]
    pool = [
        Item((q.id, ""), {"question": q.text, "reference": q.answer, "text": text}, rubric.name, source=dataset)
        for dataset, q, text in items
    ]
    rater = LLMRater.of(questions.chat, rubric, questions.tallies[GRADES])
    names = list(dict.fromkeys(dataset for dataset, _, _ in items))
    references = {name: references_of(query for dataset, query, _ in items if dataset == name) for name in names}
    controls = plant(answer_controls(pool, references), " ".join(names))
    panel = Panel([rater], controls, untested=True)
    if questions.rehearsal:
        questions.add_preview(GRADES, rater.preview(panel.items(pool)))
        return {}, []
    test = panel.test(rater, "answers")
    rated = panel.rate(rater, pool)
    notes = [f"{rater.name} is a judge that was not tested: the texts give too few controls."]
    verdicts = {number: rater.says_yes(rating) for number, rating in rated.ratings.items()}
    return verdicts, [] if test.is_enough else notes
