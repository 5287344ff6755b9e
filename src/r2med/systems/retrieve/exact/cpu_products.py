"""Matrix products of exact search with NumPy, in float32. They select candidates with a proven error bound."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from typing import Any

import numpy as np
import numpy.typing as npt

from r2med.foundation.engine import one_blas_thread, share
from r2med.models.encoders.encoder import Vectors
from r2med.systems.retrieve.exact.exact_scores import ExactScorer
from r2med.systems.retrieve.exact.shortlist import Shortlists
from r2med.systems.retrieve.exact.text_vectors import Exact, Piece, TextVectors

FLOAT32_ERROR = 2.0**-24
"""Largest relative error of one float32 operation."""
TILE_SCORES = 1 << 23
"""Number of scores in a tile, unless it has few documents."""
TILE_DOCUMENTS = 1 << 15
"""Minimum number of documents in a tile. With fewer, too many documents become candidates."""
PIECE_VECTORS = 1 << 12
"""Number of vectors that a thread multiplies at a time. Their products with a hundred vectors fit into its cache."""
QUERY_VECTORS = 1 << 12
"""Maximum number of query vectors multiplied at a time, if a text has several vectors."""
SAFE_SQUARES = (2.0**-80, 2.0**100)
"""Range of squared lengths that float32 computes without overflow and underflow."""
FLUSH_ERROR = 2.0**-125
"""Largest absolute error of one float32 operation on numbers that may be flushed to zero."""
LONG_DOCUMENTS = 16
"""Maximum number of long documents in a tile. They are scored exactly and do not count for the error of the others."""
LONG_DOCUMENT_RATIO = 8
"""A long document is this many times as long as all others."""


class CpuProducts:
    """Matrix products of the queries of one search, computed with NumPy."""

    tile_vectors = 1 << 62

    def __init__(
        self,
        scorer: ExactScorer,
        shortlists: Shortlists,
        lengths: dict[tuple[int, int], Exact],
        documents: int,
        k: int,
        memory: int,
        pool: ThreadPoolExecutor,
    ) -> None:
        self._scorer, self._shortlists, self._lengths, self._pool = scorer, shortlists, lengths, pool
        vectors, norms, count = scorer.queries.vectors, scorer.norms[:, None], len(scorer.queries)
        if scorer.cosine:
            vectors = np.divide(vectors, norms, out=np.zeros(vectors.shape), where=norms > 0).astype(np.float32)
        self._vectors: Vectors = vectors
        self.piece_vectors = PIECE_VECTORS
        wanted = min(max(TILE_DOCUMENTS, TILE_SCORES // count, 8 * k), max(1, documents))
        self.tile_texts = max(1, min(wanted, memory // 8 // (4 * max(count, vectors.shape[1], 1))))
        self._scores = np.empty((count, self.tile_texts), np.float32)

    def search(self, pieces: list[Piece]) -> None:
        """Add the documents of a tile that may be among the k best."""
        rows = np.concatenate([piece.rows for piece in pieces])
        of_vectors = self._lengths_of(pieces)
        lengths = np.concatenate([p.texts.largest(own) for p, own in zip(pieces, of_vectors, strict=True)])
        place = int(lengths.argmax())
        self._scorer.check_length(int(rows[place]), float(lengths[place]))
        scores = self._scores[:, : len(rows)]
        ends = np.cumsum([len(piece.texts) for piece in pieces]).tolist()
        work = [
            (piece, own, scores[:, end - len(piece.texts) : end])
            for piece, own, end in zip(pieces, of_vectors, ends, strict=True)
        ]
        with one_blas_thread() if len(pieces) > 1 else nullcontext():
            share(lambda each: self._multiply(*each), work, self._pool)
        longest = 1.0
        if not self._scorer.cosine:
            long, longest = _long(lengths, float(lengths[place]))
            if len(long):
                for line in range(len(scores)):
                    self._shortlists.add_exact(line, rows[long], self._scorer.score(line, rows[long]))
                scores[:, long] = -np.inf
        self._shortlists.choose(scores, rows, self._errors(longest))

    def _lengths_of(self, pieces: Sequence[Piece]) -> list[Exact]:
        """Return the lengths of the vectors of each piece. Those of a block are computed once for all searches."""
        blocks = {piece.block[0]: piece.block[1] for piece in pieces}
        missing = [(first, block) for first, block in blocks.items() if (first, len(block)) not in self._lengths]
        parts = [(*block, at) for block in missing for at in range(0, len(block[1].vectors), PIECE_VECTORS)]
        computed = share(lambda part: _lengths(part[1].vectors[part[2] : part[2] + PIECE_VECTORS]), parts, self._pool)
        for first, block in missing:
            own = [lengths for part, lengths in zip(parts, computed, strict=True) if part[0] == first]
            self._lengths[first, len(block)] = _finite(first, block, np.concatenate([np.empty(0), *own]))
        found = []
        for piece in pieces:
            first, block = piece.block
            here = block.span(piece.first - first, piece.first - first + len(piece.texts))
            found.append(self._lengths[first, len(block)][here])
        return found

    def flush(self) -> None:
        """Do nothing, because candidates are added immediately."""

    def _multiply(self, piece: Piece, lengths: Exact, out: Vectors) -> None:
        """Write the scores of all queries with some documents."""
        vectors = piece.texts.vectors.astype(np.float32, copy=False)
        factors: Vectors | None = None
        if self._scorer.cosine:
            vectors, factors = _scaled(vectors, lengths)
        queries = self._scorer.queries
        if queries.offsets is None and piece.texts.offsets is None:
            np.matmul(self._vectors, vectors.T, out=out)
            if factors is not None:
                out *= factors
            return
        begin = 0
        while begin < len(queries):
            end = queries.end_of_part(begin, len(queries), QUERY_VECTORS)
            products = self._vectors[queries.span(begin, end)] @ vectors.T
            if factors is not None:
                products *= factors
            # Along lines, NumPy finds the largest a hundred times as fast as across them.
            out[begin:end] = queries.part(begin, end).sums(piece.texts.largest(products))
            begin = end

    def _errors(self, longest: float) -> Exact:
        """Return for each query the largest error of a score, for documents up to a given length.

        A sum of d products in any order has an error of at most d units of |q||d|, and the sum over n vectors of a
        query adds n units. Eight more units cover lengths in float32 and scores that are equal only after rounding to
        float32. Cosines add the rounding of both lengths.
        """
        dimension, sizes, counts = self._vectors.shape[1], self._scorer.sizes, self._scorer.queries.sizes
        roundings = counts + (2 * dimension + 20 if self._scorer.cosine else dimension + 8)
        flushed = counts * (dimension + dimension**0.5 * (sizes + longest))
        return np.asarray(1.02 * roundings * FLOAT32_ERROR * sizes * longest + flushed * FLUSH_ERROR)


def _finite(first: int, block: TextVectors, lengths: Exact) -> Exact:
    """Return the lengths of the vectors of a block. Raises ValueError if one is not finite."""
    if not (finite := np.isfinite(lengths)).all():
        row = first + np.searchsorted(block.starts, np.flatnonzero(~finite)[0], side="right") - 1
        raise ValueError(f"row {row} has NaN or infinite values")
    return lengths


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


def _long(lengths: Exact, longest: float) -> tuple[npt.NDArray[np.intp], float]:
    """Return the positions of a few documents that are much longer than all others, and the largest other length."""
    if len(lengths) <= LONG_DOCUMENTS or longest <= LONG_DOCUMENT_RATIO * lengths.mean():
        return np.empty(0, np.intp), longest
    usual = np.partition(lengths, -LONG_DOCUMENTS - 1)[-LONG_DOCUMENTS - 1]
    long = lengths > LONG_DOCUMENT_RATIO * usual
    return np.flatnonzero(long), float(lengths.max(where=~long, initial=0))
