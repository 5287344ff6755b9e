"""Compute what retrieval is worth to answers: the share of a gap that is closed, and the correlation of two measures.

Values are dataset -> rows × questions, and means are unweighted means of the datasets' means, as in `significance`.
`benchmarks/answer_worth.py` measures how often the intervals contain the truth.
"""

from __future__ import annotations

import numpy as np

from r2med.evaluation.measure.run_variance import RunSpread, with_shift
from r2med.evaluation.measure.scores import Floats
from r2med.evaluation.measure.significance import ALPHA, EQUALITY_MARGIN, Values, means, welch
from r2med.foundation.pages.cells import Estimate

FEWEST_QUESTIONS = 10
"""Number of questions below which a ratio has no interval."""

FEWEST_SYSTEMS = 3
"""Number of systems from which a correlation across systems is computed."""


def closed_share(values: Values, spread: RunSpread | None = None) -> Estimate | None:
    """Return the share of a gap that is closed. Rows are the lower end, what is measured, and the upper end.

    It is a ratio of means: (measured - lower) / (upper - lower). The interval is Fieller's, with the covariance over
    questions. None if there is no gap. No interval is given if the interval of the gap contains 0: the share could
    then be any number. With `spread` of the three rows, values are means over runs, and the interval also contains the
    shifts of the runs.
    """
    gains = {name: np.array([rows[1] - rows[0], rows[2] - rows[0]]) for name, rows in values.items()}
    gain, gap = means(gains).tolist()
    if gap <= EQUALITY_MARGIN:
        return None
    share = gain / gap
    sizes = np.array([rows.shape[1] for rows in gains.values()], dtype=np.float64)
    if sizes.sum() < FEWEST_QUESTIONS or sizes.min() < 2:
        return Estimate(share)
    left_over = {name: rows[0] - share * rows[1] for name, rows in gains.items()}
    spreads = np.array([[row.var(ddof=1)] for row in left_over.values()])
    variance, freedom = welch(spreads, sizes)
    covariance = np.asarray(sum(np.cov(rows) / rows.shape[1] for rows in gains.values()) / len(gains) ** 2)
    if spread is not None:
        factors = np.array([(1 - share) ** 2, 1.0, share**2])  # of the variances of the rows in what is left over
        shift, loss = (factors * spread.shift).sum(keepdims=True), spread.loss(factors).sum(keepdims=True)
        variance, freedom = with_shift(variance, freedom, shift, loss)
        lower, measured, upper = spread.shift.tolist()
        covariance = covariance + np.array([[measured + lower, lower], [lower, upper + lower]])
    if variance[0] <= EQUALITY_MARGIN**2:  # every question closes the same share
        return Estimate(share)
    bounds = _fieller(gain, gap, covariance, float(freedom[0]))
    return Estimate(share) if bounds is None else Estimate(share, *bounds)


def _fieller(above: float, below: float, covariance: Floats, freedom: float) -> tuple[float, float] | None:
    """Return the interval of a ratio of two estimates; None if the lower one cannot be distinguished from 0."""
    from scipy.stats import t as student

    square = student.ppf(1 - ALPHA / 2, freedom) ** 2
    a = below**2 - square * covariance[1, 1]
    b = above * below - square * covariance[0, 1]
    c = above**2 - square * covariance[0, 0]
    inner = b * b - a * c
    if a <= 0 or inner < 0:
        return None
    reach = np.sqrt(inner)
    return float((b - reach) / a), float((b + reach) / a)


def observed_correlation(first: Values, second: Values) -> float | None:
    """Return Pearson's correlation of two scores across systems; None for too few or equal systems."""
    pair = np.array([means(first), means(second)])
    if pair.shape[1] < FEWEST_SYSTEMS or (np.ptp(pair, axis=1) <= EQUALITY_MARGIN).any():
        return None
    return float(np.corrcoef(pair)[0, 1])
