"""Shortlists by compiled loops: each thread chooses for some of the queries, without the interpreter's lock."""

from __future__ import annotations

import numpy as np

from r2med.encoders.encoder import Vectors
from r2med.engine.threads import share
from r2med.retrieve.dense.exact import kernels
from r2med.retrieve.dense.exact.arrays import Asked, Rows, check_scores
from r2med.retrieve.dense.exact.product_kernels import Product, nothing
from r2med.retrieve.dense.exact.rescoring import Rescorer
from r2med.retrieve.dense.exact.rounding import Rounding
from r2med.retrieve.dense.exact.shortlist import SAMPLED, SPARE, Shortlists, parts
from r2med.retrieve.dense.exact.team import Team
from r2med.retrieve.dense.exact.workspace import Workspace

LINES = 8
"""Queries of a part at least, if each thread has so many."""
PARTS = 4
"""Parts for each thread at most: one that falls behind has fewer of them."""


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
        self._team = workspace.team = workspace.team or Team()
        self.threads, self._parts = threads, parts(lines, min(threads * PARTS, max(threads, lines // LINES)))

    def settle(self) -> None:
        """Score all candidates exactly and keep the k best: their vectors are not needed any more."""
        share(self.settle_line, range(len(self.lengths)), self.threads)

    def step(self, scores: Vectors, rows: Rows, last: bool) -> CompiledStep:
        """Return what is to be done when the scores of some documents are there; they may be written after this."""
        count, rescorer = len(self.lengths), self._rescorer
        starts, ends = np.array(self._parts, np.int64).T
        lines, room = (count, self.rows.shape[1]) if last else (0, 0)
        found = kernels.Found(
            rows=np.zeros((lines, self._k), np.int32),
            scores=np.zeros((lines, self._k), np.float32),
            mixed=np.zeros(lines, np.bool_),
            unsure=np.zeros(lines, np.bool_),
            infinite=np.zeros(lines, np.bool_),
            doubtful=np.zeros((lines, room), np.bool_),
        )
        work = kernels.Choosing(
            last=last,
            scores=scores,
            rows=rows,
            k=self._k,
            bounds=self._rounding.bounds,
            longest=float(self._rounding.longest),
            margins=np.empty(count),
            lists=kernels.CandidateArrays(self.rows, self.scores, self.exact, self.lengths, self.kth_best),
            side=kernels.QuerySide(rescorer.queries, rescorer.norms, np.empty(count), rescorer.cosine),
            blocks=rescorer.addresses(),
            sampled=max(8, SAMPLED * len(ends) // count),
            ends=ends.copy(),
            line=starts.copy(),
            position=np.zeros(len(ends), np.int64),
            parts_taken=np.zeros(1, np.int64),
            parts_done=np.zeros(1, np.int64),
            failed=np.zeros(len(ends), np.bool_),
            found=found,
        )
        return CompiledStep(self, work)

    def do(self, product: Product, work: kernels.Choosing, vectors: object) -> int:
        """Multiply and choose; return what is done. The vectors are those that are multiplied."""
        return self._team.do((product, work), self.threads, (vectors, self._rescorer))

    def choose_rest(self, work: kernels.Choosing) -> None:
        """Do what is left to do, now that all scores are there, and right."""
        bounds = self._rounding.bounds._replace(too_long=np.inf)
        longest = float(self._rounding.longest)
        self.do(nothing(), work._replace(bounds=bounds, longest=longest, parts_taken=np.zeros(1, np.int64)), None)

    def settle_part(self, work: kernels.Choosing, part: int) -> None:
        """Do the rest of a part whose lists were full, or which failed."""
        while True:
            kernels.do_part(work, part, float(self._rounding.longest))
            if work.line[part] == work.ends[part]:
                return
            self.settle_line(work.line[part])

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


class CompiledStep:
    """What is done with the scores of some documents: threads that multiply these go on to it by themselves."""

    def __init__(self, lists: CompiledShortlists, work: kernels.Choosing) -> None:
        self._lists, self.work, self._done = lists, work, False

    def multiply(self, product: Product, vectors: object) -> None:
        """Multiply, and choose if all scores are right."""
        self._done = self._lists.do(product, self.work, vectors) == kernels.DONE

    def __call__(self) -> list[tuple[Rows, Vectors]]:
        """Return the k best of each query as (rows, scores), in no particular order, after the last documents."""
        lists, work = self._lists, self.work
        if not self._done:
            lists.choose_rest(work)
        left = np.flatnonzero(work.failed | (work.line < work.ends)).tolist()
        share(lambda part: lists.settle_part(work, part), left, lists.threads)
        return lists.results(work.found) if work.last else []
