"""The documents that may be among each query's k best, and how they are picked out of scores."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from r2med.encoders.encoder import Vectors
from r2med.retrieve.dense.arithmetic import BUNDLE, Arithmetic, Exact, Positions, Rows
from r2med.retrieve.run import best


class Shortlists:
    """Rows and scores, a line a query. `exact` says which scores decide and which are only fast."""

    def __init__(self, queries: int, k: int, arithmetic: Arithmetic) -> None:
        self._k, self._arithmetic = k, arithmetic
        self.rows: Rows = np.empty((queries, 0), np.int32)
        self.scores: Vectors = np.empty((queries, 0), np.float32)
        self.exact: npt.NDArray[np.bool_] = np.empty((queries, 0), np.bool_)
        self.lengths = np.zeros(queries, np.int64)
        self.best = np.full(queries, -np.inf)
        """A score that k documents of the query reach: minus infinity while that is not known."""

    def add(self, queries: Positions, rows: Rows, scores: Vectors) -> None:
        """Add candidates, ascending by query."""
        counts = np.bincount(queries, minlength=len(self.lengths))
        before, self.lengths = self.lengths, self.lengths + counts
        room = self.rows.shape[1]
        if (longest := int(self.lengths.max(initial=0))) > room:
            wider = ((0, 0), (0, max(longest, 2 * room, 2 * self._k) - room))
            self.rows, self.scores = np.pad(self.rows, wider), np.pad(self.scores, wider)
            self.exact = np.pad(self.exact, wider)
        columns = np.arange(len(queries)) + np.repeat(before - np.cumsum(counts) + counts, counts)
        fast = np.zeros(len(rows), np.bool_)
        for array, values in ((self.rows, rows), (self.scores, scores), (self.exact, fast)):
            self._arithmetic.put(array, queries, columns, values)

    def thin(self, lines: slice, margins: Exact) -> None:
        """Drop those further than the margin below the k-th best; best first after that."""
        scores, k, arithmetic = self.padded(lines), self._k, self._arithmetic
        width = scores.shape[1]
        order = arithmetic.largest(scores, min(width, k + k // 8 + 32))  # those within the margin are few, as a rule
        if width >= k:
            kth = np.take_along_axis(scores, order[:, k - 1, None], axis=1)[:, 0]
            self.best[lines] = np.maximum(self.best[lines], kth)
        above = scores >= (self.best[lines] - margins[lines])[:, None]
        self.lengths[lines] = np.minimum(self.lengths[lines], above.sum(axis=1))
        kept = int(self.lengths[lines].max(initial=0))
        order = order[:, :kept] if kept <= order.shape[1] else arithmetic.largest(scores, kept)
        for array in (self.rows, self.scores, self.exact):
            array[lines, :kept] = arithmetic.take(array[lines, :width], order)

    def cut(self, lines: slice, ranks: npt.NDArray[np.int32]) -> None:
        """Keep the k best, in no particular order, ties by rank; all scores that decide must be exact."""
        scores, k = self.padded(lines), self._k
        if scores.shape[1] > k:
            mixed = scores[:, :k].min(axis=1) <= scores[:, k:].max(axis=1)
            for line in np.flatnonzero(mixed & (self.lengths[lines] > k)) + lines.start:
                length = self.lengths[line]
                kept = best(self.scores[line, :length], k, ranks[self.rows[line, :length]])
                for array in (self.rows, self.scores, self.exact):
                    array[line, :k] = array[line, kept]
        self.lengths[lines] = np.minimum(self.lengths[lines], k)
        full = np.flatnonzero(self.lengths[lines] == k) + lines.start
        self.best[full] = np.maximum(self.best[full], self.scores[full, :k].min(axis=1, initial=np.inf))

    def results(self) -> list[tuple[Rows, Vectors]]:
        """Return (rows, scores) of each query."""
        return [(self.rows[line, :n].copy(), self.scores[line, :n].copy()) for line, n in enumerate(self.lengths)]

    def padded(self, lines: slice) -> Vectors:
        """Return the scores of lines, minus infinity where a line is shorter than others."""
        lengths = self.lengths[lines]
        width = int(lengths.max(initial=0))
        scores = self.scores[lines, :width]
        scores[np.arange(width) >= lengths[:, None]] = -np.inf
        return scores

    def sample(self, wanted: int) -> tuple[Positions, Positions]:
        """Return (queries, columns) of up to `wanted` evenly spaced candidates of each query, of those not exact."""
        depths = np.minimum(self.lengths, self._k)
        columns = (np.linspace(0, 1, wanted) * np.maximum(depths - 1, 0)[:, None]).astype(np.int64)
        queries = np.broadcast_to(np.arange(len(columns))[:, None], columns.shape)
        wanted_here = (depths > 0)[:, None] & ~self.exact[queries, columns] if self.exact.size else columns < 0
        return queries[wanted_here], columns[wanted_here]


def reach(scores: Vectors, k: int, arithmetic: Arithmetic) -> Vectors:
    """Return for each line a score that at least k of it reach, and not many more.

    It is the k-th largest of the maxima of bundles of scores: each of those k maxima is another document's score.
    """
    lines, width = scores.shape
    if width < k:
        return np.full(lines, -np.inf, np.float32)
    size = max(1, min(BUNDLE, width // (4 * k)))
    return arithmetic.kth_largest(arithmetic.maxima(scores, size) if size > 1 else scores, k)
