"""Shortlists of the documents that may be among the k best of each query.

Fast scores select the documents and exact scores decide. A fast score has an error of at most a bound that follows from
the lengths of the query and of the longest document. If k documents reach a score, a document two errors below it
cannot be among the k best. All others are scored exactly, and only exact scores are returned.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import chain

import numpy as np
import numpy.typing as npt

from r2med.data.runs.ties import best, kth_best
from r2med.foundation.engine import cores, share
from r2med.models.encoders.encoder import Vectors
from r2med.systems.retrieve.exact.exact_scores import ExactScorer
from r2med.systems.retrieve.exact.text_vectors import Exact, Hits, Rows

SPARE_CANDIDATES = 1024
"""Number of candidates beyond twice k that are normal. More indicate many near ties, or that the floor has risen."""
SAMPLE = 4096
"""Number of scores of a query from which a first floor is guessed."""
QUERIES_AT_ONCE = 8
"""Number of queries whose candidates are chosen together. Each step of NumPy gives up the interpreter lock and waits
for it, so that many short steps in many threads take longer than few long ones."""
MIN_QUERIES_PER_THREAD = 4
"""With fewer queries, threads share the documents of each query."""
MIN_SHARED = 1 << 12
"""Minimum number of pairs of query vectors and documents that threads share. Fewer take less time than the threads."""


class Shortlists:
    """The shortlists of all queries."""

    def __init__(self, scorer: ExactScorer, k: int, ranks: Rows, pool: ThreadPoolExecutor) -> None:
        self._scorer, self._pool, self._threads, self._k = scorer, pool, cores(), k
        self._lines = [Shortlist(k, ranks) for _ in range(len(scorer.queries))]

    def choose(self, scores: Vectors, rows: Rows, errors: Exact) -> None:
        """Add the documents of a tile that may be among the k best, given fast scores and the error of each query."""
        size = max(1, min(QUERIES_AT_ONCE, -(-len(scores) // self._threads)))

        def choose(begin: int) -> None:
            here = slice(begin, begin + size)
            lines, own = self._lines[here], np.asarray(errors[here])
            floors = np.array([line.floor(error) for line, error in zip(lines, own.tolist(), strict=True)], np.float32)
            places, fast, counts = _candidates(scores[here], self._k, own, floors)
            ends = np.cumsum(counts).tolist()
            for line, error, end, count in zip(lines, own.tolist(), ends, counts.tolist(), strict=True):
                part = slice(end - count, end)
                line.add(rows[places[part]], fast[part], error)

        share(choose, range(0, len(scores), size), self._pool)
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
        if waiting and self._scorer.can_score_pairs:
            counts = [len(rows) for _, rows in waiting]
            pairs = np.repeat([line for line, _ in waiting], counts), np.concatenate([rows for _, rows in waiting])
            single = np.split(self._scorer.score_pairs(*pairs, self._pool), np.cumsum(counts)[:-1])
            for (line, rows), scores in zip(waiting, single, strict=True):
                self.add_exact(line, rows, scores)
            return
        if len(waiting) < MIN_QUERIES_PER_THREAD * self._threads:
            products = self._scorer.queries.sizes
            shares = {line: self._threads if len(rows) * products[line] >= MIN_SHARED else 1 for line, rows in waiting}
            waiting = [(line, part) for line, rows in waiting for part in np.array_split(rows, shares[line])]
        size = max(1, len(waiting) // (MIN_QUERIES_PER_THREAD * self._threads))
        groups = [waiting[at : at + size] for at in range(0, len(waiting), size)]
        # Threads only add up. The many short steps before and after it would wait for the interpreter lock.
        scored = share(lambda group: [self._scorer.score(*query) for query in group], groups, self._pool)
        for (line, rows), scores in zip(waiting, chain.from_iterable(scored), strict=True):
            self.add_exact(line, rows, scores)


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

    def add(self, rows: Rows, scores: Vectors, error: float) -> None:
        """Add documents that may be among the k best. `rows` ascend and follow those of earlier calls."""
        self._error = max(self._error, error)
        self._rows = np.concatenate((self._rows, rows))
        self._scores = np.concatenate((self._scores, scores))
        if np.isneginf(self._reached) or len(self._rows) > 2 * self._k + SPARE_CANDIDATES:
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
        kept = self._scores >= self.floor(0.0)
        self._rows, self._scores = self._rows[kept], self._scores[kept]

    def floor(self, error: float) -> np.float32:
        """Return the lowest fast score of a candidate, in single precision so that no score must be converted."""
        return _below(max(self._reached - 2 * max(self._error, error), LOWEST))


LOWEST = -(2.0**126)


def _below(floor: float) -> np.float32:
    return np.float32(np.nextafter(np.float32(floor), np.float32(-np.inf)))


def _candidates(
    scores: Vectors, k: int, errors: Exact, floors: Vectors
) -> tuple[npt.NDArray[np.intp], Vectors, npt.NDArray[np.intp]]:
    """Return the places of the documents that may be among the k best of some queries, their scores, and their number.

    Places ascend for each query. Where no floor is known, one is guessed from a sample of the scores, and proven.
    """
    width = scores.shape[1]
    if (floors > _below(LOWEST)).all() or (step := width // SAMPLE) < 2:
        return _reaching(scores, floors)
    expected = k / step
    place = -(-width // step) - int(expected + 3 * expected**0.5 + 3)
    if place < 0:
        return _reaching(scores, floors)
    guess = np.maximum(np.partition(scores[:, ::step], place, axis=1)[:, place], floors)
    found = _reaching(scores, guess)
    ends, counts = np.cumsum(found[2]).tolist(), found[2].tolist()
    proven = [
        max(_below(max(kth_best(found[1][end - count : end], k) - 2 * error, LOWEST)), floor)
        for end, count, error, floor in zip(ends, counts, errors, floors, strict=True)
    ]
    # A guess that is too high found less than k documents, or left out some that the error allows.
    return found if (guess <= proven).all() else _reaching(scores, np.minimum(guess, proven))


def _reaching(scores: Vectors, floors: Vectors) -> tuple[npt.NDArray[np.intp], Vectors, npt.NDArray[np.intp]]:
    """Return the places of the scores that reach the floor of their query, these scores, and their number."""
    lines, width = scores.shape
    flat = np.flatnonzero(scores >= floors[:, None])
    bounds = np.searchsorted(flat, width * np.arange(lines + 1))
    places = flat % width
    return places, scores[flat // width, places], np.diff(bounds)
