"""Products and shortlists by compiled loops instead of NumPy: one call for each step of a thread."""

from __future__ import annotations

import threading

import numpy as np
import numpy.typing as npt

from r2med.encoders.encoder import Vectors
from r2med.engine.threads import share
from r2med.retrieve.dense import kernels, product_kernels
from r2med.retrieve.dense.arithmetic import Rows, check_scores, sgemm_address
from r2med.retrieve.dense.gpu_loader import Block
from r2med.retrieve.dense.products import MOST, Piece, Products
from r2med.retrieve.dense.rescoring import Rescorer
from r2med.retrieve.dense.rounding import Rounding
from r2med.retrieve.dense.shortlist import SAMPLED, SPARE, Shortlists, parts

CALL = 1 << 33
"""Multiplications that one call makes at most: Ctrl-C waits for it."""
LINES = 8
"""Queries of a part at least, if each thread has so many: a part needs the interpreter's lock."""
PARTS = 4
"""Parts for each thread at most: one that falls behind has fewer of them."""


class CompiledProducts(Products):
    """Products of which a thread takes one after the other without the interpreter's lock."""

    def _multiply(self, batch: list[Block], pieces: list[Piece], scores: Vectors) -> None:
        if not self._queries.size:
            return super()._multiply(batch, pieces, scores)
        table, blas, here = _table(batch, pieces), sgemm_address(), threading.get_ident()
        progress = product_kernels.Progress(
            np.zeros(1, np.int64), np.zeros(1, np.int64), np.zeros(len(pieces)), np.zeros(len(pieces), np.bool_)
        )
        most = max(1, CALL // (self._queries.size * MOST))

        def multiply(_: int) -> None:
            number, waits = 0, threading.get_ident() == here
            while number < len(pieces):
                number = product_kernels.multiply(
                    blas, self._queries, table, self._cosine, scores, most, waits, progress
                )

        share(multiply, range(self._threads), self._threads, lambda: bool(progress.done[0] == len(pieces)))
        self._rounding.saw(progress.longest.max())
        return super()._multiply(batch, [pieces[number] for number in np.flatnonzero(progress.odd)], scores)


def _table(batch: list[Block], pieces: list[Piece]) -> product_kernels.Pieces:
    """Return where the documents of pieces lie in memory."""
    addresses = np.array([block.ctypes.data for _, block in batch], np.int64)
    sizes = np.array([block.strides[0] for _, block in batch], np.int64)
    halves = np.array([block.dtype == np.float16 for _, block in batch], np.bool_)
    blocks, starts, ends, columns = np.array(pieces, np.int64).reshape(-1, 4).T
    at = addresses[blocks] + starts * sizes[blocks]
    return product_kernels.Pieces(at, ends - starts, halves[blocks], columns.copy())


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

        def choose(part: tuple[int, int]) -> None:
            (line, end), position = part, 0
            while line < end:
                line, position = kernels.choose(scores, rows, self._k, margins, lists, line, position, end)
                if line < end:
                    self.settle_line(line)

        share(choose, self._parts, self._threads)

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

        def finish(part: tuple[int, int]) -> None:
            (line, end), position = part, 0
            lines, columns = np.empty(0, np.int64), np.empty(0, np.int64)
            while line < end:
                line, position, lines, columns = kernels.finish(
                    scores, rows, self._k, margins, lists, side, blocks, sampled, part[0], line, position, end, found
                )
                if line < end:
                    self.settle_line(line)
            if len(lines):
                self._rescore(lines, columns)
            mixed = part[0] + np.flatnonzero(found.mixed[slice(*part)])
            for line in mixed.tolist():
                self._cut_line(line)
            for line in {*lines.tolist(), *mixed.tolist()}:
                end = min(self.lengths[line], self._k)
                found.rows[line, :end], found.scores[line, :end] = self.rows[line, :end], self.scores[line, :end]

        share(finish, self._parts, self._threads)
        ends = np.minimum(self.lengths, self._k).tolist()
        results = [(of[:end], by[:end]) for of, by, end in zip(found.rows, found.scores, ends, strict=True)]
        check_scores(found.rows, found.scores)
        return results

    def _arrays(self) -> kernels.CandidateArrays:
        return kernels.CandidateArrays(self.rows, self.scores, self.exact, self.lengths, self.kth_best)


def tried_out() -> tuple[type[Products], type[CompiledShortlists]]:
    """Compile, or read what was compiled, in a search of two documents; return what then can multiply and choose."""
    queries, rows = np.eye(2, dtype=np.float32), np.arange(2, dtype=np.int32)
    rescorer = Rescorer(queries, cosine=False)
    rescorer.hold(0, queries)
    rounding, scores = Rounding(rescorer.norms, 2, cosine=False), np.empty((2, 4), np.float32)
    products = CompiledProducts if sgemm_address() else Products
    products(queries, False, rounding, threads=1).write([(0, queries)], scores)
    found = CompiledShortlists(1, rows, rounding, rescorer, threads=1).finish(scores, rows)
    if [best.tolist() for best, _ in found] != [[0], [1]]:
        raise RuntimeError(f"two documents were found as {found}")
    return products, CompiledShortlists
