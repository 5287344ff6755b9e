"""The documents that may be among the k best of some queries: picked out of fast scores, decided by exact ones."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import numpy.typing as npt

from r2med.encoders.encoder import Vectors
from r2med.retrieve.dense.exact.arrays import Asked, Positions, Rows
from r2med.retrieve.dense.exact.rescoring import Rescorer
from r2med.retrieve.dense.exact.rounding import Rounding
from r2med.retrieve.run import best

BUNDLE = 8
"""Scores of which only the largest is looked at to find a first floor."""
SAMPLED = 64
"""Pairs that measure the rounding before those at the cut do, of queries that are chosen for together; of each at
least 8."""
SPARE = 1024
"""Candidates beyond four times k that are no sign of masses of near ties."""


class Shortlists:
    """Rows and scores, a line a query. `exact` says which scores decide and which are only fast."""

    def __init__(self, lines: slice, asked: Asked, rounding: Rounding, rescorer: Rescorer) -> None:
        self._lines, self._k, self._ranks = lines, asked.k, asked.ranks
        self.rounding, self.rescorer = rounding, rescorer
        shape = (lines.stop - lines.start, 0)
        self.rows: Rows = np.empty(shape, np.int32)
        self.scores: Vectors = np.empty(shape, np.float32)
        self.exact: npt.NDArray[np.bool_] = np.empty(shape, np.bool_)
        self.lengths = np.zeros(len(self.rows), np.int64)
        self.kth_best = np.full(len(self.rows), -np.inf, np.float32)
        """A score that k documents of the query reach: minus infinity while none is known."""

    def settle_line(self, line: int) -> None:
        """Score all candidates of a line exactly and keep the k best."""
        columns = np.flatnonzero(~self.exact[line, : self.lengths[line]])
        self._rescore(np.full(len(columns), line), columns)
        if self.lengths[line] >= self._k:
            self._cut_line(line)
            self.kth_best[line] = max(self.kth_best[line], self.scores[line, : self._k].min())

    def _cut_line(self, line: int) -> None:
        """Keep the k best of a line, ties by rank."""
        length, k = self.lengths[line], self._k
        kept = best(self.scores[line, :length], k, self._ranks[self.rows[line, :length]])
        for array in (self.rows, self.scores, self.exact):
            array[line, :k] = array[line, kept]
        self.lengths[line] = k

    def _rescore(self, lines: Positions, columns: Positions) -> float:
        """Replace scores by exact ones; return the largest deviation seen, relative to the sums on the way to them."""
        exact = self.rescorer.score(lines + self._lines.start, self.rows[lines, columns])
        # What was chosen by a sum that exceeds float32 is told at the end: others were not chosen because of it.
        exact[~np.isfinite(self.scores[lines, columns])] = np.inf
        with np.errstate(invalid="ignore"):
            deviations = np.abs(self.scores[lines, columns] - exact)
        self.scores[lines, columns] = exact
        self.exact[lines, columns] = True
        off = deviations > 0
        sizes = np.abs(exact[off]) + self.rounding.unrelated(self._lines)[lines[off]]
        return float((deviations[off] / sizes).max(initial=0))


def parts(count: int, most: int) -> list[tuple[int, int]]:
    """Return (start, end) of parts of so many queries: as many parts, or one a query."""
    most = min(most, count)
    return list(pairwise(count * number // most for number in range(most + 1)))
