"""Shortlists by compiled loops instead of NumPy: one call for each step of many queries."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import numpy.typing as npt

from r2med.encoders.encoder import Vectors
from r2med.engine.threads import share
from r2med.retrieve.dense import kernels
from r2med.retrieve.dense.arithmetic import Positions, Rows
from r2med.retrieve.dense.rescoring import Rescorer
from r2med.retrieve.dense.rounding import Rounding
from r2med.retrieve.dense.shortlist import SAMPLED, SPARE, Shortlists


class CompiledShortlists(Shortlists):
    """Decides what the others decide; each thread does so for some of the queries, without the interpreter's lock."""

    def __init__(
        self, k: int, ranks: npt.NDArray[np.int32], rounding: Rounding, rescorer: Rescorer, threads: int
    ) -> None:
        count = len(rescorer.queries)
        super().__init__(slice(0, count), k, ranks, rounding, rescorer)
        shape = (count, 4 * k + SPARE)
        self.rows, self.scores = np.empty(shape, np.int32), np.empty(shape, np.float32)
        self.exact = np.empty(shape, np.bool_)
        self._threads = min(threads, count)
        ends = [count * number // self._threads for number in range(self._threads + 1)]
        self._parts = list(pairwise(ends))

    def choose(self, scores: Vectors, rows: Rows) -> None:
        """Take the candidates out of the scores of some documents; there may be room behind them."""
        margins, lists = self._rounding.margins(self._lines), self._all()

        def choose(part: tuple[int, int]) -> None:
            (line, end), at = part, 0
            while True:
                line, at = kernels.choose(scores, rows, self._k, margins, lists, line, at, end)
                if line == end:
                    return
                self._settle(line)

        share(choose, self._parts, self._threads)

    def finish(self) -> None:
        """Keep the k best."""
        rescorer, lists, margins = self._rescorer, self._all(), self._rounding.margins(self._lines)
        side = kernels.Side(rescorer.queries, rescorer.norms, self._rounding.unrelated(self._lines), rescorer.cosine)
        places, sampled = rescorer.places(), max(8, SAMPLED * len(self._parts) // len(self.lengths))
        mixed = np.empty(len(self.lengths), np.bool_)
        doubtful: list[tuple[Positions, Positions]] = []

        def refine(part: tuple[int, int]) -> None:
            doubtful.append(kernels.refine(self._k, margins, lists, side, places, sampled, *part, mixed))

        share(refine, self._parts, self._threads)
        self._rescore(*map(np.concatenate, zip(*doubtful, strict=True)))
        for line in np.flatnonzero(mixed).tolist():
            self._cut_line(line)
        self.lengths = np.minimum(self.lengths, self._k)

    def _all(self) -> kernels.Lists:
        return kernels.Lists(self.rows, self.scores, self.exact, self.lengths, self.best)
