"""Exact search with NumPy: float64 products of all queries with all documents, and the k best of them.

If few documents can be among the best, float32 products choose these first, with a proven error bound. Threads of ours
share the documents for the products, and the queries to choose candidates, with one thread of the BLAS each. Its own
threads would answer one question faster, but those of several callers at once wait for each other.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import chain, pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from r2med.data.runs.ties import guessed_best, kth_best
from r2med.foundation.engine import cores, one_blas_thread, share
from r2med.models.encoders.encoder import Vectors
from r2med.systems.retrieve.exact.exact_scores import Nearest, Queries, lengths
from r2med.systems.retrieve.exact.text_vectors import Exact, Places, TextVectors, Tile, joined_rows, starts

TILE_SCORES = 1 << 23
"""Number of scores in a tile, unless it has few documents."""
TILE_DOCUMENTS = 1 << 15
"""Minimum number of documents in a tile. With fewer, too many documents become candidates."""
PIECE_VECTORS = 1 << 12
PIECE_NUMBERS = {np.float32: 1 << 22, np.float64: 1 << 20}
"""Numbers of vectors and of values that a thread multiplies at a time. Few fit into its cache, many take few steps."""
MIN_SHARED = 1 << 9
"""Minimum number of vectors that a thread multiplies. To wake it for fewer takes longer."""
QUERY_VECTORS = 1 << 9
"""Maximum number of query vectors multiplied at a time, if a text has several vectors."""
QUERIES_AT_ONCE = 8
"""Number of queries whose candidates are chosen together. Each step of NumPy gives up the interpreter lock and waits
for it, so that many short steps in many threads take longer than few long ones."""
VECTORS_IN_ORDER = 1 << 10
"""Number of vectors whose products are added up in the fixed order at a time."""
FEW_DOCUMENTS = 1 / 4
"""Share of the documents that all queries together look for, up to which float32 products choose them first."""
ORDINARY_LENGTHS = (2.0**-40, 2.0**40)
"""Range of lengths with products that neither overflow nor underflow in float32."""

Piece = tuple[int | None, int, Callable[[], TextVectors]]
"""Documents that a thread multiplies at a time: first row if all that follow belong to it, place, and their vectors."""


class Buffers(threading.local):
    """Arrays that a thread uses again. The system gives out fresh memory more slowly than the work on it takes."""

    def __init__(self) -> None:
        self._arrays: dict[str, npt.NDArray[Any]] = {}

    def array(self, name: str, shape: tuple[int, int], kind: npt.DTypeLike) -> npt.NDArray[Any]:
        """Return an array with any content. The next one of this name, type and thread overwrites it."""
        key, size = f"{name} {np.dtype(kind)}", shape[0] * shape[1]
        if key not in self._arrays or len(self._arrays[key]) < size:
            self._arrays[key] = np.empty(size, kind)
        return self._arrays[key][:size].reshape(shape)


class SearchCache:
    """Data that searches of the same documents use again."""

    def __init__(self) -> None:
        self.lengths: dict[tuple[int, int], Exact] = {}
        """First row and number of documents of a piece -> the lengths of its vectors."""
        self.on_gpu: dict[tuple[str, bool], list[Any]] = {}
        """Device, and True for cosines -> the chunks of all documents, if they fit."""
        self.buffers = Buffers()
        self._pool = ThreadPoolExecutor(cores()), os.getpid()

    @property
    def pool(self) -> ThreadPoolExecutor:
        """The threads of searches. To start them takes as long as to search for a question."""
        if self._pool[1] != os.getpid():  # a forked process has no threads
            self._pool = ThreadPoolExecutor(cores()), os.getpid()
        return self._pool[0]


class CpuProducts:
    """A search of the queries in one tile of documents after the other."""

    def __init__(self, queries: Queries, nearest: Nearest, documents: int, memory: int, cache: SearchCache) -> None:
        self._queries, self._nearest, self._cache = queries, nearest, cache
        self._shortest, self._longest = np.inf, 0.0
        """Range of the lengths of document vectors so far."""
        vectors, count = queries.texts.vectors, len(queries)
        if queries.cosine:
            vectors = vectors * _inverse(queries.norms)[:, None]
        self._vectors = {kind: vectors.astype(kind) for kind in PIECE_NUMBERS}
        texts = min(max(TILE_DOCUMENTS, TILE_SCORES // count, 8 * nearest.k), max(1, documents))
        self.tile_texts = max(1, min(texts, memory // 64 // max(count, vectors.shape[1], 1)))

    def search(self, tile: Tile) -> None:
        """Add the documents of a tile that are among the k best so far."""
        chosen, (rows, _) = None, joined_rows(tile)
        with one_blas_thread():
            if len(self._queries) * self._nearest.k <= FEW_DOCUMENTS * len(rows):
                chosen = self._chosen(tile, len(rows))
            scores = self._scores(tile, np.float64, len(rows), chosen)
            positions = self._candidates(scores)
        lines, places = np.divmod(positions, max(1, scores.shape[1]))
        exact = scores.ravel()[positions]
        places = places if chosen is None else chosen[places]
        doubtful = self._queries.doubtful(exact, lines, self._longest)
        doubtful = doubtful[np.argsort(places[doubtful], kind="stable")]
        for _, start, take in _pieces(tile, VECTORS_IN_ORDER, places[doubtful]):
            texts = take()
            some = doubtful[start : start + len(texts)]
            exact[some] = self._queries.scores_in_order(lines[some], texts)
        self._nearest.add(lines, rows[places], exact)

    def _chosen(self, tile: Tile, documents: int) -> Places | None:
        """Return the places of the documents that may be among the best, or None if float32 products may overflow."""
        scores = self._scores(tile, np.float32, documents)
        norms = self._queries.norms[self._queries.norms > 0]
        used = [self._shortest, self._longest] if self._queries.cosine else [self._longest, *norms]
        if min(used) < ORDINARY_LENGTHS[0] or max(used) > ORDINARY_LENGTHS[1]:
            return None
        return np.unique(self._candidates(scores) % documents)

    def _scores(self, tile: Tile, kind: Any, documents: int, chosen: Places | None = None) -> npt.NDArray[Any]:
        """Return the scores of all queries with the documents of a tile, or with chosen ones of them."""
        scores = np.empty((len(self._queries), documents if chosen is None else len(chosen)), kind)
        vectors = min(PIECE_VECTORS, PIECE_NUMBERS[kind] // max(1, self._queries.texts.vectors.shape[1]))
        pieces = list(_pieces(tile, vectors, chosen))
        most = 1 + scores.shape[1] * sum(len(texts.vectors) for _, texts in tile) // documents // MIN_SHARED

        def multiply(some: Sequence[Piece]) -> list[tuple[float, float]]:
            return [self._multiply(piece, scores) for piece in some]

        shares = [pieces[number::most] for number in range(min(most, len(pieces)))]
        for shortest, longest in chain.from_iterable(share(multiply, shares, self._cache.pool)):
            self._shortest, self._longest = min(self._shortest, shortest), max(self._longest, longest)
        return scores

    def _multiply(self, piece: Piece, scores: npt.NDArray[Any]) -> tuple[float, float]:
        """Write the scores of all queries with some documents. Return the range of the lengths of their vectors."""
        (row, start, take), kind, queries = piece, scores.dtype, self._queries.texts
        texts = take()
        vectors, out = texts.vectors, scores[:, start : start + len(texts)]
        if vectors.dtype != kind:
            vectors = self._cache.buffers.array("vectors", vectors.shape, kind)
            vectors[:] = texts.vectors
        sizes = self._lengths(row, texts, vectors)
        is_single = queries.offsets is None and texts.offsets is None
        for begin, end in queries.parts(QUERY_VECTORS):
            own = self._vectors[kind.type][queries.span(begin, end)]
            shape = len(own), len(vectors)
            products = out[begin:end] if is_single else self._cache.buffers.array("products", shape, kind)
            with np.errstate(over="ignore", under="ignore", invalid="ignore"):  # Such products are not used.
                np.matmul(own, vectors.T, out=products)
                if self._queries.cosine:
                    products *= _inverse(sizes).astype(kind)
            if not is_single:
                largest = texts.reduced(np.maximum, products)
                out[begin:end] = queries.part(begin, end).reduced(np.add, largest.T).T
        return float(sizes.min(initial=np.inf)), float(sizes.max(initial=0))

    def _lengths(self, row: int | None, texts: TextVectors, vectors: npt.NDArray[Any]) -> Exact:
        """Return the lengths of some vectors, computed once for all searches. They are checked unless chosen."""
        if row is None:
            return lengths(vectors) if self._queries.cosine else np.empty(0)
        sizes = self._cache.lengths.get((row, len(texts)))
        if sizes is None:
            sizes = self._cache.lengths[row, len(texts)] = lengths(vectors)
        if len(sizes):
            self._queries.check_length(row + texts.text_of(int(sizes.argmax())), float(sizes.max()))
        return sizes

    def _candidates(self, scores: npt.NDArray[Any]) -> Places:
        """Return the positions of the scores that may be among the k best of their query."""
        errors = self._queries.errors(scores.dtype.type, self._longest)
        size = max(1, min(QUERIES_AT_ONCE, -(-len(scores) // cores())))

        def choose(begin: int) -> Places:
            here = slice(begin, begin + size)
            positions = candidates(scores[here], self._nearest.k, errors[here], self._nearest.reached[here])
            return np.asarray(positions + begin * scores.shape[1])

        return np.concatenate(share(choose, range(0, len(scores), size), self._cache.pool))


def _pieces(tile: Tile, vectors: int, chosen: Places | None = None) -> Iterator[Piece]:
    """Yield pieces of the documents of a tile, or of chosen ones, whose places ascend. Each is one part of the tile."""
    start, end = 0, 0
    for rows, texts in tile:
        end += len(texts)
        if chosen is None:
            for begin, stop in texts.parts(vectors):
                yield int(rows[begin]), end - len(texts) + begin, partial(texts.part, begin, stop)
            continue
        places = chosen[start : np.searchsorted(chosen, end)] - (end - len(texts))
        sized = TextVectors(places, None if texts.offsets is None else starts(texts.sizes[places]))
        for begin, stop in sized.parts(vectors):
            yield None, start + begin, partial(texts.taken, places[begin:stop])
        start += len(places)


def candidates(scores: npt.NDArray[Any], k: int, errors: Exact, reached: Exact) -> Places:
    """Return the positions, in the ravelled matrix, of the documents that may be among the k best of their line.

    If k documents reach a score, a document two errors below it cannot be among the k best. `reached` are exact scores
    that k documents of earlier tiles reach. A floor is guessed from a sample, and proven. Each step takes several
    queries at once: it gives up the interpreter lock, and waits for it.
    """
    width, floors = scores.shape[1], _below(reached - errors)
    guess = np.maximum(guessed_best(scores, k), floors)
    positions = np.flatnonzero(scores >= guess[:, None])
    fast = scores.ravel()[positions]
    bounds = np.searchsorted(positions, width * np.arange(len(scores) + 1))
    highest = [kth_best(fast[begin:end], k) for begin, end in pairwise(bounds)]
    proven = np.maximum(_below(np.array(highest) - 2 * errors), floors)
    if (guess > proven).any():  # The guess left out some that the error allows, or found less than k documents.
        return np.flatnonzero(scores >= np.minimum(guess, proven)[:, None])
    return positions[fast >= np.repeat(proven, np.diff(bounds))]


def _below(floors: Exact) -> Vectors:
    """Return single numbers below the floors. A score that rounds to a floor is above them."""
    return np.nextafter(floors.astype(np.float32), np.float32(-np.inf))


def _inverse(sizes: Exact) -> Exact:
    """Return what turns vectors of some lengths into vectors of length 1, and vectors of zeros into zeros."""
    return np.divide(1, sizes, out=np.zeros(len(sizes)), where=sizes > 0)
