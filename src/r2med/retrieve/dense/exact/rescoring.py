"""The score that decides: float64 from the vectors themselves, the same numbers whatever made the fast ones."""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from r2med.encoders.encoder import Vectors
from r2med.retrieve.dense.exact.arrays import Exact, Positions, Rows

TOGETHER = 1 << 16
"""Numbers converted to float64 at once: half a MiB stays in a core's cache."""


class BlockAddresses(NamedTuple):
    """Where vectors lie in memory, block by block."""

    starts: Positions
    ends: Positions
    addresses: Positions
    halves: npt.NDArray[np.bool_]


NOWHERE = BlockAddresses(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.bool_))


class Rescorer:
    """Holds the blocks seen so far, and scores (query, row) pairs of them."""

    def __init__(self, queries: Vectors, cosine: bool) -> None:
        """Raise ValueError if a query is not finite."""
        self.queries, self.cosine = queries, cosine
        self._together = max(1, TOGETHER // max(1, queries.shape[1]))
        if not (finite := np.isfinite(queries)).all():
            raise ValueError(f"query {np.flatnonzero(~finite.all(axis=1))[0]} has NaN or infinite values")
        self._blocks: list[tuple[int, npt.NDArray[Any]]] = []
        self._end = 0
        self._norms: Exact | None = None  # not cached_property: before Python 3.12 all searches would share a lock
        self.held = 0
        """Bytes of memory kept from being freed: a mapped file's pages are the system's to drop."""

    @property
    def norms(self) -> Exact:
        """The lengths of the queries."""
        if self._norms is None:
            squares = np.empty(len(self.queries))
            # A few at a time: fresh memory for all of them in float64 takes longer than their lengths.
            buffer = np.empty((min(self._together, len(self.queries)), self.queries.shape[1]))
            for at in range(0, len(self.queries), self._together):
                some = buffer[: len(self.queries) - at]
                some[:] = self.queries[at : at + self._together]
                squares[at : at + self._together] = np.einsum("ij,ij->i", some, some)
            self._norms = np.sqrt(squares)
        return self._norms

    def hold(self, first: int, block: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Keep a block in reach; return it, row after row. Raises ValueError if it does not fit the queries."""
        if block.dtype not in (np.float32, np.float16):
            raise ValueError(f"documents must be float32 or float16, not {block.dtype}")
        dimension = self.queries.shape[1]
        if block.ndim != 2 or block.shape[1] != dimension:
            raise ValueError(f"documents of shape {block.shape} do not fit queries of dimension {dimension}")
        if first < self._end:
            raise ValueError(f"row {first} comes after row {self._end - 1}: blocks must have ascending rows")
        block, self._end = np.ascontiguousarray(block), first + len(block)
        self._blocks.append((first, block))
        self.held += 0 if _is_mapped(block) else block.nbytes
        return block

    def release(self) -> None:
        """Let go of all blocks that are not mapped files. None of their rows may be asked for again."""
        self._blocks = [(first, block) for first, block in self._blocks if _is_mapped(block)]
        self.held = 0

    def holds(self, rows: Rows) -> npt.NDArray[np.bool_]:
        """Return which rows are of blocks that are held."""
        starts, ends, *_ = self.addresses()
        block = np.searchsorted(starts, rows, side="right") - 1
        return np.asarray((block >= 0) & (rows < ends[block]) if len(ends) else np.zeros(len(rows), np.bool_))

    def addresses(self) -> BlockAddresses:
        """Return where the blocks lie that are held."""
        starts = np.array([first for first, _ in self._blocks], np.int64)
        ends = starts + np.array([len(block) for _, block in self._blocks], np.int64)
        addresses = np.array([block.__array_interface__["data"][0] for _, block in self._blocks], np.int64)
        halves = np.array([block.dtype == np.float16 for _, block in self._blocks], np.bool_)
        return BlockAddresses(starts, ends, addresses, halves)

    def score(self, queries: Positions, rows: Rows) -> Exact:
        """Return the scores of pairs in float64."""
        out = np.empty(len(rows))
        for block, first, pairs in self._by_block(rows):
            # Buffers made once: an allocation of this size asks the system for fresh pages each time,
            # which takes several times as long as the sums.
            shape = (min(self._together, len(pairs)), block.shape[1])
            single, stored, left, right = (np.empty(shape, kind) for kind in ("f4", block.dtype, "f8", "f8"))
            for at in range(0, len(pairs), self._together):
                some = pairs[at : at + self._together]
                size = len(some)
                np.take(block, rows[some] - first, axis=0, out=stored[:size], mode="clip")
                np.take(self.queries, queries[some], axis=0, out=single[:size], mode="clip")
                left[:size], right[:size] = single[:size], stored[:size]
                out[some] = self._pairwise(queries[some], left[:size], right[:size])
        return out

    def _by_block(self, rows: Rows) -> Iterator[tuple[npt.NDArray[Any], int, Positions]]:
        """Yield each block of some rows, with its first row and the positions of those rows among all."""
        blocks = list(self._blocks)  # as they are now: a loader on another thread may hold more meanwhile
        block_of = np.searchsorted([first for first, _ in blocks], rows, side="right") - 1
        if (block_of < 0).any():
            raise LookupError("a row of a block that was let go")
        order = np.argsort(block_of, kind="stable")
        bounds = np.searchsorted(block_of[order], np.arange(len(blocks) + 1))
        for (first, block), (begin, end) in zip(blocks, pairwise(bounds), strict=True):
            if begin < end:
                if rows[order[begin:end]].max() - first >= len(block):
                    raise LookupError("a row of a block that was let go")
                yield block, first, order[begin:end]

    def _pairwise(self, numbers: Positions, queries: Exact, documents: Exact) -> Exact:
        # einsum adds up each row by itself, in an order that only the length decides. A BLAS product would
        # let the last bit depend on a row's neighbours, and duplicates could come apart.
        dots: Exact = np.einsum("ij,ij->i", queries, documents)
        if self.cosine:
            norms = np.sqrt(np.einsum("ij,ij->i", documents, documents)) * self.norms[numbers]
            dots = np.divide(dots, norms, out=np.zeros_like(dots), where=norms > 0)
        return dots


def _is_mapped(array: npt.NDArray[Any]) -> bool:
    base: Any = array
    while isinstance(base, np.ndarray):
        base = base.base
    return isinstance(base, mmap.mmap)
