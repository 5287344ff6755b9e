"""Products and shortlists by compiled loops instead of NumPy: one call for each step of a thread."""

from __future__ import annotations

import threading
import time

import numpy as np
import numpy.typing as npt

from r2med.encoders.encoder import Vectors
from r2med.engine.threads import share
from r2med.retrieve.dense import kernels, product_kernels
from r2med.retrieve.dense.arithmetic import Rows, check_scores, sgemm_address
from r2med.retrieve.dense.gpu_loader import Block
from r2med.retrieve.dense.jit import release, wait
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


class Expected:
    """What threads go on with after the last product, and what went wrong there."""

    def __init__(self, work: kernels.Finishing) -> None:
        self.work = work
        self.errors: list[BaseException] = []

    def until_done(self) -> None:
        """Finish parts; return when all are done, or when some never will."""
        kernels.finish(self.work)
        while not self.errors and not wait(self.work.done, len(self.work.ends)):
            time.sleep(0)  # others have the cores


class CompiledProducts(Products):
    """Products of which a thread takes one after the other without the interpreter's lock."""

    def _multiply(self, batch: list[Block], pieces: list[Piece], scores: Vectors, then: Expected | None = None) -> None:
        if not self._queries.size:
            return super()._multiply(batch, pieces, scores)
        product, count, here = self.product(batch, pieces, scores), len(pieces), threading.get_ident()

        def multiply(_: int) -> None:
            number = 0
            if then is None or threading.get_ident() == here:
                while number < count:
                    number = product_kernels.multiply(product)
                wait(product.done, count)
                return
            try:
                while number < count:
                    number = kernels.multiply_and_finish(product, then.work)
            except BaseException as error:
                then.errors.append(error)
                raise

        share(multiply, range(self._threads), self._threads, lambda: bool(product.done[0] == count))
        self._rounding.saw(product.longest.max())
        return super()._multiply(batch, [pieces[number] for number in np.flatnonzero(product.odd)], scores)

    def product(self, batch: list[Block], pieces: list[Piece], scores: Vectors) -> product_kernels.Product:
        """Return what threads have to multiply."""
        return product_kernels.Product(
            blas=sgemm_address(),
            queries=self._queries,
            cosine=self._cosine,
            pieces=_table(batch, pieces),
            scores=scores,
            most=max(1, CALL // (self._queries.size * MOST)),
            taken=np.zeros(1, np.int64),
            done=np.zeros(1, np.int64),
            longest=np.zeros(len(pieces)),
            odd=np.zeros(len(pieces), np.bool_),
        )


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
        self._expected: Expected | None = None

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

    def expect(self, scores: Vectors, rows: Rows) -> Expected:
        """Return what is to be done as soon as the last scores are there."""
        count, rescorer = len(self.lengths), self._rescorer
        starts, ends = np.array(self._parts, np.int64).T
        found = kernels.Found(
            np.zeros((count, self._k), np.int32),
            np.zeros((count, self._k), np.float32),
            np.zeros(count, np.bool_),
            np.zeros(count, np.bool_),
            np.zeros(self.rows.shape, np.bool_),
        )
        work = kernels.Finishing(
            scores=scores,
            rows=rows,
            k=self._k,
            margins=np.empty(count),
            lists=self._arrays(),
            side=kernels.QuerySide(rescorer.queries, rescorer.norms, np.empty(count), rescorer.cosine),
            blocks=rescorer.addresses(),
            sampled=max(8, SAMPLED * len(ends) // count),
            ends=ends.copy(),
            line=starts.copy(),
            position=np.zeros(len(ends), np.int64),
            ready=np.zeros(1, np.int64),
            taken=np.zeros(1, np.int64),
            done=np.zeros(1, np.int64),
            found=found,
        )
        self._expected = Expected(work)
        return self._expected

    def finish(self, scores: Vectors, rows: Rows) -> list[tuple[Rows, Vectors]]:
        """Choose for the last time; return the k best of each query as (rows, scores), in no particular order."""
        expected = self._expected or self.expect(scores, rows)
        work, found, here = expected.work, expected.work.found, threading.get_ident()
        work.margins[:] = self._rounding.margins(self._lines)
        work.side.unrelated[:] = self._rounding.unrelated(self._lines)
        release(work.ready)

        def finish(_: int) -> None:
            if threading.get_ident() == here:
                expected.until_done()
            else:
                kernels.finish(work)

        share(finish, range(self._threads), self._threads, lambda: bool(work.done[0] == len(work.ends)))
        for error in expected.errors:
            raise error
        for part in np.flatnonzero(work.line < work.ends).tolist():
            while work.line[part] < work.ends[part]:
                self.settle_line(work.line[part])
                kernels.finish_part(work, part)
        self._decide_doubtful(found)
        check_scores(found.rows, found.scores)
        ends = np.minimum(self.lengths, self._k).tolist()
        return [(of[:end], by[:end]) for of, by, end in zip(found.rows, found.scores, ends, strict=True)]

    def _decide_doubtful(self, found: kernels.Found) -> None:
        """Score what is doubtful as all devices do, and cut the lines that then may have others among their best."""
        unsure = np.flatnonzero(found.unsure)
        if len(unsure):
            lines, columns = np.nonzero(found.doubtful[unsure])
            self._rescore(unsure[lines], columns)
        mixed = np.flatnonzero(found.mixed).tolist()
        for line in mixed:
            self._cut_line(line)
        for line in {*unsure.tolist(), *mixed}:
            end = min(self.lengths[line], self._k)
            found.rows[line, :end], found.scores[line, :end] = self.rows[line, :end], self.scores[line, :end]

    def _arrays(self) -> kernels.CandidateArrays:
        return kernels.CandidateArrays(self.rows, self.scores, self.exact, self.lengths, self.kth_best)


def tried_out() -> tuple[type[Products], type[CompiledShortlists]]:
    """Compile, or read what was compiled, in a search of two documents; return what then can multiply and choose.

    All of it: a thread that compiles when the process ends would abort it.
    """
    queries, rows = np.eye(2, dtype=np.float32), np.arange(2, dtype=np.int32)
    rescorer = Rescorer(queries, cosine=False)
    batch = [(0, rescorer.hold(0, queries))]
    rounding, scores = Rounding(rescorer.norms, 2, cosine=False), np.empty((2, 4), np.float32)
    lists = CompiledShortlists(1, rows, rounding, rescorer, threads=1)
    products = CompiledProducts if sgemm_address() else Products
    products(queries, False, rounding, threads=1).write(batch, scores)
    lists.choose(scores, rows[:0])
    found = lists.finish(scores, rows)
    if [best.tolist() for best, _ in found] != [[0], [1]]:
        raise RuntimeError(f"two documents were found as {found}")
    if products is CompiledProducts:
        product = CompiledProducts(queries, False, rounding, threads=1).product(batch, [Piece(0, 0, 2, 0)], scores)
        kernels.multiply_and_finish(product, lists.expect(scores, rows).work)
    return products, CompiledShortlists
