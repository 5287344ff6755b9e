"""The k best documents of each query, and the documents that may be among them.

Fast scores propose documents and exact scores decide. A fast score has an error of at most a bound that follows from
the lengths of the query and of the longest document. If k documents reach a score, a document two errors below it
cannot be among the k best. All others are scored exactly, and only exact scores are returned.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from r2med.data.runs.ties import best, guessed_best, kth_best
from r2med.models.encoders.encoder import Vectors
from r2med.systems.retrieve.exact.text_vectors import Exact, Hits, Places, Rows


class Nearest:
    """The rows and exact scores of at most k documents for each query."""

    def __init__(self, queries: int, k: int, ranks: Rows) -> None:
        self.k, self._ranks = k, ranks
        self.hits: list[Hits] = [(np.empty(0, np.int32), np.empty(0, np.float32))] * queries
        self.reached: Exact = np.full(queries, -np.inf)
        """For each query, a score that k documents reach."""

    def add(self, lines: Places, rows: Rows, scores: Exact) -> None:
        """Add documents with exact scores, query by query, and keep the k best of each."""
        single = scores.astype(np.float32)
        bounds = np.flatnonzero(np.diff(lines, prepend=-1, append=-1))
        for begin, end in pairwise(bounds.tolist()):
            line = int(lines[begin])
            own_rows = np.concatenate((self.hits[line][0], rows[begin:end]))
            own_scores = np.concatenate((self.hits[line][1], single[begin:end]))
            kept = best(own_scores, self.k, self._ranks[own_rows])
            self.hits[line] = own_rows[kept], own_scores[kept]
            if len(kept) == self.k:
                self.reached[line] = own_scores[kept].min()


def candidates(scores: Vectors, k: int, errors: Exact, reached: Exact) -> Places:
    """Return the positions, in the ravelled matrix, of the documents that may be among the k best of their line.

    `reached` are exact scores that k documents of earlier tiles reach. A floor is guessed from a sample, and proven.
    Each step takes several queries at once: it gives up the interpreter lock, and waits for it.
    """
    width, floors = scores.shape[1], _below(reached - errors)
    guess = np.maximum(guessed_best(scores, k), floors)
    positions = np.flatnonzero(scores >= guess[:, None])
    fast = scores.ravel()[positions]
    bounds = np.searchsorted(positions, width * np.arange(len(scores) + 1))
    highest = [kth_best(fast[begin:end], k) for begin, end in pairwise(bounds)]
    proven = np.maximum(_below(np.array(highest) - 2 * errors), floors)
    if (guess > proven).any():  # The guess left out some that the error allows, or found less than k documents.
        return np.flatnonzero(scores >= np.minimum(guess, proven)[:, None])
    return positions[fast >= np.repeat(proven, np.diff(bounds))]


def _below(floors: Exact) -> Vectors:
    """Return floors in single precision, so that no score must be converted."""
    return np.nextafter(floors.astype(np.float32), np.float32(-np.inf))
