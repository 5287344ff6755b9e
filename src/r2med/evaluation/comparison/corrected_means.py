"""Means over all queries from the labels of an LLM judge, corrected by people's labels for a random sample of queries.

A measure such as nDCG is not linear in single labels, so the unit is the query. The judge labels the pool of every
query, and people label the whole pool of some queries, drawn at random. docs/evidence.md derives the formulas.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from r2med.evaluation.measure.intervals import PRIOR_WEIGHT, tuned_weight, wilson
from r2med.evaluation.measure.scores import Floats
from r2med.evaluation.measure.significance import ALPHA, EQUALITY_MARGIN, Integers
from r2med.foundation.pages.estimate import Estimate

FEWEST_QUERIES = 20
"""Number of queries labelled by people below which no interval is given (`benchmarks/judgements.py`)."""


@dataclass(frozen=True)
class ReviewedQueries:
    """The values of one dataset: of every query by the judge's labels, and of a random sample by people's labels."""

    judge: Floats
    """One value for each query."""
    reviewed: Integers
    """Positions of the queries that people labelled."""
    people: Floats
    """One value for each of these queries."""


@dataclass(frozen=True)
class CorrectedMean(Estimate):
    """A mean over all queries as people's labels would give it, with its interval."""

    queries: int = 0
    """Number of queries."""
    reviewed: int = 0
    """Number of queries that people labelled."""
    weight: float = 0.0
    """Weight of the judge: 0 if only people's labels count, at most 1. With several datasets, the mean."""


@dataclass(frozen=True)
class _DatasetMean:
    value: float
    variance: float
    freedom: float
    weight: float


def corrected_mean(datasets: Sequence[ReviewedQueries], top: float | None = 100.0) -> CorrectedMean | None:
    """Return the unweighted mean over datasets; None if people labelled fewer than two queries of one of them.

    `top` is the largest possible value, and 0 is the smallest. None is for differences of two systems, without bounds.
    The interval is the range to expect with other queries of the same kind. It contains the errors of the judge. No
    interval is given if people labelled fewer than `FEWEST_QUERIES` queries of one dataset.
    """
    if not datasets or any(len(each.people) < 2 for each in datasets):
        return None
    parts = [_best(each, top) for each in datasets]
    value = float(np.mean([part.value for part in parts]))
    if top is not None:
        value = float(np.clip(value, 0, top))
    known = CorrectedMean(
        value,
        queries=sum(len(each.judge) for each in datasets),
        reviewed=sum(len(each.people) for each in datasets),
        weight=float(np.mean([part.weight for part in parts])),
    )
    if any(len(each.people) < FEWEST_QUERIES for each in datasets):
        return known
    variances = np.array([part.variance for part in parts]) / len(parts) ** 2
    variance = float(variances.sum())
    if variance <= EQUALITY_MARGIN**2:
        return known
    # Welch and Satterthwaite: the degrees of freedom of a sum of variances.
    freedom = variance**2 / float((variances**2 / [part.freedom for part in parts]).sum())
    low, high = _interval(value, variance, freedom, top)
    return CorrectedMean(value, low, high, known.queries, known.reviewed, known.weight)


def _best(values: ReviewedQueries, top: float | None) -> _DatasetMean:
    """Return the estimate with the judge, or that of people alone if its interval is not wider."""
    alone = _part(values, 0.0, top)
    weight = tuned_weight(values.judge[values.reviewed], values.people)
    if not weight or len(values.people) < 3:
        return alone
    helped = _part(values, weight, top)
    return helped if _reach(helped) < _reach(alone) else alone


def _part(values: ReviewedQueries, weight: float, top: float | None) -> _DatasetMean:
    queries, reviewed = len(values.judge), len(values.people)
    judge = values.judge[values.reviewed]
    left = values.people - weight * judge
    value = weight * float(values.judge.mean()) + float(left.mean())
    freedom = reviewed - 1 - bool(weight)  # the weight is estimated too
    unexplained = float(((left - left.mean()) ** 2).sum()) / freedom
    if top is not None:
        unexplained = _mixed(unexplained, max(0.0, (mean := float(values.people.mean())) * (top - mean)), reviewed)
    # The judge's part of the spread is known from all queries. The last term is 0 unless the weight was cut to 1.
    shared = float(((judge - judge.mean()) * left).sum()) / freedom
    spread = weight**2 * float(np.var(values.judge, ddof=1)) + unexplained + 2 * weight * shared
    # Other queries would have other values (first term), and people labelled only some of these queries (second).
    variance = max(0.0, spread) / queries + (1 / reviewed - 1 / queries) * unexplained
    return _DatasetMean(value, variance, freedom, weight)


def _mixed(spread: float, largest: float, size: int) -> float:
    """Return a variance with a little of the largest possible one, as in `mean_intervals`."""
    return ((size - 1) * spread + PRIOR_WEIGHT * largest) / (size - 1 + PRIOR_WEIGHT)


def _reach(part: _DatasetMean) -> float:
    from scipy.stats import t as student

    return float(student.ppf(1 - ALPHA / 2, part.freedom) * np.sqrt(part.variance))


def _interval(value: float, variance: float, freedom: float, top: float | None) -> tuple[float, float]:
    from scipy.stats import t as student

    if top is None:
        reach = float(student.ppf(1 - ALPHA / 2, freedom) * np.sqrt(variance))
        return value - reach, value + reach
    share = value / top
    most = share * (1 - share)
    if most <= EQUALITY_MARGIN:
        return value, value
    low, high = top * wilson(np.array(share), np.array(most / (variance / top**2)), freedom)
    return float(low), float(high)
