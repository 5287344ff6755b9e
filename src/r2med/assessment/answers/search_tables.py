"""The tables of agents that search and answer: the funnel of relevant documents, confidence, path and cost."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from r2med.assessment.answers.answer_scores import (
    ACCURACY,
    BRIER,
    CITATION_RELEVANCE,
    CONFIDENCE,
    STEP_RECALL,
)
from r2med.data.dataset_cards import short_name
from r2med.evaluation.comparison.standings import with_intervals
from r2med.evaluation.measure.calibration import calibration_error
from r2med.evaluation.measure.intervals import difference_intervals, mean_intervals
from r2med.evaluation.measure.significance import SystemPairs
from r2med.evaluation.records.answer_words import SEARCHED
from r2med.evaluation.records.record import Record
from r2med.foundation.core.search_steps import SEARCH_STEPS
from r2med.foundation.pages.cells import Estimate, Value
from r2med.foundation.pages.page import Table

FEWEST_DECIDED = 30
"""Number of decided answers below which the Brier score and confidence minus accuracy have no interval. With 10
answers, their intervals held the truth in only 63 % of samples in the worst case (`benchmarks/coverage.py`): an agent
that is wrong once in ten questions is often right in all ten."""

FUNNEL_NOTE = (
    "Share of the relevant documents of a question that a search returned, whose text was in the conversation, that "
    "the agent opened, cited in its answer, and kept in its list at the end. A step that an agent does not have is "
    "empty. citation precision: the share of the cited documents that are relevant."
)
CONFIDENCE_NOTE = (
    "Over the answers that state a confidence and whose truth is decided. too sure: mean confidence minus accuracy. "
    "Brier: the mean square of the difference of confidence and truth; lower is better. ECE: the expected calibration "
    "error in ten bins. when wrong: the mean confidence of wrong answers. abstained: open answers that, says "
    "the judge, settle on nothing. "
    f"Fewer than {FEWEST_DECIDED} answers give no interval of too sure and Brier, because it would be too narrow."
)
PATH_NOTE = (
    "Means over the questions. repeated: searches for what was searched "
    "before, carried out or refused. new relevant: relevant documents that "
    "a search returned first, per search. guess: share of questions whose reference answer was named in a search "
    "before any document showed it. find: after one did. seconds: those of the LLM."
)


def search_tables(records: Iterable[Record]) -> list[Table]:
    """Return the tables of the records with answers of agents that search; none without such records."""
    searched = [record for record in records if SEARCHED in record.answers.per_query]
    if not searched:
        return []
    return [_funnel(searched), _confidence(searched), _path(searched)]


def values_of(record: Record, measure: str) -> list[float]:
    """Return the values of a measure of an agent's answers, for the questions that have one."""
    return [scores[measure] for scores in record.answers.per_query.get(SEARCHED, {}).values() if measure in scores]


def estimate_of(values: Sequence[float]) -> Estimate | None:
    """Return a mean with its interval; None without values."""
    return with_intervals({"": np.array([values])}, 1.0)[0] if values else None


def too_sure(stated: Sequence[float], right: Sequence[float]) -> Estimate | None:
    """Return mean confidence minus accuracy, paired by question, with its interval; None without values.

    Fewer than `FEWEST_DECIDED` answers have no interval.
    """
    if not stated:
        return None
    value = float(np.mean(stated) - np.mean(right))
    if len(stated) < FEWEST_DECIDED:
        return Estimate(value)
    rows, pair = {"": np.array([stated, right])}, SystemPairs(np.array([0]), np.array([1]))
    low, high = np.clip(difference_intervals(rows, pair), -1.0, 1.0)[:, 0].tolist()
    if np.isnan(low):  # Equal differences have no variance. A mean of equal values in a range has an interval.
        low, high = (2 * mean_intervals({"": np.full((1, len(stated)), (value + 1) / 2)}, 1.0)[:, 0] - 1).tolist()
    return Estimate(value, low, high)


def brier_score(values: Sequence[float]) -> Estimate | None:
    """Return the mean of Brier scores with its interval; None without values, no interval below `FEWEST_DECIDED`."""
    found = estimate_of(values)
    return Estimate(found.value) if found and len(values) < FEWEST_DECIDED else found


def believed(record: Record) -> tuple[list[float], list[float]]:
    """Return the confidences and the truth, 0 or 1, of the answers of an agent for which both are known."""
    rows = [
        scores
        for scores in record.answers.per_query.get(SEARCHED, {}).values()
        if CONFIDENCE in scores and ACCURACY in scores
    ]
    return [row[CONFIDENCE] for row in rows], [row[ACCURACY] for row in rows]


def calibration_of(record: Record) -> dict[str, Any]:
    """Return what the confidence of an agent is worth, as values between -1 and 1. Unknown ones are None."""
    stated, right = believed(record)
    wrong = [each for each, truth in zip(stated, right, strict=True) if not truth]
    return {
        "answers": len(stated),
        "confidence": estimate_of(stated),
        "too_sure": too_sure(stated, right),
        "brier": brier_score(values_of(record, BRIER)),
        "ece": calibration_error(stated, right),
        "when_wrong": float(np.mean(wrong)) if wrong else None,
    }


def _heads(records: Sequence[Record]) -> list[str]:
    return ["dataset", "agent", *(["repeat"] if any(record.repeat for record in records) else [])]


def _where(record: Record, heads: Sequence[str]) -> list[Value]:
    return [short_name(record.dataset.name), record.system, *([str(record.repeat)] if "repeat" in heads else [])]


def _funnel(records: Sequence[Record]) -> Table:
    rows, where = [], _heads(records)
    for record in records:
        steps = [estimate_of(values_of(record, STEP_RECALL[step])) for step in SEARCH_STEPS]
        precision = estimate_of(values_of(record, CITATION_RELEVANCE))
        rows.append([*_where(record, where), len(record.queries), *steps, precision])
    heads = (*where, "questions", *SEARCH_STEPS, "citation precision")
    return Table.of(heads, rows, "Where relevant documents are lost", FUNNEL_NOTE, name="funnel")


def _confidence(records: Sequence[Record]) -> Table:
    rows, where = [], _heads(records)
    for record in records:
        facts = calibration_of(record)
        abstained, asked = record.answers.abstained(SEARCHED), sum(record.answers.statuses[SEARCHED].values())
        named = ("answers", "confidence", "too_sure", "brier", "ece", "when_wrong")
        rows.append([*_where(record, where), *(_rounded(facts[name]) for name in named), abstained, asked])
    heads = ("answers", "confidence", "too sure", "Brier", "ECE", "when wrong", "abstained", "asked")
    return Table.of((*where, *heads), rows, "Confidence", CONFIDENCE_NOTE, name="confidence")


def _path(records: Sequence[Record]) -> Table:
    where = _heads(records)
    named = ("searches", "repeated", "new_relevant", "guess", "find", "turns", "tokens", "dollars", "seconds")
    rows = [
        [*_where(record, where), *(_rounded(record.answers.searching.get(name)) for name in named)]
        for record in records
    ]
    heads = (*where, *(name.replace("_", " ") for name in named))
    return Table.of(heads, rows, "Path and cost", PATH_NOTE, name="path")


def _rounded(value: Any) -> Any:
    return round(value, 6) if isinstance(value, float) else value
