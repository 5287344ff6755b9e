"""Exact dense search: every document scored, the k best of each query, the same ranking on every device.

Products in float32 differ in their last bits between libraries. The fast scores therefore only choose
candidates, down to a proven rounding bound below the k-th best, and order those that are clearly apart.
Where two are so near that rounding may have swapped them, and at the cut, float64 decides.

How near is near is measured. The proven bound holds for the most unlucky signs of 1,024 roundings: it is
some 500 times what happens, and would have nearly all of a top 1000 scored again, which takes longer than
the product. So a sample of each query's candidates is scored again first, and near ties within four times the largest
deviation of it after that. Each of those is a check: if one deviates by more than a third of the bound, the bound
grows and the near ties are sought again.
"""

from __future__ import annotations

import importlib.util
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from r2med.encoders.devices import devices
from r2med.encoders.encoder import Vectors
from r2med.engine import cores, map_threads
from r2med.errors import MissingExtraError
from r2med.retrieve.dense.arithmetic import BUNDLE, Arithmetic, Exact, Positions, Rows, arithmetic
from r2med.retrieve.dense.gpu import Block, Chunk, GpuSearch
from r2med.retrieve.dense.rescoring import Rescorer
from r2med.retrieve.dense.shortlist import Shortlists, reach

UNIT = 2.0**-24
"""A float32 operation's relative rounding error at most."""
PANEL = 1 << 12
"""Documents a product at most: its scores stay in the cache until they are chosen from."""
SPREAD = 1 << 24
"""Scores a product where all cores share each step: fewer steps then, for each of them wakes all cores."""
GROUPS = 4
"""Threads that choose from or sort the lines of all queries: each of many short steps needs the interpreter's lock."""
FIRST = 1 << 15
"""Documents whose scores are all kept until a first floor is known; after that only those above it are."""
LEAST = 12 * UNIT
"""The working bound at least, if hardly any rounding is seen; with a thousand dimensions 45 are usual."""
SAMPLED = 1024
"""Pairs, over all queries, that measure the rounding; each query gives at least 8."""


def search_exact(
    queries: Vectors,
    blocks: Iterable[Block],
    k: int,
    ranks: npt.NDArray[np.int32],
    *,
    cosine: bool = False,
    memory: int = 2 << 30,
    device: str = "auto",
    kept: list[Chunk] | None = None,
) -> list[tuple[Rows, Vectors]]:
    """Return each query's k best (rows, scores) in no particular order; a tie at the cut goes to the higher rank.

    `blocks` are (first row, float32 or float16 vectors) in ascending rows. Those that are mapped files stay
    open for the deciding scores; of others as much is held as half of `memory`, after which all candidates
    among them are scored exactly at once, so that they can go: correct, but slower than mapped files.
    A list that is `kept` between searches of the same blocks holds their halves on a GPU, if they fit there.
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
    gpu = _gpu(device)
    with arithmetic() as (how, threads), ThreadPoolExecutor(cores() if how.spread else threads) as pool:
        if gpu is not None:
            results = GpuSearch(queries, k, ranks, cosine, memory, gpu, pool).run(blocks, kept)
        else:
            results = _Search(queries, k, ranks, cosine, memory, how, threads, pool).run(iter(blocks)).results()
    for rows, scores in results:
        if not np.isfinite(scores).all():
            raise ValueError(f"row {rows[~np.isfinite(scores)][0]}: a score exceeds float32")
    return results


def _gpu(device: str) -> str | None:
    """Return the GPU of a choice; None for the CPU. Raises UserError if this machine has no such device."""
    has_torch = importlib.util.find_spec("torch") is not None
    if device == "cpu" or (device == "auto" and not has_torch):
        return None
    if not has_torch:
        raise MissingExtraError(f"searching on {device}", "dense")
    name = devices(device)[0]
    return name if name.startswith("cuda") else None


class Chosen(NamedTuple):
    """Candidates out of a panel, ascending by query, and the largest length of its vectors."""

    queries: Positions
    rows: Rows
    scores: Vectors
    longest: float


class _Search:
    def __init__(
        self,
        queries: Vectors,
        k: int,
        ranks: npt.NDArray[np.int32],
        cosine: bool,
        memory: int,
        arithmetic: Arithmetic,
        threads: int,
        pool: ThreadPoolExecutor,
    ) -> None:
        self._k, self._ranks, self._cosine, self._memory = k, ranks, cosine, memory
        self._arithmetic, self._threads = arithmetic, threads
        self._map: Callable[..., Iterable[Any]] = map if arithmetic.spread else partial(map_threads, pool=pool)
        self._rescorer = Rescorer(queries, cosine, pool, arithmetic.spread)
        if cosine:
            norms = self._rescorer.norms[:, None]
            queries = np.divide(queries, norms, out=np.zeros(queries.shape), where=norms > 0).astype(np.float32)
        self._queries = queries
        # What a deviation is relative to: with cosine, both sides have length 1.
        self._scale = np.ones(len(queries)) if cosine else self._rescorer.norms
        self._longest = 1.0 if cosine else 0.0
        self._lists = Shortlists(len(queries), k, arithmetic)
        each = -(-len(queries) // min(threads, GROUPS))
        self._groups = [slice(at, min(at + each, len(queries))) for at in range(0, len(queries), each)]
        width = max(len(queries), queries.shape[1], 1)
        spread = SPREAD // len(queries) if arithmetic.spread else 0
        self._panel = max(1, min(max(PANEL, spread), memory // 8 // threads // (4 * width)))
        self._first = max(1, min(max(FIRST, 8 * k, spread), memory // 8 // (4 * len(queries))))
        self._buffers = threading.local()

    def run(self, blocks: Iterator[Block]) -> Shortlists:
        """Return the k best of each query."""
        self._more = True
        panels = self._panels(blocks)
        self._score_first(panels)
        while True:
            for chosen in self._map(self._score, panels):
                self._take(chosen)
            if not self._more:
                return self._finish()
            self._settle(np.arange(len(self._queries)))
            self._rescorer.release()
            panels = self._panels(blocks)

    def _panels(self, blocks: Iterator[Block]) -> Iterator[Block]:
        """Yield pieces of blocks until there are no more of them, or as many are held as memory allows."""
        for first, block in blocks:
            self._rescorer.hold(first, block)
            at = 0
            while at < len(block):
                end = min(len(block), at + (self._first or len(block)))
                # As many pieces for each thread: a lone one at the end would be waited for.
                step = -(-(end - at) // (self._threads * -(-(end - at) // (self._threads * self._panel))))
                step = -(-step // BUNDLE) * BUNDLE
                for start in range(at, end, step):
                    yield first + start, block[start : min(start + step, end)]
                at = end
            if self._rescorer.held > self._memory // 2:
                return
        self._more = False

    def _score_first(self, panels: Iterator[Block]) -> None:
        """Score documents until a floor is known that the k best of each query reach."""
        taken = []
        for panel in panels:
            taken.append(panel)
            self._first -= len(panel[1])
            if self._first <= 0:
                break
        self._first = 0
        ends = np.cumsum([len(block) for _, block in taken], dtype=np.int64)
        spans = [np.arange(first, first + len(block), dtype=np.int32) for first, block in taken]
        rows = np.concatenate(spans) if spans else np.empty(0, np.int32)
        # Queries are not a power of two apart: the product writes many at once, which would share a line of the cache.
        scores = np.empty((len(self._queries), len(rows) + 32), dtype=np.float32)[:, : len(rows)]

        def score(number: int) -> float:
            first, block = taken[number]
            return self._product(first, block, scores[:, ends[number] - len(block) : ends[number]])

        def choose(lines: slice) -> Chosen:
            best = reach(scores[lines], self._k, self._arithmetic)
            mask = np.empty((len(best), len(rows)), np.bool_)
            queries, columns, fast = self._arithmetic.above(scores[lines], best - margins[lines], mask)
            self._lists.best[lines] = best
            return Chosen(queries + lines.start, rows[columns], fast, self._longest)

        self._longest = max(self._map(score, range(len(taken))), default=self._longest)
        margins = self._margins(self._longest)
        if len(rows):
            for chosen in self._map(choose, self._groups):
                self._take(chosen)

    def _score(self, panel: Block) -> Chosen:
        """Return the candidates among some documents."""
        first, block = panel
        size = len(self._queries) * len(block)
        if len(getattr(self._buffers, "scores", ())) < size:
            self._buffers.scores, self._buffers.mask = np.empty(size, np.float32), np.empty(size, np.bool_)
        scores = self._buffers.scores[:size].reshape(-1, len(block))
        longest = self._product(first, block, scores)
        floors = self._lists.best - self._margins(longest)
        queries, columns, fast = self._arithmetic.above(scores, floors, self._buffers.mask[:size].reshape(scores.shape))
        return Chosen(queries, (columns + first).astype(np.int32), fast, longest)

    def _product(self, first: int, block: npt.NDArray[Any], out: Vectors) -> float:
        """Write the scores of documents; return the largest length of a vector, as far as it matters."""
        documents = np.ascontiguousarray(block, dtype=np.float32)
        if self._cosine:
            documents, factors = _unit_length(first, documents, self._arithmetic.squares(documents))
            self._arithmetic.multiply(self._queries, documents, out)
            self._arithmetic.scale(out, factors)
            return 1.0
        self._arithmetic.multiply(self._queries, documents, out)
        # Whatever is not finite in a vector makes its score with any one query NaN or infinite.
        for index in np.flatnonzero(~np.isfinite(out[0])):
            if not np.isfinite(documents[index]).all():
                raise ValueError(f"row {first + index} has NaN or infinite values")
        return max(self._longest, _longest(documents))

    def _margins(self, longest: float) -> Exact:
        """Return how far below the k-th best a fast score may lie of a document that belongs above it."""
        # Any order of adding d products is off by at most d·u·|q|·|d|; cosines add the rounding of both lengths.
        dimension = self._queries.shape[1]
        roundings = (2 * dimension + 16) if self._cosine else dimension + 4
        bound = roundings * (UNIT * self._scale * longest + 2.0**-125)  # subnormals may be flushed to 0
        # Two scores may both be off. Once more as much for documents longer than those whose length was taken.
        return np.asarray(2 * 2 * bound)

    def _take(self, chosen: Chosen) -> None:
        """Add candidates to the shortlists; what cannot be among the k best any more goes when they are long."""
        lists = self._lists
        self._longest = max(self._longest, chosen.longest)
        lists.add(chosen.queries, chosen.rows, chosen.scores)
        if lists.lengths.max() <= 8 * self._k + 2 * SAMPLED:
            return
        lists.thin(slice(len(lists.lengths)), self._margins(self._longest))
        # Masses of near ties: only exact scores can thin them out. One query at a time, for there are masses.
        for query in np.flatnonzero(lists.lengths > 4 * self._k + SAMPLED):
            self._settle(np.array([query]))

    def _settle(self, queries: Positions) -> None:
        """Score all candidates of queries exactly and keep the k best."""
        lists = self._lists
        width = int(lists.lengths.max())
        fast = (np.arange(width) < lists.lengths[queries, None]) & ~lists.exact[queries, :width]
        which, columns = np.nonzero(fast)
        self._rescore(queries[which], columns)
        for query in queries:
            lists.cut(slice(query, query + 1), self._ranks)

    def _finish(self) -> Shortlists:
        lists, margins = self._lists, self._margins(self._longest)
        list(self._map(lambda lines: lists.thin(lines, margins), self._groups))
        worst, bound = self._rescore(*lists.sample(max(8, SAMPLED // len(self._queries)))), 0.0
        while (needed := max(LEAST, 3 * worst)) > bound:
            bound = 4 / 3 * needed
            worst = self._rescore(*map(np.concatenate, zip(*self._near_ties(bound), strict=True)))
        list(self._map(lambda lines: lists.cut(lines, self._ranks), self._groups))
        return lists

    def _near_ties(self, bound: float) -> list[tuple[Positions, Positions]]:
        """Return (queries, columns) of candidates, not exact yet, that rounding may have swapped with a neighbour."""
        return list(self._map(partial(self._near_ties_of, bound), self._groups))

    def _near_ties_of(self, bound: float, lines: slice) -> tuple[Positions, Positions]:
        scores = self._lists.padded(lines).astype(np.float64)
        width = scores.shape[1]
        sizes = self._sizes(np.arange(lines.start, lines.stop)[:, None], scores[:, :-1])
        # Two deviations, and two steps of float32: beyond that the rounded scores differ, and in this order.
        near = (2 * bound + 2.0**-22) * sizes + 2.0**-125
        with np.errstate(invalid="ignore"):  # behind the end of a shorter line
            close = np.abs(scores[:, 1:] - scores[:, :-1]) <= near
        tied = np.zeros(scores.shape, np.bool_)
        tied[:, 1:] = close
        tied[:, :-1] |= close
        queries, columns = np.nonzero(tied & ~self._lists.exact[lines, :width])
        return queries + lines.start, columns

    def _sizes(self, queries: Positions, scores: Exact) -> Exact:
        """Return how large the sums are on the way to a score; the rounding of each addition is relative to that.

        The way leads to the score itself, by about as much to either side as unrelated vectors' products add up to.
        A score of 1 among scores of 0.1 must not make all of them look near to each other.
        """
        unrelated = self._scale * self._longest / max(1, self._queries.shape[1]) ** 0.5
        return np.asarray(np.abs(scores) + unrelated[queries])

    def _rescore(self, queries: Positions, columns: Positions) -> float:
        """Replace scores by exact ones; return the largest deviation seen, relative to `_sizes`."""
        lists = self._lists
        exact = self._rescorer.score(queries, lists.rows[queries, columns])
        deviations = np.abs(lists.scores[queries, columns] - exact)
        lists.scores[queries, columns] = exact
        lists.exact[queries, columns] = True
        off = deviations > 0
        return float((deviations[off] / self._sizes(queries[off], exact[off])).max(initial=0))


def _longest(documents: Vectors) -> float:
    """Return the largest length of every n-th document: reading all once more would cost a sixth of the product."""
    some = documents[:: max(1, len(documents) // 64)]
    squares = np.einsum("ij,ij->i", some, some).max(initial=0)
    if not 2.0**-80 < squares < 2.0**100:
        squares = np.einsum("ij,ij->i", some, some, dtype=np.float64).max(initial=0)
    return float(np.sqrt(squares))


def _unit_length(first: int, documents: Vectors, squares: Vectors) -> tuple[Vectors, Vectors]:
    """Return documents and the factors that make their scores cosines."""
    with np.errstate(all="ignore"):
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
