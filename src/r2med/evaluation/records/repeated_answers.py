"""Answer records of several repeats as one: every value is the mean over the repeats."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean

from r2med.evaluation.records.answer_record import AnswerRecord

Values = Mapping[str, float]


def mean_of_repeats(records: Iterable[AnswerRecord]) -> AnswerRecord:
    """Return the record of the lowest repeat with the means over all repeats. Its answers and costs are its own.

    A question has a value of a measure, or of its ranking, if it has one in every repeat.
    """
    first, *others = sorted(records, key=lambda record: record.repeat)
    if not others:
        return first
    every = [first, *others]
    return first.model_copy(
        update={
            "mean": {
                condition: common_means([each.mean.get(condition, {}) for each in every]) for condition in first.mean
            },
            "per_query": {
                condition: {
                    query: common_means([each.per_query.get(condition, {}).get(query, {}) for each in every])
                    for query in queries
                }
                for condition, queries in first.per_query.items()
            },
            "retrieval": common_means([each.retrieval for each in every]),
        }
    )


def common_means(values: Sequence[Values]) -> dict[str, float]:
    """Return the mean of every value that all runs have."""
    return {name: fmean(each[name] for each in values) for name in values[0] if all(name in each for each in values)}
