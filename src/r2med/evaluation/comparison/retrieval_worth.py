"""Compute what retrieval is worth to answers: the share of a gap that is closed, and the correlation of two measures.

Values are dataset -> rows × questions, and means are unweighted means of the datasets' means, as in `significance`.
`benchmarks/answer_worth.py` measures how often the intervals contain the truth.
"""

from __future__ import annotations

import numpy as np

from r2med.evaluation.measure.intervals import jackknife
from r2med.evaluation.measure.run_variance import RunSpread, with_shift
from r2med.evaluation.measure.scores import Floats
from r2med.evaluation.measure.significance import (
    ALPHA,
    EQUALITY_MARGIN,
    Values,
    bootstrap,
    interval,
    means,
    stratified,
    welch,
)
from r2med.foundation.pages.estimate import Estimate

FEWEST_QUESTIONS = 10
"""Number of questions below which a ratio or a correlation has no interval."""

FEWEST_SYSTEMS = 3
"""Number of systems from which a correlation across systems is computed."""

RESAMPLES = 2000
"""Number of bootstrap samples for an interval."""


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
        shift, loss = (factors * spread.shift).sum(keepdims=True), spread.loss(factors, factors).sum(keepdims=True)
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
    return _pearson(means(first), means(second))


def _pearson(first: Floats, second: Floats) -> float | None:
    pair = np.array([first, second])
    if pair.shape[1] < FEWEST_SYSTEMS or (np.ptp(pair, axis=1) <= EQUALITY_MARGIN).any():
        return None
    return float(np.corrcoef(pair)[0, 1])


def correlation_across_systems(
    first: Values, second: Values, resamples: int = RESAMPLES, seed: int = 0
) -> Estimate | None:
    """Return Pearson's correlation of two scores across systems, corrected for the noise of few questions.

    Rows are systems, and both tables have the same questions. With few questions, the scores of systems vary by chance
    too, which makes the plain correlation too small, and a bootstrap repeats that error: with ten systems and 50
    questions its interval contained the truth in 20 % of samples. The correction subtracts the noise, which the
    questions show, from the variances and the covariance across systems.

    The interval contains Fieller's interval of the corrected correlation (with the covariance of the jackknife over
    questions) and the interval of the plain bootstrap. The first is too short for three systems, the second for many.
    None if there are fewer than three systems, or if they do not differ by more than noise. No interval is given for
    few questions, or if the noise is as large as the differences.
    """
    if len(next(iter(first.values()))) < FEWEST_SYSTEMS:
        return None
    centred = [{name: rows - rows.mean(axis=0) for name, rows in values.items()} for values in (first, second)]
    one, two = centred
    parts = [_product(one, one), _product(two, two), _product(one, two)]
    (variance, _), (other, _), (shared, shared_without) = parts
    if min(variance, other) <= EQUALITY_MARGIN**2:
        return None
    scale = float(np.sqrt(variance * other))
    value = float(np.clip(shared / scale, -1, 1))
    sizes = [rows.shape[1] for rows in one.values()]
    if sum(sizes) < FEWEST_QUESTIONS or min(sizes) < FEWEST_SYSTEMS:
        return Estimate(value)
    scale_without = [
        np.sqrt(np.clip(a, 0, None) * np.clip(b, 0, None)) for a, b in zip(parts[0][1], parts[1][1], strict=True)
    ]
    pairs = zip(shared_without, scale_without, strict=True)
    covariance = np.asarray(sum(jackknife(np.array(pair)) for pair in pairs))
    bounds = _fieller(shared, scale, covariance, sum(sizes) - len(sizes))
    if bounds is None:
        return Estimate(value)
    low, high = _bootstrapped(first, second, resamples, seed)
    return Estimate(value, max(-1.0, min(bounds[0], low)), min(1.0, max(bounds[1], high)))


def _product(first: Values, second: Values) -> tuple[float, list[Floats]]:
    """Return the product of two mean vectors without the part that noise adds, and its values without each question.

    The second result has one array for each dataset, with a value for each of its questions.
    """
    mean, other = means(first), means(second)
    noise = {name: _noise(first[name], second[name]) for name in first}
    weight = 1 / len(first) ** 2
    total = weight * sum(each for each, _ in noise.values())
    without = []
    for name, (of_all, of_rest) in noise.items():
        steps = [_step(values[name]) / len(first) for values in (first, second)]
        products = ((mean[:, None] + steps[0]) * (other[:, None] + steps[1])).sum(axis=0)
        without.append(np.asarray(products - (total + weight * (of_rest - of_all))))
    return float(mean @ other - total), without


def _step(rows: Floats) -> Floats:
    """Return how the mean of a dataset moves if one question is left out."""
    mean = rows.mean(axis=1, keepdims=True)
    return np.asarray((mean - rows) / max(1, rows.shape[1] - 1))


def _noise(first: Floats, second: Floats) -> tuple[float, Floats]:
    """Return the part of the product of two mean vectors that noise adds: of all questions, and without each one."""
    count = first.shape[1]
    own = (first * second).sum(axis=0)
    of_all = (own.sum() - count * (first.mean(axis=1) @ second.mean(axis=1))) / (count * max(1, count - 1))
    rest = [rows.mean(axis=1, keepdims=True) + _step(rows) for rows in (first, second)]
    left = own.sum() - own - (count - 1) * (rest[0] * rest[1]).sum(axis=0)
    return float(of_all), np.asarray(left / max(1, (count - 1) * (count - 2)))


def _bootstrapped(first: Values, second: Values, resamples: int, seed: int) -> tuple[float, float]:
    """Return the bootstrap interval of the plain correlation. Both tables are drawn with the same questions."""
    draws = [stratified(bootstrap(values, resamples, seed)) for values in (first, second)]
    moved = [rows - rows.mean(axis=0) for rows in draws]
    scale = np.sqrt((moved[0] ** 2).sum(axis=0) * (moved[1] ** 2).sum(axis=0))
    known = scale > EQUALITY_MARGIN
    low, high = interval(((moved[0] * moved[1]).sum(axis=0)[known] / scale[known])[None])
    return float(low[0]), float(high[0])
