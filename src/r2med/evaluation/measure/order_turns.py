"""Estimate how likely the order of two systems turns if both are run once more."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from r2med.evaluation.measure.run_variance import RunSpread
from r2med.evaluation.measure.scores import Floats
from r2med.evaluation.measure.significance import EQUALITY_MARGIN, SystemPairs, Values, means, pair_variance


@dataclass(frozen=True)
class OrderTurns:
    """Probabilities that one more run of each system of a pair orders them the other way. NaN if not known."""

    same_queries: Floats
    """On the same queries."""
    new_queries: Floats
    """On as many new queries of the same kind."""


def order_turns(values: Values, pairs: SystemPairs, spread: RunSpread) -> OrderTurns:
    """Return the probabilities for each pair, by Student's t. They are not known without an estimate of the runs.

    The new difference is predicted from the observed one, so its variance is that of the observed difference plus that
    of one run of each system. On the same queries, the chance of the queries is in neither.
    """
    difference = np.abs(pairs.differences(means(values)))
    known = spread.known[pairs.first] & spread.known[pairs.second]
    runs, shifted = spread.runs, spread.shift > 0
    # One more run beside the mean of n runs: the variance of the mean, and n times that for the new run.
    again = (runs + 1) * spread.total
    where = np.where(shifted, again**2 / np.maximum(runs - 1, 1), again**2 / np.maximum(spread.within_freedom, 1))
    same = _beyond(difference, pairs.sums(again), pairs.sums(where))
    variance, freedom = pair_variance(values, pairs)
    noise = np.minimum(pairs.sums(spread.within), variance)
    whole = 2 * variance - noise + pairs.sums((runs + 1) * spread.shift + runs * spread.within)
    by_runs = np.where(
        shifted, spread.loss(runs + 1, 2.0), ((runs - 1) * spread.within) ** 2 / np.maximum(spread.within_freedom, 1)
    )
    by_queries = np.where(variance > 0, (2 * variance) ** 2 / np.where(variance > 0, freedom, 1.0), 0.0)
    # Few runs give a heavier tail than many queries, so far apart systems could seem safer on new queries.
    new = np.maximum(_beyond(difference, whole, by_queries + pairs.sums(by_runs)), same)
    return OrderTurns(np.where(known, same, np.nan), np.where(known, new, np.nan))


def _beyond(difference: Floats, variance: Floats, loss: Floats) -> Floats:
    """Return the probability of the other sign. Without variance the difference stays."""
    from scipy.stats import t as student

    flat = variance <= EQUALITY_MARGIN**2
    with np.errstate(divide="ignore", invalid="ignore"):
        freedom = variance**2 / loss
        found = student.sf(difference / np.sqrt(variance), freedom)
    return np.where(flat, 0.0, found)
