"""Exact search with NumPy: products in float32 propose documents with a proven error bound, and float64 decides.

Threads of ours share the documents for the products, the queries to choose candidates, and the candidates to score
them, with one thread of the BLAS each.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from r2med.foundation.engine import cores, one_blas_thread, share
from r2med.models.encoders.encoder import Vectors
from r2med.systems.retrieve.exact.exact_scores import QUERY_VECTORS, Queries
from r2med.systems.retrieve.exact.shortlist import Nearest, candidates
from r2med.systems.retrieve.exact.text_vectors import Exact, Part, Places, TextVectors, rows_of

FLOAT32_ERROR = 2.0**-24
"""Largest relative error of one float32 operation."""
TILE_SCORES = 1 << 23
"""Number of scores in a tile, unless it has few documents."""
TILE_DOCUMENTS = 1 << 15
"""Minimum number of documents in a tile. With fewer, too many documents become candidates."""
PIECE_VECTORS = 1 << 12
"""Number of vectors that a thread multiplies at a time. Their products with a hundred vectors fit into its cache."""
QUERIES_AT_ONCE = 8
"""Number of queries whose candidates are chosen together. Each step of NumPy gives up the interpreter lock and waits
for it, so that many short steps in many threads take longer than few long ones."""
PAIRS_AT_ONCE = 1 << 10
"""Number of pairs that a thread scores at a time. With fewer, each step waits longer for the interpreter lock."""
MIN_SHARED = 1 << 9
"""Minimum number of document vectors that a thread scores. To wake it for fewer takes longer."""
SAFE_SQUARES = (2.0**-80, 2.0**100)
"""Range of squared lengths that float32 computes without overflow and underflow."""
FLUSH_ERROR = 2.0**-125
"""Largest absolute error of one float32 operation on numbers that may be flushed to zero."""

Pairs = tuple[TextVectors, Places, Places, Places]
"""Some documents, and pairs of a query and one of them: numbers of the pairs, queries, and places of the documents."""


class CpuProducts:
    """A search of the queries in one tile of documents after the other."""

    tile_vectors = part_vectors = 1 << 62

    def __init__(
        self,
        queries: Queries,
        nearest: Nearest,
        lengths: dict[tuple[int, int], Exact],
        documents: int,
        memory: int,
        pool: ThreadPoolExecutor,
    ) -> None:
        self._queries, self._nearest, self._lengths, self._pool = queries, nearest, lengths, pool
        vectors, count = queries.texts.vectors, len(queries)
        if queries.cosine:
            norms = queries.norms[:, None]
            vectors = np.divide(vectors, norms, out=np.zeros(vectors.shape), where=norms > 0)
        self._vectors: Vectors = vectors.astype(np.float32)
        wanted = min(max(TILE_DOCUMENTS, TILE_SCORES // count, 8 * nearest.k), max(1, documents))
        self.tile_texts = max(1, min(wanted, memory // 8 // (4 * max(count, vectors.shape[1], 1))))
        self._scores = np.empty(count * self.tile_texts, np.float32)

    def search(self, tile: Sequence[Part]) -> None:
        """Add the documents of a tile that are among the k best so far."""
        rows = rows_of(tile)
        scores = self._scores[: len(self._queries) * len(rows)].reshape(-1, len(rows))
        with one_blas_thread():
            longest = max(share(lambda piece: self._multiply(*piece), list(_pieces(tile, scores)), self._pool))
            positions = self._choose(scores, 1.0 if self._queries.cosine else longest)
            lines, places = np.divmod(positions, len(rows))
            exact = self._score(tile, lines, places, longest)
        self._nearest.add(lines, rows[places], exact)

    def flush(self) -> None:
        """Do nothing, because documents are added immediately."""

    def _multiply(self, first: int, texts: TextVectors, out: Vectors) -> float:
        """Write the scores of all queries with some documents. Return the length of their longest vector."""
        lengths, factors = self._lengths_of(first, texts), None
        vectors = texts.vectors
        if vectors.dtype != np.float32:
            vectors = self._queries.buffers.array("singles", vectors.shape, np.float32)
            vectors[:] = texts.vectors
        if self._queries.cosine:
            vectors, factors = _scaled(vectors, lengths)
        if self._queries.is_single(texts):
            np.matmul(self._vectors, vectors.T, out=out)
            if factors is not None:
                out *= factors
            return float(lengths.max(initial=0))
        queries = self._queries.texts
        for begin, end in queries.parts(QUERY_VECTORS):
            own = self._vectors[queries.span(begin, end)]
            products = self._queries.buffers.array("single products", (len(own), len(vectors)), np.float32)
            np.matmul(own, vectors.T, out=products)
            if factors is not None:
                products *= factors
            out[begin:end] = queries.part(begin, end).sums(texts.largest(products))
        return float(lengths.max(initial=0))

    def _lengths_of(self, first: int, texts: TextVectors) -> Exact:
        """Return the lengths of vectors, computed once for all searches. Raise ValueError if one is not allowed."""
        key = first, len(texts)
        if key not in self._lengths:
            self._lengths[key] = _lengths(texts.vectors)
        lengths = self._lengths[key]
        if len(lengths):
            place = int(lengths.argmax())  # NaN counts as the largest.
            row = first + int(np.searchsorted(texts.starts, place, side="right")) - 1
            if not np.isfinite(lengths[place]):
                raise ValueError(f"row {row} has NaN or infinite values")
            self._queries.check_length(row, float(lengths[place]))
        return lengths

    def _choose(self, scores: Vectors, longest: float) -> Places:
        """Return the positions of the scores that may be among the k best of their query."""
        errors = self._errors(longest)
        size = max(1, min(QUERIES_AT_ONCE, -(-len(scores) // cores())))

        def choose(begin: int) -> Places:
            here = slice(begin, begin + size)
            positions = candidates(scores[here], self._nearest.k, errors[here], self._nearest.reached[here])
            return np.asarray(positions + begin * scores.shape[1])

        return np.concatenate(share(choose, range(0, len(scores), size), self._pool))

    def _errors(self, longest: float) -> Exact:
        """Return for each query the largest error of a score, for documents up to a given length.

        A sum of d products in any order has an error of at most d units of |q||d|, and the sum over n vectors of a
        query adds n units. Eight more units cover lengths in float32 and scores that are equal only after rounding to
        float32. Cosines add the rounding of both lengths.
        """
        dimension, sizes, counts = self._vectors.shape[1], self._queries.sizes, self._queries.texts.sizes
        roundings = counts + (2 * dimension + 20 if self._queries.cosine else dimension + 8)
        flushed = counts * (dimension + dimension**0.5 * (sizes + longest))
        return np.asarray(1.02 * roundings * FLOAT32_ERROR * sizes * longest + flushed * FLUSH_ERROR)

    def _score(self, tile: Sequence[Part], lines: Places, places: Places, longest: float) -> Exact:
        """Return the exact scores of pairs of a query and a document of the tile."""
        scores = np.empty(len(lines))

        def score(some: Sequence[Pairs]) -> None:
            for texts, numbers, own_lines, own_places in some:
                scores[numbers] = self._queries.scores(texts, own_lines, own_places)

        pairs = list(self._pairs(tile, lines, places))
        vectors = len(lines) * sum(len(texts.vectors) for _, texts in tile) // sum(len(texts) for _, texts in tile)
        shares = min(len(pairs), 1 + vectors // MIN_SHARED)
        share(score, [pairs[number::shares] for number in range(shares)], self._pool)
        doubtful = np.flatnonzero(self._queries.doubtful(scores, lines, longest))
        for texts, numbers, own_lines, own_places in self._pairs(tile, lines[doubtful], places[doubtful]):
            documents = texts.taken(own_places, self._queries.buffers)
            scores[doubtful[numbers]] = self._queries.scores_in_order(own_lines, documents)
        return scores

    def _pairs(self, tile: Sequence[Part], lines: Places, places: Places) -> Iterator[Pairs]:
        """Yield the pairs that are scored at a time.

        They are in one part of the tile, and of all queries, because a stored file has few documents of each query.
        """
        starts = np.cumsum([0, *(len(texts) for _, texts in tile)])
        parts = np.searchsorted(starts[1:], places, side="right").astype(np.min_scalar_type(len(tile)))
        order = np.argsort(parts, kind="stable")  # Numbers of 16 bits are sorted in linear time.
        bounds = np.searchsorted(parts[order], np.arange(len(tile) + 1)).tolist()
        for (_, texts), start, (begin, end) in zip(tile, starts.tolist(), pairwise(bounds), strict=False):
            own = order[begin:end]
            if begin == end:
                continue
            if self._queries.is_single(texts):
                cuts: Any = np.arange(PAIRS_AT_ONCE, len(own), PAIRS_AT_ONCE)
            else:
                own = own[np.argsort(places[own], kind="stable")]
                documents, firsts = np.unique(places[own], return_index=True)
                vectors = np.cumsum(texts.sizes[documents - start])
                cuts = firsts[np.flatnonzero(np.diff(vectors // PIECE_VECTORS)) + 1]
            own_lines, own_places = lines[own], places[own] - start
            for first, last in pairwise([0, *cuts.tolist(), len(own)]):
                yield texts, own[first:last], own_lines[first:last], own_places[first:last]


def _pieces(tile: Sequence[Part], scores: Vectors) -> Iterator[tuple[int, TextVectors, Vectors]]:
    """Yield the documents that a thread multiplies at a time, the row of the first one, and where their scores go."""
    start = 0
    for first, texts in tile:
        for begin, end in texts.parts(PIECE_VECTORS):
            yield first + begin, texts.part(begin, end), scores[:, start + begin : start + end]
        start += len(texts)


def _lengths(vectors: npt.NDArray[Any]) -> Exact:
    single = vectors.astype(np.float32, copy=False)
    with np.errstate(over="ignore", invalid="ignore"):
        squares = np.einsum("ij,ij->i", single, single).astype(np.float64)
    odd = np.flatnonzero(~((squares > SAFE_SQUARES[0]) & (squares < SAFE_SQUARES[1])))
    squares[odd] = np.einsum("ij,ij->i", vectors[odd], vectors[odd], dtype=np.float64)
    return np.asarray(np.sqrt(squares))


def _scaled(vectors: Vectors, lengths: Exact) -> tuple[Vectors, Vectors]:
    """Return vectors and the factors of their products that make cosines of them."""
    factors = np.divide(1, lengths, out=np.zeros(len(lengths)), where=lengths > 0)
    odd = np.flatnonzero((factors > 2.0**40) | (factors < 2.0**-50) & (factors > 0))
    if len(odd):  # Such a factor, or the product with it, would overflow or underflow in float32.
        vectors = vectors.copy()
        vectors[odd] = vectors[odd] * factors[odd, None]
        factors[odd] = 1
    return vectors, factors.astype(np.float32)
