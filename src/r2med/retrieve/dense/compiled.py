"""Shortlists by compiled loops instead of NumPy: one call for each step of many queries."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from r2med.encoders.encoder import Vectors
from r2med.engine.threads import share
from r2med.retrieve.dense import kernels
from r2med.retrieve.dense.arithmetic import Exact, Positions, Rows, check_scores
from r2med.retrieve.dense.rescoring import Rescorer
from r2med.retrieve.dense.rounding import Rounding
from r2med.retrieve.dense.shortlist import SAMPLED, SPARE, Shortlists, parts

LINES = 8
"""Queries of a part at least, if each thread has so many: a part needs the interpreter's lock."""
PARTS = 4
"""Parts for each thread at most: one that falls behind has fewer of them."""


class CompiledShortlists(Shortlists):
    """Makes the decisions of GroupedShortlists; each thread for some of the queries, without the interpreter's lock."""

    def __init__(
        self, k: int, ranks: npt.NDArray[np.int32], rounding: Rounding, rescorer: Rescorer, threads: int
    ) -> None:
        lines = slice(0, len(rescorer.queries))
        super().__init__(lines, k, ranks, rounding, rescorer, room=4 * k + SPARE)
        self._threads, self._parts = threads, parts(lines.stop, min(threads * PARTS, max(threads, lines.stop // LINES)))

    def choose(self, scores: Vectors, rows: Rows) -> None:
        """Take the candidates out of the scores of some documents; there may be room behind them."""
        margins, lists = self._rounding.margins(self._lines), self._arrays()
        share(lambda part: self._choose(scores, rows, margins, lists, *part), self._parts, self._threads)

    def settle(self) -> None:
        """Score all candidates exactly and keep the k best: their vectors are not needed any more."""
        share(self.settle_line, range(len(self.lengths)), self._threads)

    def finish(self, scores: Vectors, rows: Rows) -> list[tuple[Rows, Vectors]]:
        """Choose for the last time; return the k best of each query as (rows, scores), in no particular order."""
        rescorer, lists, margins = self._rescorer, self._arrays(), self._rounding.margins(self._lines)
        side = kernels.QuerySide(
            rescorer.queries, rescorer.norms, self._rounding.unrelated(self._lines), rescorer.cosine
        )
        blocks, sampled = rescorer.addresses(), max(8, SAMPLED * len(self._parts) // len(self.lengths))
        shape = (len(self.lengths), self._k)
        found = kernels.Found(np.zeros(shape, np.int32), np.zeros(shape, np.float32), np.empty(shape[0], np.bool_))
        doubtful: list[tuple[Positions, Positions]] = []

        def refine(part: tuple[int, int]) -> None:
            self._choose(scores, rows, margins, lists, *part)
            doubtful.append(kernels.refine(self._k, margins, lists, side, blocks, sampled, *part, found))

        share(refine, self._parts, self._threads)
        lines, columns = map(np.concatenate, zip(*doubtful, strict=True))
        self._rescore(lines, columns)
        mixed = np.flatnonzero(found.mixed).tolist()
        for line in mixed:
            self._cut_line(line)
        ends = np.minimum(self.lengths, self._k).tolist()
        for line in {*lines.tolist(), *mixed}:
            end = ends[line]
            found.rows[line, :end], found.scores[line, :end] = self.rows[line, :end], self.scores[line, :end]
        check_scores(found.rows, found.scores)
        return [(of[:end], by[:end]) for of, by, end in zip(found.rows, found.scores, ends, strict=True)]

    def _choose(
        self, scores: Vectors, rows: Rows, margins: Exact, lists: kernels.CandidateArrays, line: int, end: int
    ) -> None:
        position = 0
        while line < end:
            line, position = kernels.choose(scores, rows, self._k, margins, lists, line, position, end)
            if line < end:
                self.settle_line(line)

    def _arrays(self) -> kernels.CandidateArrays:
        return kernels.CandidateArrays(self.rows, self.scores, self.exact, self.lengths, self.kth_best)


def try_out() -> None:
    """Compile, or read what was compiled, in a search of two documents."""
    queries, rows = np.eye(2, dtype=np.float32), np.arange(2, dtype=np.int32)
    rescorer = Rescorer(queries, cosine=False)
    rescorer.hold(0, queries)
    lists = CompiledShortlists(1, rows, Rounding(rescorer.norms, 2, cosine=False), rescorer, threads=1)
    found = lists.finish(queries.copy(), rows)
    if [best.tolist() for best, _ in found] != [[0], [1]]:
        raise RuntimeError(f"two documents were found as {found}")
