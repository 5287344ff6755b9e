"""The smallest difference between systems that a number of queries and of runs can detect."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass

import numpy as np

from r2med.evaluation.measure.gap_curve import MAX_QUERIES
from r2med.evaluation.measure.run_variance import FEWEST_RUNS, RunSpread
from r2med.evaluation.measure.scores import Floats
from r2med.evaluation.measure.significance import SystemPairs, Values, detectable_differences, pair_variance


@dataclass(frozen=True)
class RepeatPlan:
    """The variances of the differences of pairs of systems, of which one or both vary. All datasets grow alike."""

    queries: int
    """Number of queries that the variances come from."""
    by_queries: Floats
    """Variance by the queries alone, for each pair."""
    freedom: Floats
    """Its degrees of freedom."""
    shift: Floats
    """Variance by the shift of a single run: two systems × pairs."""
    noise: Floats
    """Variance by the noise of single queries in a single run: two systems × pairs."""

    @classmethod
    def of(cls, values: Values, pairs: SystemPairs, spread: RunSpread) -> RepeatPlan | None:
        """Return the plan of the pairs whose runs are known and of which one varies; None if there are none."""
        varies = spread.total > 0
        known = spread.known[pairs.first] & spread.known[pairs.second] & (varies[pairs.first] | varies[pairs.second])
        some = SystemPairs(pairs.first[known], pairs.second[known])
        variance, freedom = pair_variance(values, some)
        if not len(some) or np.isnan(variance).any():
            return None
        sides = [spread.of(side) for side in (some.first, some.second)]
        noise = np.array([side.within for side in sides])
        return cls(
            queries=sum(rows.shape[1] for rows in values.values()),
            by_queries=np.maximum(variance - noise.sum(axis=0), 0.0),
            freedom=np.where(variance > 0, freedom, 1.0),
            shift=np.array([side.runs * side.shift for side in sides]),
            noise=np.array([side.runs * side.within for side in sides]),
        )

    def gap(self, repeats: int, queries: int | None = None) -> float:
        """Return the smallest difference that is detected with this many runs and queries: the median over pairs."""
        length = (queries or self.queries) / self.queries
        noise = self.noise / repeats / length
        shift = self.shift / repeats
        by_queries = self.by_queries / length + noise.sum(axis=0)
        freedom = np.maximum(self.freedom * length, 1.0)
        whole = by_queries + shift.sum(axis=0)
        loss = by_queries**2 / freedom + np.where(shift > 0, (shift + noise) ** 2, 0.0).sum(axis=0) / (repeats - 1)
        joint = np.divide(whole**2, loss, out=np.ones_like(whole), where=loss > 0)
        return float(np.median(detectable_differences(whole, joint)))

    def needed(self, points: float, repeats: int) -> int | None:
        """Return the number of queries that detect a difference with this many runs; None if no number does."""
        sizes = range(2, MAX_QUERIES)
        place = bisect_left(sizes, True, key=lambda queries: self.gap(repeats, queries) <= points)
        return sizes[place] if place < len(sizes) else None

    def runs_needed(self, points: float, most: int = 1000) -> int | None:
        """Return the number of runs on these queries that detect a difference; None if even `most` do not."""
        counts = range(FEWEST_RUNS, most + 1)
        place = bisect_left(counts, True, key=lambda repeats: self.gap(repeats) <= points)
        return counts[place] if place < len(counts) else None
