"""Shortlists by compiled loops: each thread chooses for some of the queries, without the interpreter's lock."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from r2med.encoders.encoder import Vectors
from r2med.engine.threads import share
from r2med.retrieve.dense.exact.arrays import Asked, Rows, check_scores
from r2med.retrieve.dense.exact.candidate_kernels import CandidateArrays
from r2med.retrieve.dense.exact.choosing_kernels import Choosing, choose_part
from r2med.retrieve.dense.exact.deciding_kernels import Deciding, Found, QuerySide
from r2med.retrieve.dense.exact.product_kernels import Product, empty_product
from r2med.retrieve.dense.exact.rescoring import NOWHERE, Rescorer
from r2med.retrieve.dense.exact.rounding import Rounding
from r2med.retrieve.dense.exact.shortlist import SAMPLED, SPARE, Shortlists, parts
from r2med.retrieve.dense.exact.team import multiply_and_choose
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
        super().__init__(slice(0, lines), asked, rounding, rescorer)
        shape = (lines, 4 * asked.k + SPARE)
        self.rows = workspace.take("rows of candidates", shape, np.int32)
        self.scores = workspace.take("scores of candidates", shape, np.float32)
        self.exact = workspace.take("exact candidates", shape, np.bool_)
        self.threads, self.parts = threads, parts(lines, min(threads * PARTS, max(threads, lines // LINES)))

    def settle(self) -> None:
        """Score all candidates exactly and keep the k best: their vectors are not needed any more."""
        share(self.settle_line, range(len(self.lengths)), self.threads)

    def step(self, scores: Vectors, rows: Rows, last: bool) -> CompiledStep:
        """Return what is to be done when the scores of some documents are there; they may be written after this."""
        return CompiledStep(self, scores, rows, last)

    def work(self, scores: Vectors, rows: Rows, last: bool) -> Choosing:
        """Return what threads do in such a step."""
        count, rescorer = len(self.lengths), self.rescorer
        starts, ends = np.array(self.parts, np.int64).T
        lines, room = (count, self.rows.shape[1]) if last else (0, 0)
        found = Found(
            rows=np.zeros((lines, self._k), np.int32),
            scores=np.zeros((lines, self._k), np.float32),
            mixed=np.zeros(lines, np.bool_),
            unsure=np.zeros(lines, np.bool_),
            infinite=np.zeros(lines, np.bool_),
            doubtful=np.zeros((lines, room), np.bool_),
        )
        deciding = Deciding(
            k=self._k,
            lists=CandidateArrays(self.rows, self.scores, self.exact, self.lengths, self.kth_best),
            margins=np.empty(count),
            side=QuerySide(rescorer.queries, rescorer.norms, np.empty(count), rescorer.cosine),
            blocks=rescorer.addresses() if last else NOWHERE,
            sampled=max(8, SAMPLED * len(ends) // count),
            found=found,
        )
        return Choosing(
            last=last,
            scores=scores,
            rows=rows,
            bounds=self.rounding.bounds,
            longest=float(self.rounding.longest),
            deciding=deciding,
            ends=ends.copy(),
            line=starts.copy(),
            position=np.zeros(len(ends), np.int64),
            parts_taken=np.zeros(1, np.int64),
            parts_done=np.zeros(1, np.int64),
            failed=np.zeros(len(ends), np.bool_),
        )

    def settle_part(self, work: Choosing, part: int) -> None:
        """Do the rest of a part whose lists were full, or which failed."""
        if work.failed[part]:
            for line in range(work.ends[part - 1] if part else 0, work.ends[part]):
                here = line, slice(self.lengths[line])  # those of blocks that were let go have been settled
                self.exact[here] &= ~self.rescorer.holds(self.rows[here])
                self.settle_line(line)
        while True:
            choose_part(work, part, float(self.rounding.longest))
            if work.line[part] == work.ends[part]:
                return
            self.settle_line(work.line[part])

    def results(self, found: Found) -> list[tuple[Rows, Vectors]]:
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
        if min(ends) == self._k:
            return list(zip(found.rows, found.scores, strict=True))
        return [(of[:end], by[:end]) for of, by, end in zip(found.rows, found.scores, ends, strict=True)]


class CompiledStep:
    """What is done with the scores of some documents: threads that multiply these go on to it by themselves."""

    def __init__(self, lists: CompiledShortlists, scores: Vectors, rows: Rows, last: bool) -> None:
        self._lists, self._arguments, self._done = lists, (scores, rows, last), False
        self._work: Choosing | None = None

    def work(self) -> Choosing:
        """Return what threads do; it is made once, when it is needed."""
        self._work = self._work or self._lists.work(*self._arguments)
        return self._work

    def multiply(self, product: Product, vectors: object) -> None:
        """Multiply some vectors, and choose if all scores are right."""
        self._done = self._do(product, self.work, vectors)

    def __call__(self) -> list[tuple[Rows, Vectors]]:
        """Return the k best of each query as (rows, scores), in no particular order, after the last documents."""
        lists, work = self._lists, self.work()
        if not self._done:  # now that all scores are there, and right
            bounds, longest = work.bounds._replace(too_long=np.inf), float(lists.rounding.longest)
            again = work._replace(bounds=bounds, longest=longest, parts_taken=np.zeros(1, np.int64))
            self._do(empty_product(), lambda: again, None)
        left = np.flatnonzero(work.failed | (work.line < work.ends)).tolist()
        share(lambda part: lists.settle_part(work, part), left, lists.threads)
        return lists.results(work.deciding.found) if work.last else []

    def _do(self, product: Product, make_work: Callable[[], Choosing], vectors: object) -> bool:
        lists, most = self._lists, max(len(product.odd), len(self._lists.parts))
        return multiply_and_choose(product, make_work, min(lists.threads, most), (vectors, lists.rescorer))
