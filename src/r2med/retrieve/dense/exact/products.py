"""The scores of all queries with some documents, by NumPy; each thread multiplies some of the documents."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from r2med.encoders.encoder import Vectors
from r2med.engine.threads import share
from r2med.retrieve.dense.exact.arrays import Block, Step, check_scores
from r2med.retrieve.dense.exact.rescoring import Rescorer
from r2med.retrieve.dense.exact.rounding import SAFE_SQUARES, Rounding

MOST = 1 << 12
"""Documents a product at most: that many scores of a hundred queries stay in a core's cache."""
FEWEST = 1 << 6
"""Documents a product at least, before the end of a block: of fewer, a BLAS takes longer for each."""


class Piece(NamedTuple):
    """Documents from `start` to `end` of a block of a batch, and the first column of their scores."""

    block: int
    start: int
    end: int
    column: int


Pieces = tuple[Piece, ...]


class Products:
    """Multiplies the queries of a rescorer.

    For cosines there are factors of all documents, NaN where none is known: those of ordinary lengths are written.
    """

    def __init__(self, rescorer: Rescorer, factors: Vectors | None, rounding: Rounding, threads: int) -> None:
        self._rescorer, self._factors, self._rounding, self._threads = rescorer, factors, rounding, threads
        self._unit_queries: Vectors | None = None

    def write(self, batch: list[Block], scores: Vectors, step: Step) -> None:
        """Write the scores of documents; there may be room behind them. Raises ValueError if a vector is not finite.

        The step is what will be done with them: threads may begin it.
        """
        pieces = _pieces(tuple(len(block) for _, block in batch), self._threads)
        for piece in self._multiply(batch, pieces, scores, step):
            _check_documents(batch, piece, scores[0])

    def _multiply(self, batch: list[Block], pieces: Pieces, scores: Vectors, step: Step) -> Pieces:
        """Write the scores of the documents of a batch, piece by piece; return those that may not be finite."""
        if not pieces:
            return pieces
        queries = self._queries()

        def score_piece(piece: Piece) -> None:
            first, block = batch[piece.block]
            out = scores[:, piece.column : piece.column + piece.end - piece.start]
            self._product(queries, first + piece.start, block[piece.start : piece.end], out)

        share(score_piece, pieces, self._threads)
        return pieces

    def _queries(self) -> Vectors:
        """Return the queries, of length 1 for cosines."""
        if self._factors is None:
            return self._rescorer.queries
        if self._unit_queries is None:
            self._unit_queries = _of_length_one(self._rescorer)
        return self._unit_queries

    def _product(self, queries: Vectors, first: int, block: npt.NDArray[Any], out: Vectors) -> None:
        documents = np.ascontiguousarray(block, dtype=np.float32)
        if self._factors is not None:
            documents, factors = _unit_length(first, documents, self._factors[first : first + len(documents)])
            multiply(queries, documents, out)
            np.multiply(out, factors, out=out)
        else:
            multiply(queries, documents, out)
            self._rounding.saw(_longest(documents))


@lru_cache(maxsize=16)
def _pieces(sizes: tuple[int, ...], threads: int) -> Pieces:
    """Return the documents of single products: fewer and fewer, so that all threads end at about the same time."""
    pieces, column, left = [], 0, sum(sizes)
    for block, size in enumerate(sizes):
        at = 0
        while at < size:
            end = min(at + max(FEWEST, min(MOST, 3 * left // (4 * threads))), size)
            pieces.append(Piece(block, at, end, column))
            column, left, at = column + end - at, left - (end - at), end
    return tuple(pieces)


def _check_documents(batch: list[Block], piece: Piece, scores: Vectors) -> None:
    """Raise ValueError if a score with one query is not finite: its vector is not, or too long."""
    first, block = batch[piece.block]
    here = scores[piece.column : piece.column + piece.end - piece.start]
    for index in piece.start + np.flatnonzero(~np.isfinite(here)):
        if not np.isfinite(block[index]).all():
            raise ValueError(f"row {first + index} has NaN or infinite values")
        check_scores(np.array([first + index], np.int32), here[index - piece.start, None])


def multiply(queries: Vectors, documents: Vectors, out: Vectors) -> None:
    """Write the scores of all queries with some documents."""
    with np.errstate(all="ignore"):  # what is not finite is found in the scores, and named
        np.matmul(queries, documents.T, out=out)


def _longest(documents: Vectors) -> float:
    """Return the largest length of every n-th document: reading all once more would cost a sixth of the product."""
    some = documents[:: max(1, min(64, len(documents) // 16))]
    squares = np.einsum("ij,ij->i", some, some).max(initial=0)
    if not SAFE_SQUARES[0] < squares < SAFE_SQUARES[1]:
        squares = np.einsum("ij,ij->i", some, some, dtype=np.float64).max(initial=0)
    return float(np.sqrt(squares))


def _of_length_one(rescorer: Rescorer) -> Vectors:
    """Return the queries with length 1, or 0."""
    queries, norms = rescorer.queries, np.where(rescorer.norms > 0, rescorer.norms, 1)[:, None]
    if SAFE_SQUARES[0] < norms.min() ** 2 and norms.max() ** 2 < SAFE_SQUARES[1]:
        return queries * (1 / norms).astype(np.float32)
    return (queries / norms).astype(np.float32)


def _unit_length(first: int, documents: Vectors, kept_factors: Vectors) -> tuple[Vectors, Vectors]:
    """Return documents and the factors that make their scores cosines; those of ordinary lengths are written down."""
    unknown = np.flatnonzero(np.isnan(kept_factors))
    if not len(unknown):
        return documents, kept_factors
    some = documents if len(unknown) == len(documents) else documents[unknown]
    with np.errstate(all="ignore"):
        squares = np.einsum("ij,ij->i", some, some)
        fine = (squares > SAFE_SQUARES[0]) & (squares < SAFE_SQUARES[1])
        kept_factors[unknown[fine]] = 1 / np.sqrt(squares[fine])  # never NaN: another search may have a number there
    factors = kept_factors.copy()
    if len(odd := unknown[~fine]):  # zero, not finite, or squares that float32 cannot hold
        if len(bad := odd[~np.isfinite(documents[odd]).all(axis=1)]):
            raise ValueError(f"row {first + bad[0]} has NaN or infinite values")
        exact = documents[odd].astype(np.float64)
        norms = np.sqrt(np.einsum("ij,ij->i", exact, exact))[:, None]
        documents = documents.copy()
        documents[odd] = np.divide(exact, norms, out=np.zeros_like(exact), where=norms > 0)
        factors[odd] = 1
    return documents, factors
