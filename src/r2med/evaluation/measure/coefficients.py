"""Agreement between raters beyond chance: Cohen's and Fleiss' κ, Krippendorff's α, Gwet's AC1 and AC2, with intervals.

Ratings are units × raters, with NaN for a missing rating. Every coefficient is a formula over sums of one term per
unit, so that leaving out each unit in turn (the jackknife) is one subtraction.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, assert_never

import numpy as np

from r2med.evaluation.measure.intervals import PRIOR_WEIGHT, mean_intervals, wilson
from r2med.evaluation.measure.scores import Floats
from r2med.evaluation.measure.significance import ALPHA, EQUALITY_MARGIN
from r2med.foundation.pages.cells import Estimate

Level = Literal["nominal", "ordinal", "interval"]
"""The distance between two values: equal or not; the number of ratings between them; or their difference."""

FEWEST_UNITS = 30
"""Number of units below which α and κ have no interval, because it would not keep its level
(`tests/evaluation/measure/test_agreement_intervals.py`)."""

FEWEST_BOUNDED_UNITS = 10
"""Number of units below which Gwet's AC1 has no interval. It heeds the bounds of the coefficient, and keeps its level
with 10 units (`benchmarks/coverage.py`). Those of weighted κ and of AC2 do not: with 10 units they held the truth in
only 80 % of samples in the worst case."""

MAX_FISHER_KAPPA = 1 - 1e-6
"""Largest κ to which Fisher's transformation is applied. It is infinite for 1."""


@dataclass(frozen=True)
class Agreement(Estimate):
    """A coefficient with its interval. Its value is NaN if it is not defined, for example if all ratings are equal.

    Fewer than `FEWEST_UNITS` units have no interval; for Gwet's AC1, fewer than `FEWEST_BOUNDED_UNITS`.
    """

    units: int = 0
    """Number of units with at least two ratings."""


def observed_agreement(ratings: Floats) -> Agreement:
    """Return how often two raters of a unit agree, without any correction for chance; NaN if no unit has two.

    The interval is that of the mean over units, which is Wilson's for two raters.
    """
    counts, _ = _counts(ratings)
    if not len(counts):
        return Agreement(np.nan)
    raters = counts.sum(axis=1)
    agreeing = (counts * (counts - 1)).sum(axis=1) / (raters * (raters - 1))
    low, high = mean_intervals({"": agreeing[None]}, top=1.0)[:, 0].tolist()
    if np.isnan(low):
        return Agreement(float(agreeing.mean()), units=len(counts))
    return Agreement(float(agreeing.mean()), low, high, len(counts))


def cohen_kappa(ratings: Floats, weights: Literal["quadratic"] | None = None) -> Agreement:
    """Return Cohen's κ of two raters over the units that both rated.

    With quadratic weights, a disagreement counts by the squared difference of the two values.
    """
    if ratings.shape[1] != 2:
        raise ValueError(f"Cohen's κ needs two raters, not {ratings.shape[1]}")
    both = ratings[~np.isnan(ratings).any(axis=1)]
    values, codes = np.unique(both, return_inverse=True)
    size = len(values)
    first, second = codes.reshape(both.shape).T
    pairs = np.eye(size * size)[first * size + second]
    apart = np.square(values[:, None] - values) if weights else 1 - np.eye(size)

    def kappa(sums: Floats) -> Floats:
        table = sums.reshape(-1, size, size) / sums.sum(axis=1)[:, None, None]
        observed = (table * apart).sum(axis=(1, 2))
        expected = np.einsum("bi,bj,ij->b", table.sum(axis=2), table.sum(axis=1), apart)
        return _beyond_chance(observed, expected)

    return _with_fisher_interval(pairs, kappa) if weights else _with_interval(pairs, kappa)


def fleiss_kappa(ratings: Floats) -> Agreement:
    """Return Fleiss' κ of any number of raters. If ratings are missing, each unit uses its own pairs."""
    counts, _ = _counts(ratings)
    raters = counts.sum(axis=1, keepdims=True)
    agreeing = (counts * (counts - 1)).sum(axis=1, keepdims=True) / (raters * (raters - 1))

    def kappa(sums: Floats) -> Floats:
        units, observed, totals = sums[:, 0], sums[:, 1], sums[:, 2:]
        shares = totals / totals.sum(axis=1, keepdims=True)
        return _beyond_chance(1 - observed / units, 1 - (shares**2).sum(axis=1))

    return _with_interval(np.hstack([np.ones_like(raters), agreeing, counts]), kappa)


def krippendorff_alpha(ratings: Floats, level: Level = "nominal") -> Agreement:
    """Return Krippendorff's α of any number of raters. Ratings may be missing."""
    counts, values = _counts(ratings)
    size = len(values)
    raters = counts.sum(axis=1)[:, None, None]
    # The coincidences of a unit are its pairs of ratings. No rating is paired with itself.
    pairs = (counts[:, :, None] * counts[:, None, :] - counts[:, :, None] * np.eye(size)) / (raters - 1)

    def alpha(sums: Floats) -> Floats:
        coincidences = sums.reshape(-1, size, size)
        totals = coincidences.sum(axis=2)
        apart = _distances(values, totals, level)
        observed = (coincidences * apart).sum(axis=(1, 2))
        expected = np.einsum("bi,bj,bij->b", totals, totals, apart) / (totals.sum(axis=1) - 1)
        return _beyond_chance(observed, expected)

    return _with_interval(pairs.reshape(len(counts), size * size), alpha)


def gwet_ac1(ratings: Floats, categories: int | None = None, weights: Literal["quadratic"] | None = None) -> Agreement:
    """Return Gwet's AC1 of any number of raters; with quadratic weights, AC2. Ratings may be missing.

    Chance agreement follows from how hard units are to rate, not from how often each value is given. So AC1 stays high
    if raters agree and nearly all units have one value, where κ and α fall towards 0. `categories` is the number of
    values that raters could choose. By default it is the number of values that occur, and at least 2. With weights, a
    disagreement counts by the squared difference of the two values, and `categories` values are 0, 1, 2 and so on.
    """
    given = ratings[~np.isnan(ratings).all(axis=1)]
    if not len(given):
        return Agreement(np.nan)
    values = np.unique(given[~np.isnan(given)])
    size = categories or max(2, len(values))
    if weights and categories:
        values = np.arange(categories, dtype=np.float64)
    near = _nearness(values) if weights else np.eye(len(values))
    every = float(near.sum()) if weights and len(values) > 1 else float(size)
    counts = (given[:, :, None] == values).sum(axis=1).astype(np.float64)
    raters = counts.sum(axis=1, keepdims=True)
    paired = (raters > 1).astype(np.float64)
    agreeing = (counts * (counts @ near - 1)).sum(axis=1, keepdims=True) / np.maximum(raters * (raters - 1), 1)

    def ac1(sums: Floats) -> Floats:
        shares = sums[:, 3:] / sums[:, :1]
        chance = every / size * (shares * (1 - shares)).sum(axis=1) / (size - 1)
        with np.errstate(divide="ignore", invalid="ignore"):
            return _beyond_chance(1 - sums[:, 2] / sums[:, 1], 1 - chance)

    parts = np.hstack([np.ones_like(raters), paired, agreeing, counts / raters])
    value, variance = _jackknife(parts, ac1)
    most_chance = every / size**2  # if all values are given equally often
    if weights and (units := _paired(given)) < FEWEST_UNITS:
        return Agreement(value, units=units)
    return _with_score_interval(value, variance, _paired(given), lowest=-most_chance / (1 - most_chance))


def _nearness(values: Floats) -> Floats:
    """Return the quadratic weight of each pair of values: 1 for equal ones, 0 for the two that are farthest apart."""
    apart = np.square(values[:, None] - values)
    return 1 - apart / (apart.max() or 1.0)


def _distances(values: Floats, totals: Floats, level: Level) -> Floats:
    """Return the squared distance of every pair of values, for each row of totals."""
    match level:
        case "nominal":
            return np.broadcast_to(1 - np.eye(len(values)), (len(totals), len(values), len(values)))
        case "ordinal":  # The number of ratings between two values is the difference of their middle ranks.
            places = np.cumsum(totals, axis=1) - totals / 2
        case "interval":
            places = np.tile(values, (len(totals), 1))
        case other:
            assert_never(other)
    return np.square(places[:, :, None] - places[:, None, :])


def _counts(ratings: Floats) -> tuple[Floats, Floats]:
    """Return the counts of values, units × values, and the values. Units with one rating are left out."""
    paired = ratings[(~np.isnan(ratings)).sum(axis=1) >= 2]
    values = np.unique(paired[~np.isnan(paired)])
    return (paired[:, :, None] == values).sum(axis=1).astype(np.float64), values


def _beyond_chance(observed: Floats, expected: Floats) -> Floats:
    """Return 1 - observed / expected disagreement; NaN if the expected disagreement is 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(expected > 1e-12, 1 - observed / expected, np.nan)


def _paired(ratings: Floats) -> int:
    """Return the number of units with at least two ratings."""
    return int(((~np.isnan(ratings)).sum(axis=1) >= 2).sum())


def _jackknife(parts: Floats, formula: Callable[[Floats], Floats]) -> tuple[float, float]:
    """Return the coefficient of the summed terms of all units, and its variance by leaving out each unit in turn."""
    total = parts.sum(axis=0, keepdims=True)
    without = (formula(total - parts) if len(parts) > 1 else np.array([np.nan]))[None]
    units = without.shape[1]
    moved = without - without.mean(axis=1, keepdims=True)
    return float(formula(total)[0]), float((units - 1) / units * (moved @ moved.T)[0, 0])


def _with_interval(parts: Floats, formula: Callable[[Floats], Floats]) -> Agreement:
    """Return the coefficient of the summed terms of all units, with Student's interval of its jackknife error."""
    units = len(parts)
    if units == 0:
        return Agreement(np.nan)
    value, variance = _jackknife(parts, formula)
    # If all units are alike, they do not show how other units would differ.
    if units < FEWEST_UNITS or not variance > (units - 1) * EQUALITY_MARGIN**2:
        return Agreement(value, units=units)
    from scipy.stats import t as student

    reach = float(student.ppf(1 - ALPHA / 2, units - 1)) * np.sqrt(variance)
    return Agreement(value, float(max(-1.0, value - reach)), float(min(1.0, value + reach)), units)


def _with_fisher_interval(parts: Floats, formula: Callable[[Floats], Floats]) -> Agreement:
    """Return a coefficient like a correlation, with Student's interval of Fisher's transformation of it.

    On few units of many values, Student's interval of the coefficient itself is too narrow.
    """
    units = len(parts)
    value = float(formula(parts.sum(axis=0, keepdims=True))[0]) if units else np.nan
    if units < FEWEST_UNITS:
        return Agreement(value, units=units)
    centre, variance = _jackknife(
        parts, lambda sums: np.arctanh(np.clip(formula(sums), -MAX_FISHER_KAPPA, MAX_FISHER_KAPPA))
    )
    if not variance > (units - 1) * EQUALITY_MARGIN**2:
        return Agreement(value, units=units)
    from scipy.stats import t as student

    reach = float(student.ppf(1 - ALPHA / 2, units - 1)) * np.sqrt(variance)
    return Agreement(value, float(np.tanh(centre - reach)), float(np.tanh(centre + reach)), units)


def _with_score_interval(value: float, variance: float, units: int, lowest: float) -> Agreement:
    """Return a coefficient between `lowest` and 1 with the score interval of means (`intervals.mean_intervals`).

    It keeps its level on few units, and it exists if all raters agree on all units, where Student's does not.
    """
    if units < FEWEST_BOUNDED_UNITS or np.isnan(value) or np.isnan(variance):
        return Agreement(value, units=units)
    width = 1 - lowest
    share = float(np.clip((value - lowest) / width, 0, 1))
    most = share * (1 - share)
    single = units * variance / width**2  # the variance of one unit
    mixed = ((units - 1) * single + PRIOR_WEIGHT * most) / (units - 1 + PRIOR_WEIGHT)
    at_bound = most <= EQUALITY_MARGIN
    size, freedom = (units, np.inf) if at_bound else (most / mixed * units, units - 1)
    low, high = (lowest + width * wilson(np.array(share), np.array(size), freedom)).tolist()
    return Agreement(value, low, high, units)
