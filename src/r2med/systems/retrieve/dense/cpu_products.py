"""Matrix products of exact dense search with NumPy, in float32. They select candidates with a proven error bound."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import numpy.typing as npt

from r2med.models.encoders.encoder import Vectors
from r2med.systems.retrieve.dense.exact_scores import Block, Exact, ExactScorer
from r2med.systems.retrieve.dense.shortlist import FLOAT32_ERROR, Shortlists

TILE_SCORES = 1 << 23
"""Number of scores in a tile, unless it has few documents."""
TILE_DOCUMENTS = 1 << 15
"""Minimum number of documents in a tile. With fewer, too many documents become candidates."""
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

    def __init__(
        self,
        scorer: ExactScorer,
        shortlists: Shortlists,
        lengths: Exact,
        k: int,
        memory: int,
        pool: ThreadPoolExecutor,
    ) -> None:
        self._scorer, self._shortlists, self._lengths, self._pool = scorer, shortlists, lengths, pool
        count, dimension = scorer.queries.shape
        norms = scorer.norms[:, None]
        if scorer.cosine:
            unit = np.divide(scorer.queries, norms, out=np.zeros((count, dimension)), where=norms > 0)
            self._queries, self._sizes = unit.astype(np.float32), np.ones(count)
        else:
            self._queries, self._sizes = scorer.queries, scorer.norms
        wanted = min(max(TILE_DOCUMENTS, TILE_SCORES // count, 8 * k), max(1, len(lengths)))
        self.tile_rows = max(1, min(wanted, memory // 8 // (4 * max(count, dimension, 1))))
        self._scores = np.empty((count, self.tile_rows), np.float32)

    def search(self, pieces: list[Block]) -> None:
        """Add the documents of a tile that may be among the k best."""
        rows = np.concatenate([np.arange(first, first + len(piece), dtype=np.int32) for first, piece in pieces])
        lengths = self._tile_lengths(pieces)
        self._scorer.check_length(int(rows[lengths.argmax()]), lengths.max())
        scores, at = self._scores[:, : len(rows)], 0
        for _, piece in pieces:
            part = slice(at, at + len(piece))
            self._multiply(piece, lengths[part], scores[:, part])
            at = part.stop
        if self._scorer.cosine:
            self._shortlists.choose(scores, rows, self._errors(1.0))
            return
        long, longest = _long(lengths)
        if len(long):
            lines = np.repeat(np.arange(len(scores)), len(long))
            documents = np.tile(rows[long], len(scores))
            self._shortlists.add_exact(lines, documents, self._scorer.score(lines, documents))
            scores[:, long] = -np.inf
        self._shortlists.choose(scores, rows, self._errors(longest))

    def flush(self) -> None:
        """Do nothing, because candidates are added immediately."""

    def _tile_lengths(self, pieces: list[Block]) -> Exact:
        """Return the lengths of the document vectors. Raises ValueError if a vector is not finite."""
        known = [self._lengths[first : first + len(piece)] for first, piece in pieces]
        new = [numbered for numbered, lengths in zip(pieces, known, strict=True) if np.isnan(lengths).any()]
        list(self._pool.map(self._take_lengths, new))
        return np.concatenate(known)

    def _take_lengths(self, numbered: Block) -> None:
        """Compute and save the lengths of some document vectors."""
        first, piece = numbered
        vectors = piece.astype(np.float32, copy=False)
        with np.errstate(over="ignore", invalid="ignore"):
            squares = np.einsum("ij,ij->i", vectors, vectors).astype(np.float64)
        odd = np.flatnonzero(~((squares > SAFE_SQUARES[0]) & (squares < SAFE_SQUARES[1])))
        squares[odd] = np.einsum("ij,ij->i", piece[odd], piece[odd], dtype=np.float64)
        if not (finite := np.isfinite(squares)).all():
            raise ValueError(f"row {first + np.flatnonzero(~finite)[0]} has NaN or infinite values")
        self._lengths[first : first + len(piece)] = np.sqrt(squares)

    def _multiply(self, piece: npt.NDArray[np.floating], lengths: Exact, out: Vectors) -> None:
        """Write the scores of all queries with some documents."""
        vectors: Vectors = piece.astype(np.float32, copy=False)
        if not self._scorer.cosine:
            np.matmul(self._queries, vectors.T, out=out)
            return
        factors = np.divide(1, lengths, out=np.zeros(len(lengths)), where=lengths > 0)
        odd = np.flatnonzero((factors > 2.0**40) | (factors < 2.0**-50) & (factors > 0))
        if len(odd):  # Such a factor, or the product with it, would overflow or underflow in float32.
            vectors = vectors.copy()
            vectors[odd] = piece[odd] * factors[odd, None]
            factors[odd] = 1
        np.matmul(self._queries, vectors.T, out=out)
        out *= factors.astype(np.float32)

    def _errors(self, longest: float) -> Exact:
        """Return for each query the largest error of a score, for documents up to a given length.

        A sum of d products in any order has an error of at most d units of |q

        d|. Eight more units cover lengths in float32 and scores that are equal only after rounding to float32. Cosines
        add the rounding of both lengths.
        """
        dimension = self._queries.shape[1]
        roundings = 2 * dimension + 20 if self._scorer.cosine else dimension + 8
        flushed = dimension + dimension**0.5 * (self._sizes + longest)
        return np.asarray(1.02 * roundings * FLOAT32_ERROR * self._sizes * longest + flushed * FLUSH_ERROR)


def _long(lengths: Exact) -> tuple[npt.NDArray[np.intp], float]:
    """Return the positions of a few documents that are much longer than all others, and the largest other length."""
    if len(lengths) <= LONG_DOCUMENTS or lengths.max() <= LONG_DOCUMENT_RATIO * lengths.mean():
        return np.empty(0, np.intp), float(lengths.max())
    usual = np.partition(lengths, -LONG_DOCUMENTS - 1)[-LONG_DOCUMENTS - 1]
    long = lengths > LONG_DOCUMENT_RATIO * usual
    return np.flatnonzero(long), float(lengths.max(where=~long, initial=0))
