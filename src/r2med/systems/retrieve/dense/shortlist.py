"""Shortlists of the documents that may be among the k best of each query.

Fast scores select the documents and exact scores decide. A fast score has an error of at most a bound that follows from
the lengths of the query and of the longest document. If k documents reach a score, a document two errors below it
cannot be among the k best. Documents within two errors of the cutoff are scored in float64.

The proven bound is about 500 times the actual rounding. With it, nearly all neighbours in a top 1000 would be
uncertain, and scoring all of them takes longer than the product. So inside the k best, the rounding is measured on a
sample, and neighbours within four times the largest deviation are scored in float64. Each of these scores is also a
check: if one deviates by more than a third of the bound, the bound grows and the neighbours are compared again.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from r2med.data.runs.ties import best
from r2med.foundation.engine import cores
from r2med.models.encoders.encoder import Vectors
from r2med.systems.retrieve.dense.exact_scores import Exact, ExactScorer, Positions, Rows

FLOAT32_ERROR = 2.0**-24
"""Largest relative error of one float32 operation."""
MIN_ERROR_BOUND = 12 * FLOAT32_ERROR
"""Minimum of the measured bound, if the sample shows hardly any rounding.

45 units are usual for a thousand dimensions.
"""
SAMPLED_PAIRS = 64
"""Number of candidates that measure the rounding, over all queries of a shortlist. Each query has at least 8."""
SPARE_CANDIDATES = 1024
"""Number of candidates beyond four times k that are normal. More indicate very many near ties."""
BUNDLE_SCORES = 8
"""Number of scores in a bundle. Only the largest of a bundle is used to find a first floor."""
MAX_THREADS = 4
"""Maximum number of threads that select candidates. Each of many short steps needs the interpreter lock."""


class Shortlists:
    """The shortlists of all queries. Each thread has the shortlists of some queries."""

    def __init__(self, scorer: ExactScorer, k: int, ranks: npt.NDArray[np.int32], pool: ThreadPoolExecutor) -> None:
        self._pool, count = pool, len(scorer.queries)
        bounds = np.linspace(0, count, min(cores(), MAX_THREADS, count) + 1).astype(int).tolist()
        self._parts = [Shortlist(scorer, slice(*part), k, ranks) for part in pairwise(bounds)]

    def choose(self, scores: Vectors, rows: Rows, errors: Exact) -> None:
        """Add the documents of a tile that may be among the k best, given fast scores and the error of each query."""
        self._each(lambda part: part.choose(scores[part.queries], rows, errors[part.queries]))

    def add_exact(self, lines: Positions, rows: Rows, scores: Exact) -> None:
        """Add documents with exact scores, in ascending order of queries."""

        def add(part: Shortlist) -> None:
            here = slice(*np.searchsorted(lines, (part.queries.start, part.queries.stop)))
            part.add(lines[here] - part.queries.start, rows[here], scores[here].astype(np.float32), exact=True)

        self._each(add)

    def settle(self) -> None:
        """Score all candidates exactly and keep the k best. Their vectors are not needed any more."""
        self._each(Shortlist.settle)

    def results(self) -> list[tuple[Rows, Vectors]]:
        """Return the rows and scores of the k best of each query, in no particular order."""
        self._each(Shortlist.finish)
        return [result for part in self._parts for result in part.results()]

    def _each(self, work: Callable[[Shortlist], None]) -> None:
        if len(self._parts) == 1:
            work(self._parts[0])
        else:
            list(self._pool.map(work, self._parts))


class Shortlist:
    """Candidates of some queries, one line per query: rows, scores, and which scores are exact."""

    def __init__(self, scorer: ExactScorer, queries: slice, k: int, ranks: npt.NDArray[np.int32]) -> None:
        self.queries, self._scorer, self._k, self._ranks = queries, scorer, k, ranks
        lines = queries.stop - queries.start
        self._rows: Rows = np.empty((lines, 0), np.int32)
        self._scores: Vectors = np.empty((lines, 0), np.float32)
        self._exact: npt.NDArray[np.bool_] = np.empty((lines, 0), np.bool_)
        self._counts = np.zeros(lines, np.int64)
        self._errors: Exact = np.zeros(lines)
        self._reached: Vectors = np.full(lines, -np.inf, np.float32)
        """A score that k documents of the query reach, or minus infinity while no such score is known."""

    def choose(self, scores: Vectors, rows: Rows, errors: Exact) -> None:
        """Add the documents that may be among the k best."""
        self._errors = np.maximum(self._errors, errors)
        if np.isneginf(self._reached).any():
            self._reached = np.maximum(self._reached, _reached(scores, self._k))
        flat = np.flatnonzero(scores >= self._floors())
        lines, columns = np.divmod(flat, scores.shape[1])
        self.add(lines, rows[columns], scores[lines, columns], exact=False)

    def add(self, lines: Positions, rows: Rows, scores: Vectors, exact: bool) -> None:
        """Add candidates, in ascending order of lines."""
        counts = np.bincount(lines, minlength=len(self._counts))
        before, self._counts = self._counts, self._counts + counts
        room = self._rows.shape[1]
        if (longest := int(self._counts.max())) > room:
            wider = ((0, 0), (0, max(longest, 2 * room, 2 * self._k) - room))
            self._rows, self._scores = np.pad(self._rows, wider), np.pad(self._scores, wider)
            self._exact = np.pad(self._exact, wider)
        columns = np.arange(len(lines)) + np.repeat(before - np.cumsum(counts) + counts, counts)
        self._rows[lines, columns], self._scores[lines, columns], self._exact[lines, columns] = rows, scores, exact
        if longest > 8 * self._k + 2 * SPARE_CANDIDATES:
            self._thin()
            # There are very many near ties, and only exact scores can reduce them. Handle one query at a time to save
            # memory.
            for line in np.flatnonzero(self._counts > 4 * self._k + SPARE_CANDIDATES).tolist():
                self._settle_line(line)

    def settle(self) -> None:
        """Score all candidates exactly and keep the k best."""
        for line in range(len(self._counts)):
            self._settle_line(line)

    def finish(self) -> None:
        """Keep the k best, with scores in the order of the exact scores."""
        self._thin()
        worst, bound = self._score(*self._sample()), 0.0
        while (needed := max(MIN_ERROR_BOUND, 3 * worst)) > bound:
            bound = 4 / 3 * needed
            worst = self._score(*self._near_ties(bound))
        self._cut()

    def results(self) -> list[tuple[Rows, Vectors]]:
        """Return the rows and scores of each query, in no particular order."""
        counts = enumerate(self._counts.tolist())
        return [(self._rows[line, :n].copy(), self._scores[line, :n].copy()) for line, n in counts]

    def _floors(self) -> Vectors:
        """Return for each line the lowest score of a candidate, as a column.

        The result is in single precision, because a comparison with float64 would convert every score. Minus infinity
        is below it.
        """
        floors = (self._reached - 2 * self._errors).clip(np.finfo(np.float32).min / 2).astype(np.float32)
        return np.nextafter(floors, np.float32(-np.inf))[:, None]

    def _thin(self) -> None:
        """Drop candidates that cannot be among the k best, and sort the others by score, best first."""
        scores, k = self._padded(), self._k
        width = scores.shape[1]
        order = _descending(scores)
        if width >= k:
            kth = np.take_along_axis(scores, order[:, k - 1, None], axis=1)[:, 0]
            self._reached = np.maximum(self._reached, kth)
        self._counts = np.minimum(self._counts, (scores >= self._floors()).sum(axis=1))
        kept = int(self._counts.max())
        for array in (self._rows, self._scores, self._exact):
            array[:, :kept] = np.take_along_axis(array[:, :width], order[:, :kept], axis=1)

    def _padded(self) -> Vectors:
        """Return the scores, with minus infinity where a line is shorter than others."""
        width = int(self._counts.max())
        scores = self._scores[:, :width]
        scores[np.arange(width) >= self._counts[:, None]] = -np.inf
        return scores

    def _sample(self) -> tuple[Positions, Positions]:
        """Return (lines, columns) of some evenly spaced candidates of each line."""
        depths = np.minimum(self._counts, self._k)
        places = np.linspace(0, 1, max(8, SAMPLED_PAIRS // len(depths)))
        columns = (places * np.maximum(depths - 1, 0)[:, None]).astype(np.int64)
        lines = np.broadcast_to(np.arange(len(columns))[:, None], columns.shape)
        found = lines < -1 if not self._exact.size else (depths > 0)[:, None] & ~self._exact[lines, columns]
        return lines[found], columns[found]

    def _near_ties(self, bound: float) -> tuple[Positions, Positions]:
        """Return (lines, columns) of inexact candidates that rounding may have moved, also across the cutoff."""
        scores = self._padded().astype(np.float64)
        width = scores.shape[1]
        # The margin is two deviations and two steps of float32. Beyond it, the rounded scores differ and have this
        # order.
        near = (2 * bound + 2.0**-22) * (np.abs(scores[:, :-1]) + self._unrelated()[:, None]) + 2.0**-125
        with np.errstate(invalid="ignore"):  # The positions after the end of a shorter line.
            close = np.abs(scores[:, 1:] - scores[:, :-1]) <= near
        tied = np.zeros(scores.shape, np.bool_)
        tied[:, 1:] = close
        tied[:, :-1] |= close
        if width > self._k:
            cut = scores[:, self._k - 1] + 2 * self._errors
            cut[self._counts <= self._k] = -np.inf  # All documents of such a line are found.
            tied |= scores <= cut[:, None]
        tied &= ~self._exact[:, :width] & (np.arange(width) < self._counts[:, None])
        lines, columns = np.nonzero(tied)
        return lines, columns

    def _unrelated(self) -> Exact:
        """Return for each query the usual size of products of unrelated vectors.

        The rounding of each addition is relative to the partial sums. These end at the score and differ from it by
        about as much as the products of unrelated vectors. A score of 1 among scores of 0.1 must not make all of them
        look close to each other.
        """
        return np.asarray(self._errors / (FLOAT32_ERROR * max(1, self._scorer.queries.shape[1]) ** 1.5))

    def _score(self, lines: Positions, columns: Positions) -> float:
        """Replace scores by exact ones. Return the largest deviation relative to the partial sums."""
        exact = self._scorer.score(lines + self.queries.start, self._rows[lines, columns])
        deviations = np.abs(self._scores[lines, columns] - exact)
        self._scores[lines, columns], self._exact[lines, columns] = exact, True
        off = deviations > 0
        return float((deviations[off] / (np.abs(exact[off]) + self._unrelated()[lines[off]])).max(initial=0))

    def _settle_line(self, line: int) -> None:
        """Score all candidates of a line exactly and keep the k best."""
        columns = np.flatnonzero(~self._exact[line, : self._counts[line]])
        self._score(np.full(len(columns), line), columns)
        if self._counts[line] >= self._k:
            self._cut_line(line)
            self._reached[line] = max(self._reached[line], self._scores[line, : self._k].min())

    def _cut(self) -> None:
        """Keep the k best of each line. All scores that decide must be exact."""
        scores, k = self._padded(), self._k
        if scores.shape[1] > k:
            mixed = scores[:, :k].min(axis=1) <= scores[:, k:].max(axis=1)
            for line in np.flatnonzero(mixed & (self._counts > k)).tolist():
                self._cut_line(line)
        self._counts = np.minimum(self._counts, k)

    def _cut_line(self, line: int) -> None:
        """Keep the k best of a line."""
        count, k = self._counts[line], self._k
        kept = best(self._scores[line, :count], k, self._ranks[self._rows[line, :count]])
        for array in (self._rows, self._scores, self._exact):
            array[line, :k] = array[line, kept]
        self._counts[line] = k


def _reached(scores: Vectors, k: int) -> Vectors:
    """Return for each line a score that at least k of its documents reach, and not many more.

    It is the k-th largest of the maxima of bundles of scores. Each of these k maxima belongs to a different document.
    """
    lines, width = scores.shape
    if width < k:
        return np.full(lines, -np.inf, np.float32)
    size = max(1, min(BUNDLE_SCORES, width // (4 * k)))
    count = width // size
    maxima = scores[:, : size * count].reshape(lines, size, count).max(axis=1) if size > 1 else scores
    return np.asarray(np.partition(maxima, count - k, axis=1)[:, count - k])


def _descending(scores: Vectors) -> Positions:
    """Return the columns of each line, best first."""
    # Score and column are packed into one integer. Sorting these takes half as long as sorting columns by score.
    bits = scores.view(np.int32)
    keys = (~(bits ^ ((bits >> 31) & 0x7FFFFFFF))).astype(np.int64) << 32 | np.arange(scores.shape[1])
    keys.sort(axis=1)
    return np.asarray(keys & 0xFFFFFFFF)
