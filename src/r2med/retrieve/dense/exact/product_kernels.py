"""Products of queries and documents, piece by piece: compiled, with the BLAS called from there."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba.np.numpy_support import carray

from r2med.encoders.encoder import Vectors
from r2med.retrieve.dense.exact.arrays import Exact, Positions
from r2med.retrieve.dense.exact.instructions import fetch_add, pointer, sgemm
from r2med.retrieve.dense.exact.jit import compiled, compiled_sum
from r2med.retrieve.dense.exact.rounding import SAFE_SQUARES

INFINITE = 0x7C00
"""The bits of a number of half precision, without its sign, from which on it is infinite or NaN."""

SMALLEST_NORMAL = 0x0400
"""Those of 2^-14."""


class PieceTable(NamedTuple):
    """Documents of products: where they lie, their first row, how many, if in half precision, their first column."""

    addresses: Positions
    rows: Positions
    counts: Positions
    halves: npt.NDArray[np.bool_]
    columns: Positions


class Product(NamedTuple):
    """Pieces that threads multiply, and where their scores go.

    For cosines `factors` has a number for each document, NaN where it is not known: then it is written there.
    For products `longest` has the largest length of every n-th vector of each. `odd` says which ones NumPy must do
    again: those with numbers that are not finite, and for cosines with lengths that float32 cannot take.
    """

    blas: int
    queries: Vectors
    cosine: bool
    factors: Vectors
    pieces: PieceTable
    scores: Vectors
    pieces_taken: Positions
    pieces_done: Positions
    longest: Exact
    odd: npt.NDArray[np.bool_]


def empty_product() -> Product:
    """Return a product of nothing."""
    numbers, flags, vectors = np.zeros(0, np.int64), np.zeros(0, np.bool_), np.zeros((0, 0), np.float32)
    taken, done = np.zeros(1, np.int64), np.zeros(1, np.int64)
    pieces = PieceTable(numbers, numbers, numbers, flags, numbers)
    return Product(0, vectors, False, np.zeros(0, np.float32), pieces, vectors, taken, done, np.zeros(0), flags)


@compiled
def multiply(product: Product, most: int) -> bool:
    """Write the scores of some pieces at most that no other thread has taken; return whether none is left to take."""
    (lines, dimension), apart, pieces = product.queries.shape, product.scores.shape[1], product.pieces
    if fetch_add(product.pieces_taken, 0) >= len(pieces.counts):
        return True
    query_factors = np.full(lines if product.cosine else 0, np.nan, np.float32)
    queries_fine, size, half = _find_factors(product.queries.reshape(-1), query_factors), 0, False
    for number in range(len(pieces.counts)):
        size, half = max(size, pieces.counts[number]), half or pieces.halves[number]
    widened = np.empty(size * dimension if half else 0, np.float32)
    for _ in range(most):
        number = fetch_add(product.pieces_taken, 1)
        if number >= len(pieces.counts):
            return True
        count, column, address = pieces.counts[number], pieces.columns[number], pieces.addresses[number]
        if pieces.halves[number]:
            documents = widened[: count * dimension]
            largest = widen(carray(pointer(address), count * dimension, np.uint16), documents)
            product.odd[number] = largest >= INFINITE
        else:
            documents = carray(pointer(address), count * dimension, np.float32)
        queries, out = product.queries.ctypes.data, product.scores.ctypes.data + 4 * column
        sgemm(product.blas, queries, documents.ctypes.data, out, (lines, count, dimension, apart))
        if product.cosine:
            factors = product.factors[pieces.rows[number] : pieces.rows[number] + count]
            if not product.odd[number]:
                product.odd[number] = not (_find_factors(documents, factors) and queries_fine)
            for line in range(lines):
                _scale(product.scores[line, column : column + count], factors, query_factors[line])
        else:
            product.odd[number] |= not _finite(product.scores[0, column : column + count])
            for document in range(0, count, max(1, min(64, count // 16))):
                square = _square(documents[document * dimension : (document + 1) * dimension])
                product.longest[number] = max(product.longest[number], np.sqrt(square))
        fetch_add(product.pieces_done, 1)
    return False


@compiled
def _find_factors(vectors: Vectors, factors: Vectors) -> bool:
    """Write what makes products cosines, where it is not known; return whether float32 can take all lengths."""
    dimension, fine = len(vectors) // max(1, len(factors)), True
    for number in range(len(factors)):
        if np.isnan(factors[number]):
            vector = vectors[number * dimension : (number + 1) * dimension]
            square = _fast_square(vector)
            if SAFE_SQUARES[0] < square < SAFE_SQUARES[1]:
                factors[number] = 1 / np.sqrt(square)
            elif _is_zero(vector):
                factors[number] = 1
            else:
                fine = False
    return fine


@compiled
def _is_zero(vector: Vectors) -> bool:
    """Return whether all numbers are 0: by their bits, since a thread may be told to take the smallest for 0."""
    bits, zero = vector.view(np.uint32), True
    for at in range(len(bits)):
        zero &= bits[at] & np.uint32(0x7FFFFFFF) == 0
    return zero


@compiled
def _scale(scores: Vectors, factors: Vectors, factor: np.float32) -> None:
    for at in range(len(scores)):
        scores[at] *= factors[at] * factor


@compiled
def _finite(scores: Vectors) -> bool:
    finite = True
    for at in range(len(scores)):
        finite &= bool(np.isfinite(scores[at]))
    return finite


@compiled_sum
def _square(vector: Vectors) -> float:
    square = 0.0
    for at in range(len(vector)):
        square += np.float64(vector[at]) * np.float64(vector[at])
    return square


@compiled_sum
def _fast_square(vector: Vectors) -> np.float32:
    square = np.float32(0)
    for at in range(len(vector)):
        square += vector[at] * vector[at]
    return square


@compiled
def widen(halves: npt.NDArray[np.uint16], floats: Vectors) -> int:
    """Write numbers of half precision in single precision, if they are finite; return the bits of the largest.

    No step has a subnormal float32: a thread may be told to take those for 0.
    """
    bits, largest = floats.view(np.uint32), np.uint16(0)
    for at in range(len(halves)):
        size = np.uint16(halves[at] & np.uint16(0x7FFF))
        largest = max(largest, size)
        # Exponents are 112 too small. Below 2^-14 there is no leading one: it is put there, and taken off below.
        exponents = np.uint32(113 if size < SMALLEST_NORMAL else 112)
        bits[at] = (np.uint32(size) << np.uint32(13)) + (exponents << np.uint32(23))
    for at in range(len(halves)):
        size = np.uint16(halves[at] & np.uint16(0x7FFF))
        floats[at] -= np.float32(2.0**-14 if size < SMALLEST_NORMAL else 0.0)
    for at in range(len(halves)):
        bits[at] |= np.uint32(halves[at] & np.uint16(0x8000)) << np.uint32(16)
    return int(largest)
