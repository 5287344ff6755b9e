"""95 % intervals of means and of differences that keep their level on few queries. All of them are closed forms.

The mean of values between 0 and `top` has a score interval: Wilson's, with the variance that was seen in the place of a
proportion's, and Student's t in the place of the normal quantile. For values that are only 0 or `top` it is Wilson's
interval itself. Differences, which have no such bounds near, have Student's interval.
"""

from __future__ import annotations

import numpy as np

from r2med.measure.scores import Floats
from r2med.measure.significance import ALPHA, SAME, Pairs, Values, means, pair_variances, welch

FEWEST = 5
"""Values below which no interval is given: their spread says too little about the spread of others."""


PRIOR = 0.1
"""Queries' worth of the largest possible variance that a sample's is mixed with: few values near a bound show too
little of it. With 0.1, chosen on the grid of tests/measure, the mean coverage of that grid is at least 93 %."""


def mean_intervals(values: Values, top: float | None = 100.0) -> Floats:
    """Return low and high of each system's figure; NaN where no interval is given.

    `top` is the largest value that is possible, 0 the smallest; None if there are no such bounds. No interval is given
    for fewer than `FEWEST` values, if a dataset has one query only, or if values without bounds are all the same.
    """
    if top is not None:  # sums of shares may pass their bound by a rounding error
        values = {dataset: np.clip(rows, 0, top) for dataset, rows in values.items()}
    figures = means(values)
    if not _enough(values):
        return np.full((2, len(figures)), np.nan)
    sizes = np.array([rows.shape[1] for rows in values.values()], dtype=np.float64)
    spreads = np.array([rows.var(axis=1, ddof=1) for rows in values.values()])
    if top is None:
        return _student(figures, *welch(spreads, sizes))
    largest = np.array([(mean := rows.mean(axis=1)) * (top - mean) for rows in values.values()])
    weight = (sizes - 1)[:, None]
    variance, freedom = welch((weight * spreads + PRIOR * largest) / (weight + PRIOR), sizes)
    # A proportion's variance follows from the proportion: it needs no correction for a sample, and no Student's t.
    binary = np.all([((rows == 0) | (rows == top)).all(axis=1) for rows in values.values()], axis=0)
    plain, _ = welch(spreads * ((sizes - 1) / sizes)[:, None], sizes)
    share = figures / top
    most = share * (1 - share)
    at_bound = binary & (most <= SAME)
    same_size = len(sizes) ** 2 / (1 / sizes).sum()
    with np.errstate(divide="ignore", invalid="ignore"):
        size = np.where(at_bound, same_size, most / (np.where(binary, plain, variance) / top**2))
    return top * wilson(share, size, np.where(binary, np.inf, freedom))


def difference_intervals(values: Values, pairs: Pairs) -> Floats:
    """Return low and high of each pair's difference, by the stratified paired t-test; NaN where none is given."""
    difference = pairs.differences(means(values))
    if not _enough(values):
        return np.full((2, len(difference)), np.nan)
    sizes = np.array([rows.shape[1] for rows in values.values()], dtype=np.float64)
    spreads = np.array([pair_variances(rows, pairs) for rows in values.values()]).reshape(len(sizes), -1)
    return _student(difference, *welch(spreads, sizes))


def wilson(share: Floats, size: Floats, freedom: Floats | float = np.inf) -> Floats:
    """Return low and high of shares that were seen in samples of these sizes (Wilson's score interval)."""
    from scipy.stats import t as student

    z = student.ppf(1 - ALPHA / 2, freedom)
    centre = (share + z * z / (2 * size)) / (1 + z * z / size)
    reach = z / (1 + z * z / size) * np.sqrt(share * (1 - share) / size + z * z / (4 * size * size))
    return np.asarray(np.clip([centre - reach, centre + reach], 0.0, 1.0))


def _enough(values: Values) -> bool:
    sizes = [rows.shape[1] for rows in values.values()]
    return bool(sum(sizes) >= FEWEST and min(sizes) > 1)


def _student(figures: Floats, variance: Floats, freedom: Floats) -> Floats:
    from scipy.stats import t as student

    reach = np.where(variance > SAME**2, student.ppf(1 - ALPHA / 2, freedom) * np.sqrt(variance), np.nan)
    return np.array([figures - reach, figures + reach])
