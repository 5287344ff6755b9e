"""Shortlists of the documents that may be among the k best of each query.

Fast scores select the documents and exact scores decide. A fast score has an error of at most a bound that follows from
the lengths of the query and of the longest document. If k documents reach a score, a document two errors below it
cannot be among the k best. All others are scored exactly, and only exact scores are returned.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import chain, pairwise
from typing import TypeVar

import numpy as np

from r2med.data.runs.ties import best, kth_best
from r2med.foundation.engine import cores
from r2med.models.encoders.encoder import Vectors
from r2med.systems.retrieve.exact.exact_scores import ExactScorer
from r2med.systems.retrieve.exact.text_vectors import Exact, Hits, Rows

Part = TypeVar("Part")
Result = TypeVar("Result")

SPARE_CANDIDATES = 1024
"""Number of candidates beyond twice k that are normal. More indicate many near ties, or that the floor has risen."""
BUNDLE_SCORES = 8
"""Number of scores in a bundle. Only the largest of a bundle is used to find a first floor."""
MIN_QUERIES_PER_THREAD = 4
"""With fewer queries, threads share the documents of each query."""
MIN_SHARED = 1 << 12
"""Minimum number of pairs of query vectors and documents that threads share. Fewer take less time than the threads."""
MAX_THREADS = 4
"""Maximum number of threads that select candidates. Each of many short steps needs the interpreter lock."""


class Shortlists:
    """The shortlists of all queries."""

    def __init__(self, scorer: ExactScorer, k: int, ranks: Rows, pool: ThreadPoolExecutor) -> None:
        self._scorer, self._pool, self._threads = scorer, pool, min(cores(), MAX_THREADS)
        self._lines = [Shortlist(k, ranks) for _ in range(len(scorer.queries))]

    def choose(self, scores: Vectors, rows: Rows, errors: Exact) -> None:
        """Add the documents of a tile that may be among the k best, given fast scores and the error of each query."""

        def choose(lines: range) -> None:
            for line in lines:
                self._lines[line].choose(scores[line], rows, float(errors[line]))

        self._each(choose, self._parts(self._threads))
        for line, shortlist in enumerate(self._lines):
            if shortlist.is_crowded:  # Only exact scores can shorten it. One query at a time saves memory.
                self._settle([line])

    def add_exact(self, line: int, rows: Rows, scores: Exact) -> None:
        """Add documents of a query with exact scores."""
        self._lines[line].add_exact(rows, scores.astype(np.float32))

    def settle(self) -> None:
        """Score all candidates exactly and keep the k best. Their vectors are not needed any more."""
        self._settle(range(len(self._lines)))

    def results(self) -> list[Hits]:
        """Return the rows and scores of the k best of each query, in no particular order."""
        self.settle()
        return [shortlist.exact for shortlist in self._lines]

    def _settle(self, lines: Sequence[int]) -> None:
        """Score the candidates of some queries. Threads share the documents of a query if there are few queries."""
        waiting = [(line, rows) for line in lines if len(rows := self._lines[line].take_candidates())]
        if len(waiting) < MIN_QUERIES_PER_THREAD * self._threads:
            products = self._scorer.queries.sizes
            shares = {line: self._threads if len(rows) * products[line] >= MIN_SHARED else 1 for line, rows in waiting}
            waiting = [(line, part) for line, rows in waiting for part in np.array_split(rows, shares[line])]
        size = max(1, len(waiting) // (MIN_QUERIES_PER_THREAD * self._threads))
        groups = [waiting[at : at + size] for at in range(0, len(waiting), size)]
        # Threads only add up. The many short steps before and after it would wait for the interpreter lock.
        scored = self._each(lambda group: [self._scorer.score(*query) for query in group], groups)
        for (line, rows), scores in zip(waiting, chain.from_iterable(scored), strict=True):
            self.add_exact(line, rows, scores)

    def _parts(self, count: int) -> list[range]:
        bounds = np.linspace(0, len(self._lines), min(count, len(self._lines)) + 1).astype(int).tolist()
        return [range(*bound) for bound in pairwise(bounds)]

    def _each(self, work: Callable[[Part], Result], parts: Sequence[Part]) -> list[Result]:
        return list(map(work, parts) if len(parts) < 2 else self._pool.map(work, parts))


class Shortlist:
    """The candidates of one query, and the k best documents of those that have an exact score."""

    def __init__(self, k: int, ranks: Rows) -> None:
        self._k, self._ranks = k, ranks
        self.exact: Hits = np.empty(0, np.int32), np.empty(0, np.float32)
        """The rows and exact scores of at most k documents."""
        self._rows: Rows = np.empty(0, np.int32)
        self._scores: Vectors = np.empty(0, np.float32)
        self._error = 0.0
        self._reached = -np.inf
        """A score that k documents reach, fast or exact."""

    def choose(self, scores: Vectors, rows: Rows, error: float) -> None:
        """Add the documents that may be among the k best. `rows` ascend and follow those of earlier calls."""
        self._error = max(self._error, error)
        if np.isneginf(self._reached):
            self._reached = _reached(scores, self._k)
        found = np.flatnonzero(scores >= self._floor())
        self._rows = np.concatenate((self._rows, rows[found]))
        self._scores = np.concatenate((self._scores, scores[found]))
        if len(self._rows) > 2 * self._k + SPARE_CANDIDATES:
            self._thin()

    @property
    def is_crowded(self) -> bool:
        """True if there are many more candidates than k."""
        return len(self._rows) > 4 * self._k + SPARE_CANDIDATES

    def take_candidates(self) -> Rows:
        """Return the rows of all candidates and forget them. They must be scored and added again."""
        self._thin()
        rows, self._rows, self._scores = self._rows, self._rows[:0], self._scores[:0]
        return rows

    def add_exact(self, rows: Rows, scores: Vectors) -> None:
        """Add documents with exact scores, and keep the k best."""
        rows, scores = np.concatenate((self.exact[0], rows)), np.concatenate((self.exact[1], scores))
        kept = best(scores, self._k, self._ranks[rows])
        self.exact = rows[kept], scores[kept]
        if len(kept) == self._k:
            self._reached = max(self._reached, float(self.exact[1].min()))

    def _thin(self) -> None:
        """Drop candidates that cannot be among the k best."""
        self._reached = max(self._reached, kth_best(np.concatenate((self.exact[1], self._scores)), self._k))
        kept = self._scores >= self._floor()
        self._rows, self._scores = self._rows[kept], self._scores[kept]

    def _floor(self) -> np.float32:
        """Return the lowest fast score of a candidate, in single precision so that no score must be converted."""
        floor = max(self._reached - 2 * self._error, -(2.0**126))
        return np.float32(np.nextafter(np.float32(floor), np.float32(-np.inf)))


def _reached(scores: Vectors, k: int) -> float:
    """Return a score that at least k documents reach, and not many more.

    It is the k-th largest of the maxima of bundles of scores. Each of these k maxima belongs to a different document.
    """
    size = max(1, min(BUNDLE_SCORES, len(scores) // (4 * k)))
    count = len(scores) // size
    return kth_best(scores[: size * count].reshape(size, count).max(axis=0), k)
