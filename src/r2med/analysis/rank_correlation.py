"""Correlate rankings of systems by Kendall's τ.

Figures are systems × draws, so that many pairs of rankings are correlated at once. Two systems are tied if their
figures differ by no more than `EQUALITY_MARGIN`.
"""

from __future__ import annotations

import numpy as np

from r2med.evaluation.measure.intervals import difference_intervals
from r2med.evaluation.measure.scores import Floats
from r2med.evaluation.measure.significance import EQUALITY_MARGIN, SystemPairs, Values

MIN_QUERIES = 10
"""Number of queries from which τ of two measures has an interval."""


def orders(figures: Floats) -> Floats:
    """Return pairs of systems × draws: 1 if the first system of the pair is better, -1 if it is worse, 0 for a tie."""
    differences = SystemPairs.all(len(figures)).differences(figures)
    return np.where(np.abs(differences) <= EQUALITY_MARGIN, 0.0, np.sign(differences))


def kendall_tau(first: Floats, second: Floats) -> Floats:
    """Return Kendall's τ_b of each column; NaN if all systems of a ranking are tied."""
    a, b = orders(first), orders(second)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray((a * b).sum(axis=0) / np.sqrt((a * a).sum(axis=0) * (b * b).sum(axis=0)))


def same_order(first: Floats, second: Floats) -> Floats:
    """Return the share of pairs of systems that both rankings of a column order alike. A tie is like a tie only."""
    return np.asarray((orders(first) == orders(second)).mean(axis=0))


def tau_interval(first: Values, second: Values) -> tuple[float, float] | None:
    """Return low and high of Kendall's τ between the rankings by two measures; None if there are too few queries.

    The order of a pair of systems is known by a measure if the interval of its difference does not hold 0. Bounds
    follow from the pairs whose order is known by both measures. All other pairs may be in either order. The bootstrap
    over queries gives no usable interval: noise makes rankings agree less, and resampling adds noise.
    """
    known = [_known_orders(values) for values in (first, second)]
    if known[0] is None or known[1] is None:
        return None
    products = known[0] * known[1]
    total, open_pairs = float(products.sum()), float((products == 0).sum())
    return (total - open_pairs) / len(products), (total + open_pairs) / len(products)


def _known_orders(values: Values) -> Floats | None:
    """Return 1 or -1 for each pair of systems whose order is known, and 0 for all others; None without intervals."""
    sizes = [rows.shape[1] for rows in values.values()]
    if sum(sizes) < MIN_QUERIES or min(sizes) < 2:
        return None
    low, high = difference_intervals(values, SystemPairs.all(len(next(iter(values.values())))))
    return np.asarray((low > 0).astype(np.float64) - (high < 0))  # NaN, for equal systems, is neither
