"""The smallest difference between systems that a set of queries can detect, for smaller and larger sets."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from r2med.evaluation.measure.scores import Floats
from r2med.evaluation.measure.significance import SystemPairs, Values, detectable_gaps, pair_variances

MAX_QUERIES = 1_000_000
"""A gap that needs more queries is not of interest."""


@dataclass(frozen=True)
class GapCurve:
    """The smallest gap that can be detected, by the number of queries. All datasets grow by the same factor."""

    spreads: Floats
    """Datasets × pairs of systems: the variances of single queries' differences."""
    sizes: Floats

    @classmethod
    def of(cls, values: Values, pairs: SystemPairs | None = None) -> GapCurve:
        """Return the curve of these values, for some pairs of systems or for all."""
        pairs = SystemPairs.all(len(next(iter(values.values())))) if pairs is None else pairs
        sizes = np.array([rows.shape[1] for rows in values.values()], dtype=np.float64)
        return cls(np.array([pair_variances(rows, pairs) for rows in values.values()]), sizes)

    def gap(self, length: float = 1.0) -> float | None:
        """Return the gap for a set with `length` times the queries: the median over pairs of systems.

        Returns None if all systems are equal, or a dataset has only one query.
        """
        gaps = self._gaps(length)
        return float(np.median(gaps[gaps > 0])) if (gaps > 0).any() else None

    def _gaps(self, length: float) -> Floats:
        return detectable_gaps(self.spreads, np.array(lengthened(self.sizes, length), dtype=np.float64))

    def ordered_pairs(self) -> list[int]:
        """Return the positions of pairs that differ on some query, the pair with the smallest gap first."""
        gaps = self._gaps(1.0)
        return [int(place) for place in np.argsort(gaps, kind="stable") if gaps[place] > 0]

    def of_pair(self, place: int) -> GapCurve:
        """Return the curve of one pair."""
        return GapCurve(self.spreads[:, [place]], self.sizes)

    def needed(self, points: float) -> int | None:
        """Return the number of queries that detect a gap; None if it is above `MAX_QUERIES` or unknown."""
        total = int(self.sizes.sum())

        def detects(queries: int) -> bool:
            gap = self.gap(queries / total)
            return gap is not None and gap <= points

        low, high = 1, MAX_QUERIES
        if not detects(high):
            return None
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if detects(middle) else (middle, high)
        return sum(lengthened(self.sizes, high / total))


def lengthened(sizes: Floats, length: float) -> list[int]:
    """Return the sizes times a factor. A dataset of two or more queries keeps at least two."""
    return [int(min(size, 2)) if length * size < 2 else round(length * size) for size in sizes.tolist()]
