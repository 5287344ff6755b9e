"""The documents that may be among a query's k best, and how they are picked out of a row of scores."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from r2med.encoders.encoder import Vectors
from r2med.retrieve.dense.rescoring import Positions, Rows
from r2med.retrieve.run import best

SAMPLE = 4096
"""Scores that the threshold is guessed from. Partitioning all 60,000 of a row costs four times as much."""


@dataclass
class Candidates:
    """Rows and scores of one query, best first; `exact` says which scores decide and which are only fast."""

    rows: Rows
    scores: Vectors
    exact: npt.NDArray[np.bool_]
    best: float = -np.inf
    """The k-th best score so far: minus infinity while there are fewer than k."""

    @classmethod
    def none(cls) -> Candidates:
        """Return an empty list."""
        return cls(np.empty(0, np.int32), np.empty(0, np.float32), np.empty(0, np.bool_))

    def __len__(self) -> int:
        return len(self.rows)

    def add(self, rows: Rows, scores: Vectors, k: int, margin: float) -> None:
        """Add candidates, then drop those further than the margin below the k-th best; best first after that."""
        if len(self):
            rows, scores = np.concatenate((self.rows, rows)), np.concatenate((self.scores, scores))
            exact = np.concatenate((self.exact, np.zeros(len(rows) - len(self), np.bool_)))
        else:
            exact = np.zeros(len(rows), np.bool_)
        lower = -scores
        order = np.argsort(lower)
        if len(order) >= k:
            self.best = max(self.best, float(scores[order[k - 1]]))
            order = order[: np.searchsorted(lower, -(self.best - margin), side="right", sorter=order)]
        self.rows, self.scores, self.exact = rows[order], scores[order], exact[order]

    def sample(self, depth: int, wanted: int) -> Positions:
        """Return up to `wanted` evenly spaced positions among the first, of those that are not exact."""
        positions = np.linspace(0, depth - 1, min(wanted, depth)).astype(np.int64)
        return positions[~self.exact[positions]]

    def keep_best(self, k: int, ranks: npt.NDArray[np.int32]) -> None:
        """Keep the k best, in no particular order, ties by rank; all scores that decide must be exact."""
        if len(self) > k and self.scores[:k].min() > self.scores[k:].max():
            self._take(slice(k))
        elif len(self) > k:  # not a sort of all: it would take as long as choosing them did
            self._take(best(self.scores, k, ranks[self.rows]))
        if len(self) == k:
            self.best = max(self.best, float(self.scores.min()))

    def sort(self) -> None:
        """Put them into order again, best first."""
        self._take(np.argsort(-self.scores))

    def _take(self, positions: Positions | slice) -> None:
        self.rows, self.scores, self.exact = self.rows[positions], self.scores[positions], self.exact[positions]


def kth_best(scores: Vectors, k: int) -> float:
    """Return the k-th largest score, or minus infinity if there are fewer."""
    return float(np.partition(scores, len(scores) - k)[len(scores) - k]) if len(scores) >= k else -np.inf


def choose(row: Vectors, k: int, best: float, margin: float) -> Positions:
    """Return at least the positions whose score is within the margin of the k-th best of `row` and all before it."""
    guess = max(best, _guess(row, k))
    positions = np.flatnonzero(row >= guess - margin)
    if guess > best and np.count_nonzero(row[positions] >= guess) < k:  # the sample promised too much
        positions = np.flatnonzero(row >= max(best, kth_best(row, k)) - margin)
    return positions


def _guess(row: Vectors, k: int) -> float:
    """Return a score that about k and very likely more of the row reach, from an evenly spaced sample."""
    step = len(row) // SAMPLE
    if step < 2:
        return kth_best(row, k)
    sample = row[::step]
    expected = k / step
    # Three standard deviations above what the sample would hold of the k best, were they spread at random.
    return kth_best(sample, int(expected + 3 * np.sqrt(expected) + 3))
