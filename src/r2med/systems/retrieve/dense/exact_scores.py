"""Exact scores that decide a ranking: float64 sums over the stored vectors, equal on every machine and device."""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from r2med.models.encoders.encoder import Vectors

Rows = npt.NDArray[np.int32]
Positions = npt.NDArray[np.int64]
Exact = npt.NDArray[np.float64]
Block = tuple[int, npt.NDArray[Any]]
"""The row of the first document, and vectors in float32 or float16."""

BUFFER_NUMBERS = 1 << 16
"""Number of values converted to float64 at a time. Half a MiB fits into the cache of a core."""
MAX_LENGTH_PRODUCT = 2.0**126
"""From this product of two lengths on, a score or one of its partial sums may exceed float32."""


class ExactScorer:
    """Holds the blocks of documents seen so far and scores (query, row) pairs in float64."""

    def __init__(self, queries: Vectors, cosine: bool) -> None:
        """Raise ValueError if a query is not finite."""
        if not (finite := np.isfinite(queries)).all():
            raise ValueError(f"query {np.flatnonzero(~finite.all(axis=1))[0]} has NaN or infinite values")
        self.queries, self.cosine = queries, cosine
        self.norms: Exact = np.sqrt(np.einsum("ij,ij->i", queries, queries, dtype=np.float64))
        """Lengths of the query vectors."""
        self._pairs_at_once = max(1, BUFFER_NUMBERS // max(1, queries.shape[1]))
        self._blocks: list[Block] = []
        self._end = 0
        self.held_bytes = 0
        """Memory of blocks that are not mapped files. The system can drop the pages of a mapped file itself."""

    def hold(self, first: int, block: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Keep a block for scoring and return it as a contiguous array.

        Raises ValueError if it does not fit the queries.
        """
        if block.dtype not in (np.float32, np.float16):
            raise ValueError(f"documents must be float32 or float16, not {block.dtype}")
        dimension = self.queries.shape[1]
        if block.ndim != 2 or block.shape[1] != dimension:
            raise ValueError(f"documents of shape {block.shape} do not fit queries of dimension {dimension}")
        if first < self._end:
            raise ValueError(f"row {first} comes after row {self._end - 1}: blocks must have ascending rows")
        block, self._end = np.ascontiguousarray(block), first + len(block)
        self._blocks.append((first, block))
        self.held_bytes += 0 if _is_mapped(block) else block.nbytes
        return block

    def check_length(self, row: int, length: float) -> None:
        """Raise ValueError if scores of a document of this length, or their partial sums, may exceed float32."""
        if not self.cosine and length * self.norms.max() >= MAX_LENGTH_PRODUCT:
            raise ValueError(f"row {row} is too long; its score may exceed float32")

    def release(self) -> None:
        """Drop all blocks that are not mapped files. Their rows cannot be scored afterwards."""
        self._blocks = [(first, block) for first, block in self._blocks if _is_mapped(block)]
        self.held_bytes = 0

    def score(self, lines: Positions, rows: Rows) -> Exact:
        """Return the scores of (query, document) pairs in float64."""
        out = np.empty(len(rows))
        for block, first, pairs in self._by_block(rows):
            # The buffers are made once, because allocating them takes several times as long as the sums.
            shape = (min(self._pairs_at_once, len(pairs)), block.shape[1])
            single, stored, left, right = (np.empty(shape, kind) for kind in ("f4", block.dtype, "f8", "f8"))
            for at in range(0, len(pairs), self._pairs_at_once):
                some = pairs[at : at + self._pairs_at_once]
                size = len(some)
                np.take(block, rows[some] - first, axis=0, out=stored[:size], mode="clip")
                np.take(self.queries, lines[some], axis=0, out=single[:size], mode="clip")
                left[:size], right[:size] = single[:size], stored[:size]
                out[some] = self._pair_scores(lines[some], left[:size], right[:size])
        return out

    def _by_block(self, rows: Rows) -> Iterator[tuple[npt.NDArray[Any], int, Positions]]:
        """Yield each block that contains some of the rows, its first row, and the positions of these rows."""
        block_of = np.searchsorted([first for first, _ in self._blocks], rows, side="right") - 1
        if (block_of < 0).any():
            raise LookupError("the row is in a block that was released")
        order = np.argsort(block_of, kind="stable")
        bounds = np.searchsorted(block_of[order], np.arange(len(self._blocks) + 1))
        for (first, block), (begin, end) in zip(self._blocks, pairwise(bounds), strict=True):
            if begin < end:
                if rows[order[begin:end]].max() - first >= len(block):
                    raise LookupError("the row is in a block that was released")
                yield block, first, order[begin:end]

    def _pair_scores(self, lines: Positions, queries: Exact, documents: Exact) -> Exact:
        # einsum adds up each row separately, in an order that depends only on the dimension. With a BLAS product, the
        # last bit could depend on neighbouring rows, and duplicates could get different scores.
        dots: Exact = np.einsum("ij,ij->i", queries, documents)
        if self.cosine:
            norms = np.sqrt(np.einsum("ij,ij->i", documents, documents)) * self.norms[lines]
            dots = np.divide(dots, norms, out=np.zeros_like(dots), where=norms > 0)
        return dots


def _is_mapped(array: npt.NDArray[Any]) -> bool:
    base: Any = array
    while isinstance(base, np.ndarray):
        base = base.base
    return isinstance(base, mmap.mmap)
