"""Compute 95 % intervals of means and of differences. They are closed forms and keep their level on few queries.

The mean of values between 0 and `top` has a score interval. It is Wilson's interval with the observed variance instead
of that of a proportion, and Student's t instead of the normal quantile. If all values are 0 or `top`, it is Wilson's
interval itself. Differences of two systems on the same queries have no near bounds, so they have Student's interval.
"""

from __future__ import annotations

import numpy as np

from r2med.evaluation.measure.run_variance import RunSpread, with_shift
from r2med.evaluation.measure.scores import Floats
from r2med.evaluation.measure.significance import (
    ALPHA,
    EQUALITY_MARGIN,
    SystemPairs,
    Values,
    means,
    pair_variance,
    welch,
)

FEWEST_VALUES = 5
"""Number of values below which no interval is given: their spread says too little about the spread of others."""


PRIOR_WEIGHT = 0.1
"""Weight, in queries, of the largest possible variance that is mixed into the variance of a sample. A few values near
a bound show too little variance. With 0.1, chosen on the grid of tests/evaluation/measure, the mean coverage of that
grid is at least 93 %."""


def mean_intervals(values: Values, top: float | None = 100.0, spread: RunSpread | None = None) -> Floats:
    """Return low and high of each system's mean; NaN if no interval is given.

    `top` is the largest possible value, and 0 is the smallest; None means that values have no bounds. No interval is
    given for fewer than `FEWEST_VALUES` values, if a dataset has only one query, or if values without bounds are equal.
    With `spread`, values are means over runs, and the intervals also contain the chance of the runs where it is known.
    """
    if top is not None:  # sums of shares may exceed the bound by a rounding error
        values = {dataset: np.clip(rows, 0, top) for dataset, rows in values.items()}
    figures = means(values)
    if not has_intervals(values):
        return np.full((2, len(figures)), np.nan)
    sizes = np.array([rows.shape[1] for rows in values.values()], dtype=np.float64)
    spreads = np.array([rows.var(axis=1, ddof=1) for rows in values.values()])
    if top is None:
        return _student(figures, *_with_runs(*welch(spreads, sizes), spread))
    largest = np.array([(mean := rows.mean(axis=1)) * (top - mean) for rows in values.values()])
    weight = (sizes - 1)[:, None]
    by_queries = welch((weight * spreads + PRIOR_WEIGHT * largest) / (weight + PRIOR_WEIGHT), sizes)
    variance, freedom = _with_runs(*by_queries, spread)
    # The variance of a proportion follows from the proportion. It needs no sample correction and no Student's t.
    # Sums of shares may miss the bound by a rounding error, hence the margin.
    near = [(rows <= EQUALITY_MARGIN) | (rows >= top - EQUALITY_MARGIN) for rows in values.values()]
    binary = np.all([rows.all(axis=1) for rows in near], axis=0)
    plain, _ = welch(spreads * ((sizes - 1) / sizes)[:, None], sizes)
    share = figures / top
    most = share * (1 - share)
    at_bound = binary & (most <= EQUALITY_MARGIN)
    same_size = len(sizes) ** 2 / (1 / sizes).sum()
    with np.errstate(divide="ignore", invalid="ignore"):
        size = np.where(at_bound, same_size, most / (np.where(binary, plain, variance) / top**2))
    return top * wilson(share, size, np.where(binary, np.inf, freedom))


def _with_runs(variance: Floats, freedom: Floats, spread: RunSpread | None) -> tuple[Floats, Floats]:
    return (variance, freedom) if spread is None else with_shift(variance, freedom, spread.shift, spread.loss())


def difference_intervals(
    values: Values, pairs: SystemPairs, spread: RunSpread | None = None, alpha: float = ALPHA
) -> Floats:
    """Return low and high of each pair's difference, by the stratified paired t-test; NaN if no interval is given.

    An interval misses the true difference in a share `alpha` of samples.
    """
    difference = pairs.differences(means(values))
    if not has_intervals(values):
        return np.full((2, len(difference)), np.nan)
    return _student(difference, *pair_variance(values, pairs, spread), alpha)


def group_difference_intervals(first: Floats, second: Floats, top: float | None = 100.0) -> Floats:
    """Return low and high of the first mean minus the second, for two separate groups of queries (rows × queries).

    The intervals of the two means are combined (MOVER, Zou and Donner 2008; Newcombe 1998 for shares). Near a bound
    they are not symmetric, which Welch's t-test ignores. NaN if one of the means has no interval.
    """
    (low, high), (other_low, other_high) = (mean_intervals({"": rows}, top) for rows in (first, second))
    mean, other = first.mean(axis=1), second.mean(axis=1)
    down = np.sqrt((mean - low) ** 2 + (other_high - other) ** 2)
    up = np.sqrt((high - mean) ** 2 + (other - other_low) ** 2)
    return np.array([mean - other - down, mean - other + up])


def wilson(share: Floats, size: Floats, freedom: Floats | float = np.inf) -> Floats:
    """Return low and high of shares observed in samples of these sizes (Wilson's score interval)."""
    from scipy.stats import t as student

    z = student.ppf(1 - ALPHA / 2, freedom)
    centre = (share + z * z / (2 * size)) / (1 + z * z / size)
    reach = z / (1 + z * z / size) * np.sqrt(share * (1 - share) / size + z * z / (4 * size * size))
    return np.asarray(np.clip([centre - reach, centre + reach], 0.0, 1.0))


def has_intervals(values: Values) -> bool:
    """Return True if there are enough queries for intervals."""
    sizes = [rows.shape[1] for rows in values.values()]
    return bool(sum(sizes) >= FEWEST_VALUES and min(sizes) > 1)


def _student(figures: Floats, variance: Floats, freedom: Floats, alpha: float = ALPHA) -> Floats:
    from scipy.stats import t as student

    reach = np.where(variance > EQUALITY_MARGIN**2, student.ppf(1 - alpha / 2, freedom) * np.sqrt(variance), np.nan)
    return np.array([figures - reach, figures + reach])
