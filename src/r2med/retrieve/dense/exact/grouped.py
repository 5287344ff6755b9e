"""Shortlists by NumPy: some steps for all the queries that a thread has."""

from __future__ import annotations

from functools import partial

import numpy as np
import numpy.typing as npt

from r2med.encoders.encoder import Vectors
from r2med.engine.threads import share
from r2med.retrieve.dense.exact.arrays import Asked, Exact, Positions, Rows, Step, check_scores
from r2med.retrieve.dense.exact.rescoring import Rescorer
from r2med.retrieve.dense.exact.rounding import LEAST, Rounding
from r2med.retrieve.dense.exact.shortlist import BUNDLE, SAMPLED, SPARE, Shortlists, parts
from r2med.retrieve.dense.exact.workspace import Workspace

GROUPS = 4
"""Threads that choose by NumPy: each of many short steps needs the interpreter's lock."""


class GroupedShortlists:
    """Shortlists of all queries, of which each thread has some."""

    def __init__(
        self, asked: Asked, rounding: Rounding, rescorer: Rescorer, workspace: Workspace, threads: int
    ) -> None:
        lines = [slice(*part) for part in parts(len(asked.queries), min(threads, GROUPS))]
        self._groups = [(each, Group(each, asked, rounding, rescorer)) for each in lines]
        self._workspace = workspace

    def settle(self) -> None:
        """Score all candidates exactly and keep the k best: their vectors are not needed any more."""
        share(lambda group: group[1].settle(), self._groups, GROUPS)

    def step(self, scores: Vectors, rows: Rows, last: bool) -> Step:
        """Return what is to be done when the scores of some documents are there; they may be written after this."""
        return partial(self._choose, scores, rows, last)

    def _choose(self, scores: Vectors, rows: Rows, last: bool) -> list[tuple[Rows, Vectors]]:
        """Take the candidates out of scores, which may have room behind them.

        Returns the k best of each query as (rows, scores), in no particular order, after the last ones.
        """

        mask = self._workspace.take("mask", (len(scores), len(rows)), np.bool_)

        def choose(group: tuple[slice, Group]) -> None:
            group[1].choose(scores[group[0], : len(rows)], rows, mask[group[0]])
            if last:
                group[1].finish()

        share(choose, self._groups, GROUPS)
        return [result for _, group in self._groups for result in group.results()] if last else []


class Group(Shortlists):
    """The shortlists of the queries that one thread has."""

    def choose(self, scores: Vectors, rows: Rows, mask: npt.NDArray[np.bool_]) -> None:
        """Take the candidates out of the scores of some documents. The mask is of the shape of the scores."""
        if np.isneginf(self.kth_best).any():
            self.kth_best = np.maximum(self.kth_best, reach(scores, self._k))
        floors = _below(self.kth_best - self.rounding.margins(self._lines))
        flat = np.flatnonzero(np.greater_equal(scores, floors, out=mask))
        lines, columns = np.divmod(flat, scores.shape[1])
        self._add(lines, rows[columns], scores[lines, columns])
        if self.lengths.max(initial=0) > 8 * self._k + 2 * SPARE:
            self._thin()
            # Masses of near ties: only exact scores can thin them out. One query at a time, for there are masses.
            for line in np.flatnonzero(self.lengths > 4 * self._k + SPARE).tolist():
                self.settle_line(line)

    def settle(self) -> None:
        """Score all candidates exactly and keep the k best."""
        for line in range(len(self.lengths)):
            self.settle_line(line)

    def finish(self) -> None:
        """Keep the k best."""
        self._thin()
        worst, bound = self._rescore(*self._sample()), 0.0
        while (needed := max(LEAST, 3 * worst)) > bound:
            bound = 4 / 3 * needed
            worst = self._rescore(*self._near_ties(bound))
        self._cut()

    def results(self) -> list[tuple[Rows, Vectors]]:
        """Return (rows, scores) of each query, in no particular order. Raises ValueError if a score is not finite."""
        width = self.lengths.max(initial=0)
        rows, scores = self.rows[:, :width].copy(), self.scores[:, :width].copy()
        check_scores(rows, np.where(np.arange(width) < self.lengths[:, None], scores, 0))
        return [(rows[line, :n], scores[line, :n]) for line, n in enumerate(self.lengths.tolist())]

    def _add(self, lines: Positions, rows: Rows, scores: Vectors) -> None:
        """Add candidates, ascending by line."""
        counts = np.bincount(lines, minlength=len(self.lengths))
        before, self.lengths = self.lengths, self.lengths + counts
        room = self.rows.shape[1]
        if (longest := int(self.lengths.max(initial=0))) > room:
            wider = ((0, 0), (0, max(longest, 2 * room, 2 * self._k) - room))
            self.rows, self.scores = np.pad(self.rows, wider), np.pad(self.scores, wider)
            self.exact = np.pad(self.exact, wider)
        columns = np.arange(len(lines)) + np.repeat(before - np.cumsum(counts) + counts, counts)
        self.rows[lines, columns], self.scores[lines, columns], self.exact[lines, columns] = rows, scores, False

    def _thin(self) -> None:
        """Drop those further than the margin below the k-th best; best first after that."""
        scores, k = self._padded(), self._k
        width = scores.shape[1]
        order = _descending(scores)
        if width >= k:
            self.kth_best = np.maximum(self.kth_best, np.take_along_axis(scores, order[:, k - 1, None], axis=1)[:, 0])
        above = scores >= _below(self.kth_best - self.rounding.margins(self._lines))
        self.lengths = np.minimum(self.lengths, above.sum(axis=1))
        kept = int(self.lengths.max(initial=0))
        for array in (self.rows, self.scores, self.exact):
            array[:, :kept] = np.take_along_axis(array[:, :width], order[:, :kept], axis=1)

    def _cut(self) -> None:
        """Keep the k best, ties by rank; all scores that decide must be exact."""
        scores, k = self._padded(), self._k
        if scores.shape[1] > k:
            mixed = scores[:, :k].min(axis=1) <= scores[:, k:].max(axis=1)
            for line in np.flatnonzero(mixed & (self.lengths > k)).tolist():
                self._cut_line(line)
        self.lengths = np.minimum(self.lengths, k)

    def _padded(self) -> Vectors:
        """Return the scores, minus infinity where a line is shorter than others."""
        width = int(self.lengths.max(initial=0))
        scores = self.scores[:, :width]
        scores[np.arange(width) >= self.lengths[:, None]] = -np.inf
        return scores

    def _sample(self) -> tuple[Positions, Positions]:
        """Return (lines, columns) of some evenly spaced candidates of each line, of those not exact."""
        depths = np.minimum(self.lengths, self._k)
        places = np.linspace(0, 1, max(8, SAMPLED // len(depths)))
        columns = (places * np.maximum(depths - 1, 0)[:, None]).astype(np.int64)
        lines = np.broadcast_to(np.arange(len(columns))[:, None], columns.shape)
        wanted = (depths > 0)[:, None] & ~self.exact[lines, columns] if self.exact.size else columns < 0
        return lines[wanted], columns[wanted]

    def _near_ties(self, bound: float) -> tuple[Positions, Positions]:
        """Return (lines, columns) of candidates, not exact yet, that rounding may have moved, also over the cut."""
        scores = self._padded().astype(np.float64)
        width = scores.shape[1]
        sizes = np.abs(scores[:, :-1]) + self.rounding.unrelated(self._lines)[:, None]
        # Two deviations, and two steps of float32: beyond that the rounded scores differ, and in this order.
        near = (2 * bound + 2.0**-22) * sizes + 2.0**-125
        with np.errstate(invalid="ignore"):  # behind the end of a shorter line
            close = np.abs(scores[:, 1:] - scores[:, :-1]) <= near
        tied = np.zeros(scores.shape, np.bool_)
        tied[:, 1:] = close
        tied[:, :-1] |= close
        if width > self._k:
            cut = scores[:, self._k - 1] + self.rounding.margins(self._lines)
            tied |= (
                (scores <= cut[:, None])
                & (np.arange(width) < self.lengths[:, None])
                & (self.lengths > self._k)[:, None]
            )
        lines, columns = np.nonzero(tied & ~self.exact[:, :width])
        return lines, columns


def reach(scores: Vectors, k: int) -> Vectors:
    """Return for each line a score that at least k of it reach, and not many more.

    It is the k-th largest of the maxima of bundles of scores: each of those k maxima is another document's score.
    """
    lines, width = scores.shape
    if width < k:
        return np.full(lines, -np.inf, np.float32)
    size = max(1, min(BUNDLE, width // (4 * k)))
    count = width // size
    maxima = scores[:, : size * count].reshape(lines, size, count).max(axis=1) if size > 1 else scores
    kth = np.partition(maxima, count - k, axis=1)[:, count - k]
    return np.where(np.isnan(kth), np.float32(-np.inf), kth)  # a sum that exceeds float32: no score is below it


def _descending(scores: Vectors) -> Positions:
    """Return the columns of each line, best first."""
    # Score and column in one integer: sorting those takes half as long as sorting columns by their scores.
    bits = scores.view(np.int32)
    keys = (~(bits ^ ((bits >> 31) & 0x7FFFFFFF))).astype(np.int64) << 32 | np.arange(scores.shape[1])
    keys.sort(axis=1)
    return np.asarray(keys & 0xFFFFFFFF)


def _below(floors: Exact) -> Vectors:
    """Return floors as a column in single precision: a comparison with float64 would convert every score."""
    return np.nextafter(floors.astype(np.float32), np.float32(-np.inf))[:, None]
