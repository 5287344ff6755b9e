"""Estimate how well the scores of these systems would repeat on other queries of the same kind.

The reliability is the share of the variance of scores that comes from the systems and not from the choice of queries.
It is the correlation to expect between the scores of the systems on two sets of queries of the same size. On one
dataset its estimate is Cronbach's α with queries as items: the mean over all ways to divide the queries into halves,
corrected for length by the formula of Spearman and Brown.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from r2med.evaluation.measure.scores import Floats
from r2med.evaluation.measure.significance import ALPHA, EQUALITY_MARGIN, Values, means

MIN_RELIABILITY_QUERIES = 10
"""Number of queries from which the reliability has an interval."""
MAX_STATISTIC = 1e6
"""Larger values of F mean a reliability of 1.00 as well, and scipy's noncentral distribution fails for them."""


@dataclass(frozen=True)
class Reliability:
    """The ratio of the variance of systems to the variance by queries, with its interval."""

    ratio: float
    low: float | None = None
    high: float | None = None
    """Both are None if no interval is given."""

    def at(self, length: float = 1.0) -> tuple[float, float | None, float | None]:
        """Return the reliability and its bounds for a set with `length` times the queries (Spearman and Brown)."""
        low, high = (None if each is None else _share(length * each) for each in (self.low, self.high))
        return _share(length * self.ratio), low, high


def _share(ratio: float) -> float:
    return ratio / (1 + ratio)


def reliability_of_scores(values: Values) -> Reliability | None:
    """Return the reliability of the scores; None if a dataset has one query, or no score varies with the queries.

    The interval inverts the noncentral F distribution of the analysis of variance, systems by queries, because the
    systems are given and only the queries are drawn. Degrees of freedom are reduced for systems that are not equally
    alike (Greenhouse and Geisser), and combined over datasets (Welch and Satterthwaite).
    """
    sizes = [rows.shape[1] for rows in values.values()]
    systems = len(next(iter(values.values())))
    if systems < 2 or min(sizes) < 2:
        return None
    spreads = [np.cov(rows) / rows.shape[1] / len(sizes) ** 2 for rows in values.values()]
    parts = np.array([_residual(each) for each in spreads])
    by_queries = float(parts.sum())
    if by_queries <= EQUALITY_MARGIN**2:
        return None
    statistic = min(MAX_STATISTIC, float(np.var(means(values), ddof=1)) / by_queries)
    if sum(sizes) < MIN_RELIABILITY_QUERIES:
        return Reliability(max(0.0, statistic - 1))
    epsilon = _epsilon(np.sum(spreads, axis=0))
    first = epsilon * (systems - 1)
    second = first * by_queries**2 / float((parts**2 / (np.array(sizes) - 1)).sum())
    low, high = (_noncentrality(statistic, first, second, share) for share in (1 - ALPHA / 2, ALPHA / 2))
    return Reliability(max(0.0, statistic - 1), low / first, high / first)


def _centred(covariance: Floats) -> Floats:
    return np.asarray(covariance - covariance.mean(axis=0) - covariance.mean(axis=1)[:, None] + covariance.mean())


def _residual(covariance: Floats) -> float:
    """Return the residual mean square: what queries change in single systems, beyond what they change in all."""
    return float(np.trace(_centred(covariance))) / (len(covariance) - 1)


def _epsilon(covariance: Floats) -> float:
    """Return the ε of Greenhouse and Geisser: 1 if all pairs of systems have the same variance of differences."""
    centred = _centred(covariance)
    return float(np.trace(centred) ** 2 / ((len(centred) - 1) * (centred**2).sum()))


def _noncentrality(statistic: float, first: float, second: float, share: float) -> float:
    """Return the noncentrality with which this share of F values is below the statistic; 0 if there is no such one."""
    from scipy.optimize import brentq
    from scipy.stats import ncf

    def excess(noncentrality: float) -> float:
        return float(ncf.cdf(statistic, first, second, noncentrality)) - share

    if excess(0.0) <= 0:
        return 0.0
    top = 1.0 + 2 * first * statistic
    while excess(top) > 0:
        top *= 2
    return float(brentq(excess, 0.0, top, xtol=1e-6))
