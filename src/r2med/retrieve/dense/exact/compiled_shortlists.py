"""Shortlists by compiled loops: each thread chooses for some of the queries, without the interpreter's lock."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

import numpy as np

from r2med.encoders.encoder import Vectors
from r2med.engine.threads import share
from r2med.retrieve.dense.exact import kernels
from r2med.retrieve.dense.exact.arrays import Asked, Rows, check_scores
from r2med.retrieve.dense.exact.jit import reached, wait
from r2med.retrieve.dense.exact.product_kernels import Product
from r2med.retrieve.dense.exact.rescoring import Rescorer
from r2med.retrieve.dense.exact.rounding import Rounding
from r2med.retrieve.dense.exact.shortlist import SAMPLED, SPARE, Shortlists, parts
from r2med.retrieve.dense.exact.workspace import Workspace

LINES = 8
"""Queries of a part at least, if each thread has so many."""
PARTS = 4
"""Parts for each thread at most: one that falls behind has fewer of them."""

Result = TypeVar("Result")


class CompiledShortlists(Shortlists):
    """Makes the decisions of GroupedShortlists; each thread for some of the queries, without the interpreter's lock."""

    def __init__(
        self, asked: Asked, rounding: Rounding, rescorer: Rescorer, workspace: Workspace, threads: int
    ) -> None:
        lines = len(asked.queries)
        super().__init__(slice(0, lines), asked, rounding, rescorer, workspace)
        shape = (lines, 4 * asked.k + SPARE)
        self.rows = workspace.take("rows of candidates", shape, np.int32)
        self.scores = workspace.take("scores of candidates", shape, np.float32)
        self.exact = workspace.take("exact candidates", shape, np.bool_)
        self.threads, self._parts = threads, parts(lines, min(threads * PARTS, max(threads, lines // LINES)))

    def choose(self, scores: Vectors, rows: Rows) -> None:
        """Take the candidates out of the scores of some documents; there may be room behind them."""
        margins, lists = self._rounding.margins(self._lines), self._arrays()

        def choose(part: tuple[int, int]) -> None:
            (line, end), position = part, 0
            while line < end:
                line, position = kernels.choose(scores, rows, self._k, margins, lists, line, position, end)
                if line < end:
                    self.settle_line(line)

        share(choose, self._parts, self.threads)

    def settle(self) -> None:
        """Score all candidates exactly and keep the k best: their vectors are not needed any more."""
        share(self.settle_line, range(len(self.lengths)), self.threads)

    def last(self, scores: Vectors, rows: Rows) -> FinalStep:
        """Return what is to be done when the last scores are there; they may be written after this."""
        count, rescorer = len(self.lengths), self._rescorer
        starts, ends = np.array(self._parts, np.int64).T
        found = kernels.Found(
            rows=np.zeros((count, self._k), np.int32),
            scores=np.zeros((count, self._k), np.float32),
            mixed=np.zeros(count, np.bool_),
            unsure=np.zeros(count, np.bool_),
            infinite=np.zeros(count, np.bool_),
            doubtful=np.zeros(self.rows.shape, np.bool_),
        )
        work = kernels.Finishing(
            scores=scores,
            rows=rows,
            k=self._k,
            bounds=self._rounding.bounds,
            longest=self.longest,
            margins=np.empty(count),
            lists=self._arrays(),
            side=kernels.QuerySide(rescorer.queries, rescorer.norms, np.empty(count), rescorer.cosine),
            blocks=rescorer.addresses(),
            sampled=max(8, SAMPLED * len(ends) // count),
            ends=ends.copy(),
            line=starts.copy(),
            position=np.zeros(len(ends), np.int64),
            parts_taken=np.zeros(1, np.int64),
            parts_done=np.zeros(1, np.int64),
            found=found,
        )
        return FinalStep(self, work)

    @property
    def longest(self) -> float:
        """The largest length of a document: how far scores may be off depends on it."""
        return float(self._rounding.longest)

    def settle_part(self, work: kernels.Finishing, part: int) -> None:
        """Finish a part whose lists were full."""
        while work.line[part] < work.ends[part]:
            self.settle_line(work.line[part])
            kernels.finish_part(work, part, self.longest)

    def results(self, found: kernels.Found) -> list[tuple[Rows, Vectors]]:
        """Return what is found, doubtful scores decided as on all devices. Raises ValueError if one is infinite."""
        unsure, mixed = np.flatnonzero(found.unsure), np.flatnonzero(found.mixed)
        if len(unsure):
            lines, columns = np.nonzero(found.doubtful[unsure])
            self._rescore(unsure[lines], columns)
        for line in mixed.tolist():
            self._cut_line(line)
        ends = np.minimum(self.lengths, self._k).tolist()
        for line in {*unsure.tolist(), *mixed.tolist(), *np.flatnonzero(found.infinite).tolist()}:
            here = line, slice(ends[line])
            found.rows[here], found.scores[here] = self.rows[here], self.scores[here]
            check_scores(found.rows[here], found.scores[here])
        return [(of[:end], by[:end]) for of, by, end in zip(found.rows, found.scores, ends, strict=True)]

    def _arrays(self) -> kernels.CandidateArrays:
        return kernels.CandidateArrays(self.rows, self.scores, self.exact, self.lengths, self.kth_best)


class FinalStep:
    """The last choice, and all that follows it.

    Threads that multiply the last documents join it by themselves when they have no more to multiply; others are asked.
    All of them take parts from one counter, so it does not matter who comes. The lists are held as long as a thread may
    write to them.
    """

    def __init__(self, lists: CompiledShortlists, work: kernels.Finishing) -> None:
        self._lists, self.work = lists, work
        self._errors: list[BaseException] = []

    def join(self, product: Product, patient: bool) -> int:
        """Multiply, and help if all is ready soon after; return the next piece to multiply."""
        return self._caught(lambda: kernels.multiply_and_finish(product, self.work, patient))

    def __call__(self) -> list[tuple[Rows, Vectors]]:
        """Return the k best of each query as (rows, scores), in no particular order."""
        lists, work, count, longest = self._lists, self.work, len(self.work.ends), self._lists.longest

        def finish(_: int) -> None:
            self._caught(lambda: kernels.finish(work, longest))

        if work.parts_taken[0] < count:
            share(finish, range(lists.threads), lists.threads, lambda: reached(work.parts_done, count))
        while not (self._errors or reached(work.parts_done, count) or wait(work.parts_done, count)):
            time.sleep(0)  # a thread that joined by itself has no core
        for error in self._errors:
            raise error
        full = np.flatnonzero(work.line < work.ends).tolist()
        share(lambda part: lists.settle_part(work, part), full, lists.threads)
        return lists.results(work.found)

    def _caught(self, call: Callable[[], Result]) -> Result:
        """Return what a call returns; whoever waits for its part is told if it fails."""
        try:
            return call()
        except BaseException as error:
            self._errors.append(error)
            raise
