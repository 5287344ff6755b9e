"""Agreement between raters beyond chance: Cohen's and Fleiss' κ, Krippendorff's α, each with a jackknife interval.

Ratings are units × raters, with NaN for a missing rating. Every coefficient is a formula over sums of one term per
unit, so that leaving out each unit in turn is one subtraction.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from r2med.measure.scores import Floats
from r2med.measure.significance import ALPHA, EQUALITY_MARGIN
from r2med.pages.estimate import Estimate

Level = Literal["nominal", "ordinal", "interval"]
"""The distance between two values: equal or not; the number of ratings between them; or their difference."""

FEWEST_UNITS = 30
"""Number of units below which no interval is given, because it would not keep its level
(`tests/measure/test_agreement_intervals.py`)."""


@dataclass(frozen=True)
class Agreement(Estimate):
    """A coefficient with its interval. Its value is NaN if it is not defined, for example if all ratings are equal.

    Fewer than `FEWEST_UNITS` units have no interval.
    """

    units: int = 0
    """Number of units with at least two ratings."""


def cohen_kappa(ratings: Floats) -> Agreement:
    """Return Cohen's κ of two raters over the units that both rated."""
    if ratings.shape[1] != 2:
        raise ValueError(f"Cohen's κ needs two raters, not {ratings.shape[1]}")
    both = ratings[~np.isnan(ratings).any(axis=1)]
    values, codes = np.unique(both, return_inverse=True)
    size = len(values)
    first, second = codes.reshape(both.shape).T
    pairs = np.eye(size * size)[first * size + second]

    def kappa(sums: Floats) -> Floats:
        table = sums.reshape(-1, size, size) / sums.sum(axis=1)[:, None, None]
        observed = np.trace(table, axis1=1, axis2=2)
        expected = (table.sum(axis=2) * table.sum(axis=1)).sum(axis=1)
        return _beyond_chance(1 - observed, 1 - expected)

    return _with_interval(pairs, kappa)


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


def _distances(values: Floats, totals: Floats, level: Level) -> Floats:
    """Return the squared distance of every pair of values, for each row of totals."""
    if level == "nominal":
        return np.broadcast_to(1 - np.eye(len(values)), (len(totals), len(values), len(values)))
    # The number of ratings between two values is the difference of their middle ranks.
    places = np.cumsum(totals, axis=1) - totals / 2 if level == "ordinal" else np.tile(values, (len(totals), 1))
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


def _with_interval(parts: Floats, formula: Callable[[Floats], Floats]) -> Agreement:
    """Return the coefficient of the summed terms of all units, with Student's interval of its jackknife error."""
    units = len(parts)
    if units == 0:
        return Agreement(np.nan)
    total = parts.sum(axis=0, keepdims=True)
    value = float(formula(total)[0])
    # If all units are alike, they do not show how other units would differ.
    without = formula(total - parts) if units >= FEWEST_UNITS else np.full(units, np.nan)
    spread = float(np.var(without))
    if not spread > EQUALITY_MARGIN**2:
        return Agreement(value, units=units)
    from scipy.stats import t as student

    reach = float(student.ppf(1 - ALPHA / 2, units - 1)) * np.sqrt((units - 1) * spread)
    return Agreement(value, float(max(-1.0, value - reach)), float(min(1.0, value + reach)), units)
