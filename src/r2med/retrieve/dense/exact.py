"""Exact dense search: every document scored, the k best of each query, the same ranking on every device.

Products in float32 differ in their last bits between libraries. The fast scores therefore only choose
candidates, down to a proven rounding bound below the k-th best, and order those that are clearly apart.
Where two are so near that rounding may have swapped them, and at the cut, float64 decides.

How near is near is measured. The proven bound holds for the most unlucky signs of 1,024 roundings: it is
some 500 times what happens, and would have nearly all of a top 1000 scored again, which takes longer than
the product. So a sample of each query's candidates is scored again, three times the largest deviation seen is
the working bound, and every near tie scored after that is a check of it: if one deviates by more than two
thirds of the bound, the bound grows and the near ties are sought again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from r2med.encoders.encoder import Vectors
from r2med.engine import cores, map_threads
from r2med.retrieve.dense.products import open_product
from r2med.retrieve.dense.rescoring import Exact, Positions, Rescorer, Rows
from r2med.retrieve.dense.shortlist import Candidates, choose

UNIT = 2.0**-24
"""A float32 operation's relative rounding error at most."""
COLUMNS = (1 << 16) + 32
"""Scores a query gathers before candidates are chosen: a row of them fits a core's cache, small shards pool.

Not a power of two: the product writes many queries' columns at once, and at such a distance they share one line
of the cache.
"""
ROWS = 1 << 13
"""Documents a product at most: OpenBLAS is a tenth slower over 60,000 at once."""
SMALL = 1 << 18
"""Scores that are chosen from sooner than threads would start."""
SAMPLED = 1024
"""Pairs, over all queries, that measure the rounding; each query gives at least 8."""


def search_exact(
    queries: Vectors,
    blocks: Iterable[tuple[int, npt.NDArray[Any]]],
    k: int,
    ranks: npt.NDArray[np.int32],
    *,
    cosine: bool = False,
    memory: int = 2 << 30,
    device: str = "auto",
) -> list[tuple[Rows, Vectors]]:
    """Return each query's k best (rows, scores) in no particular order; a tie at the cut goes to the higher rank.

    `blocks` are (first row, float32 or float16 vectors) in ascending rows. Those that are mapped files stay
    open for the deciding scores; of others as much is held as half of `memory`, after which all candidates
    among them are scored exactly at once, so that they can go: correct, but slower than mapped files.
    """
    if k < 1:
        raise ValueError(f"k must be at least 1, not {k}")
    queries = np.ascontiguousarray(queries, dtype=np.float32)
    if queries.ndim != 2:
        raise ValueError(f"queries must be rows of vectors, not an array of shape {queries.shape}")
    if len(bad := np.flatnonzero(~np.isfinite(queries).all(axis=1))):
        raise ValueError(f"query {bad[0]} has NaN or infinite values")
    if not len(queries):
        return []
    search = _Search(queries, k, ranks, cosine, memory, device)
    for first, block in blocks:
        search.add(first, block)
    return search.finish()


class _Search:
    def __init__(
        self, queries: Vectors, k: int, ranks: npt.NDArray[np.int32], cosine: bool, memory: int, device: str
    ) -> None:
        self._k, self._ranks, self._cosine, self._memory = k, ranks, cosine, memory
        self._dimension = queries.shape[1]
        self._rescorer = Rescorer(queries, cosine)
        if cosine:
            norms = self._rescorer.norms[:, None]
            queries = np.divide(queries, norms, out=np.zeros(queries.shape), where=norms > 0).astype(np.float32)
        # What a deviation is relative to: with cosine, both sides have length 1.
        self._scale = np.ones(len(queries)) if cosine else self._rescorer.norms
        self._longest = 1.0 if cosine else 0.0
        self._product = open_product(queries, device)
        columns = max(1, min(COLUMNS, memory // 8 // (4 * len(queries))))
        self._scores = np.empty((len(queries), columns), dtype=np.float32)
        self._filled = 0
        self._rows = np.empty(columns, dtype=np.int32)
        self._shortlists = [Candidates.none() for _ in queries]
        per_thread = -(-len(queries) // (2 * cores()))
        self._parts = [range(at, min(at + per_thread, len(queries))) for at in range(0, len(queries), per_thread)]

    def add(self, first: int, block: npt.NDArray[Any]) -> None:
        """Score a block."""
        if block.dtype not in (np.float32, np.float16):
            raise ValueError(f"documents must be float32 or float16, not {block.dtype}")
        if block.ndim != 2 or block.shape[1] != self._dimension:
            raise ValueError(f"documents of shape {block.shape} do not fit queries of dimension {self._dimension}")
        self._rescorer.hold(first, block)
        most = max(1, min(ROWS, self._memory // 8 // (4 * max(1, self._dimension))))
        at = 0
        while at < len(block):
            free = self._scores.shape[1] - self._filled
            end = min(len(block), at + min(free, most))
            self._score(first + at, np.ascontiguousarray(block[at:end], dtype=np.float32))
            at = end
            if self._filled == self._scores.shape[1]:
                self._choose()
        if self._rescorer.held > self._memory // 2:
            self._choose()
            self._settle(range(len(self._shortlists)))
            self._rescorer.release()

    def _score(self, first: int, documents: Vectors) -> None:
        out = self._scores[:, self._filled : self._filled + len(documents)]
        if self._cosine:
            documents, factors = _unit_length(first, documents)
            self._product(documents, out)
            out *= factors
        else:
            self._product(documents, out)
            self._longest = max(self._longest, _longest(documents))
            # Whatever is not finite in a vector makes its score with any one query NaN or infinite.
            for index in np.flatnonzero(~np.isfinite(out[0])):
                if not np.isfinite(documents[index]).all():
                    raise ValueError(f"row {first + index} has NaN or infinite values")
        self._rows[self._filled : self._filled + len(documents)] = np.arange(first, first + len(documents))
        self._filled += len(documents)

    def _margins(self) -> Exact:
        """Return how far below the k-th best a fast score may lie of a document that belongs above it."""
        # Any order of adding d products is off by at most d·u·|q|·|d|; cosines add the rounding of both lengths.
        roundings = (2 * self._dimension + 16) if self._cosine else self._dimension + 4
        bound = roundings * (UNIT * self._scale * self._longest + 2.0**-125)  # subnormals may be flushed to 0
        # Two scores may both be off. Once more as much for documents longer than those whose length was taken.
        return np.asarray(2 * 2 * bound)

    def _choose(self) -> None:
        """Move candidates out of the score block."""
        margins, filled, k = self._margins(), self._filled, self._k
        scores, rows = self._scores[:, :filled], self._rows[:filled]

        def work(part: range) -> None:
            for query in part:
                row, shortlist = scores[query], self._shortlists[query]
                positions = choose(row, k, shortlist.best, margins[query])
                shortlist.add(rows[positions], row[positions], k, margins[query])

        if filled:
            several = scores.size > SMALL
            list(map_threads(work, self._parts) if several else map(work, self._parts))
            self._filled = 0
        # Masses of near ties: only exact scores can thin them out. One query at a time, for there are masses.
        for query, shortlist in enumerate(self._shortlists):
            if len(shortlist) > 4 * k + SAMPLED:
                self._settle([query])

    def _settle(self, queries: Sequence[int]) -> None:
        """Score all candidates of queries exactly and keep the k best."""
        positions: list[Positions] = [np.empty(0, np.int64)] * len(self._shortlists)
        for query in queries:
            positions[query] = np.flatnonzero(~self._shortlists[query].exact)
        self._rescore(positions)
        for query in queries:
            self._shortlists[query].keep_best(self._k, self._ranks)
            self._shortlists[query].sort()

    def finish(self) -> list[tuple[Rows, Vectors]]:
        """Return the rankings."""
        self._choose()
        each = max(8, SAMPLED // len(self._shortlists))
        samples = [shortlist.sample(min(len(shortlist), self._k), each) for shortlist in self._shortlists]
        bound = max(16 * UNIT, 3 * self._rescore(samples))
        while True:
            near = [self._near_ties(query, bound) for query in range(len(self._shortlists))]
            worst = self._rescore(near)
            if 1.5 * worst <= bound:
                break
            bound = 3 * worst
        for shortlist in self._shortlists:
            shortlist.keep_best(self._k, self._ranks)
            if not np.isfinite(shortlist.scores).all():
                raise ValueError(f"row {shortlist.rows[~np.isfinite(shortlist.scores)][0]}: a score exceeds float32")
        return [(shortlist.rows, shortlist.scores) for shortlist in self._shortlists]

    def _near_ties(self, query: int, bound: float) -> Positions:
        """Return the positions of candidates, not exact yet, that rounding may have swapped with a neighbour."""
        shortlist = self._shortlists[query]
        if not len(shortlist):
            return np.empty(0, np.int64)
        scores = shortlist.scores.astype(np.float64)
        # Two deviations, and two steps of float32: beyond that the rounded scores differ, and in this order.
        near = (2 * bound + 2.0**-22) * self._sizes(query, scores)[:-1] + 2.0**-125
        close = np.abs(scores[1:] - scores[:-1]) <= near
        tied = np.zeros(len(scores), np.bool_)
        tied[1:] = close
        tied[:-1] |= close
        return np.flatnonzero(tied & ~shortlist.exact)

    def _sizes(self, query: int, scores: Exact) -> Exact:
        """Return how large the sums are on the way to a score; the rounding of each addition is relative to that.

        The way leads to the score itself, by about as much to either side as unrelated vectors' products add up to.
        A score of 1 among scores of 0.1 must not make all of them look near to each other.
        """
        return np.asarray(np.abs(scores) + self._scale[query] * self._longest / max(1, self._dimension) ** 0.5)

    def _rescore(self, positions: Sequence[Positions]) -> float:
        """Replace scores by exact ones; return the largest deviation seen, relative to `_sizes`."""
        queries = np.repeat(np.arange(len(positions)), [len(p) for p in positions])
        if not len(queries):
            return 0.0
        rows = np.concatenate([shortlist.rows[p] for shortlist, p in zip(self._shortlists, positions, strict=True)])
        exact = self._rescorer.score(queries, rows)
        worst = 0.0
        for query, scores in enumerate(np.split(exact, np.cumsum([len(p) for p in positions])[:-1])):
            shortlist, here = self._shortlists[query], positions[query]
            deviations = np.abs(shortlist.scores[here] - scores)
            if deviations.any():
                worst = max(worst, float((deviations / self._sizes(query, scores)).max()))
            shortlist.scores[here] = scores
            shortlist.exact[here] = True
        return worst


def _longest(documents: Vectors) -> float:
    """Return the largest length of every n-th document: reading all once more would cost a sixth of the product."""
    some = documents[:: max(1, len(documents) // 64)]
    squares = np.einsum("ij,ij->i", some, some).max(initial=0)
    if not 2.0**-80 < squares < 2.0**100:
        squares = np.einsum("ij,ij->i", some, some, dtype=np.float64).max(initial=0)
    return float(np.sqrt(squares))


def _unit_length(first: int, documents: Vectors) -> tuple[Vectors, Vectors]:
    """Return documents and the factors that make their scores cosines."""
    with np.errstate(all="ignore"):
        squares = np.einsum("ij,ij->i", documents, documents)
        factors = (1 / np.sqrt(squares)).astype(np.float32)
    odd = np.flatnonzero(~((squares > 2.0**-80) & (squares < 2.0**100)))
    if len(odd):  # zero, not finite, or squares that float32 cannot hold
        if len(bad := odd[~np.isfinite(documents[odd]).all(axis=1)]):
            raise ValueError(f"row {first + bad[0]} has NaN or infinite values")
        exact = documents[odd].astype(np.float64)
        norms = np.sqrt(np.einsum("ij,ij->i", exact, exact))[:, None]
        documents = documents.copy()
        documents[odd] = np.divide(exact, norms, out=np.zeros_like(exact), where=norms > 0)
        factors[odd] = 1
    return documents, factors
