"""The score that decides: float64 from the vectors themselves, the same numbers whatever made the fast ones."""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from r2med.encoders.encoder import Vectors
from r2med.engine import map_threads
from r2med.retrieve.dense.arithmetic import Exact, Positions, Rows, tensor

TOGETHER = 1 << 17
"""Numbers converted to float64 at once: 1 MiB stays in a core's cache."""
SPREAD = 1 << 19
"""The same where all cores share each step."""
JOB = 8
"""Such portions a thread takes at a time."""


class Rescorer:
    """Holds the blocks seen so far, and scores (query, row) pairs of them."""

    def __init__(self, queries: Vectors, cosine: bool, pool: ThreadPoolExecutor, spread: bool = False) -> None:
        self._spread = spread
        self._queries = queries.astype(np.float64)
        self._cosine = cosine
        self._pool = pool
        self._norms: Exact = np.sqrt(np.einsum("ij,ij->i", self._queries, self._queries))
        self._starts: list[int] = []
        self._blocks: list[npt.NDArray[Any]] = []
        self.held = 0
        """Bytes of memory kept from being freed: a mapped file's pages are the system's to drop."""

    @property
    def norms(self) -> Exact:
        """The lengths of the queries."""
        return self._norms

    def hold(self, first: int, block: npt.NDArray[Any]) -> None:
        """Keep a block in reach. Raises ValueError if it does not fit the queries."""
        if block.dtype not in (np.float32, np.float16):
            raise ValueError(f"documents must be float32 or float16, not {block.dtype}")
        dimension = self._queries.shape[1]
        if block.ndim != 2 or block.shape[1] != dimension:
            raise ValueError(f"documents of shape {block.shape} do not fit queries of dimension {dimension}")
        self._starts.append(first)
        self._blocks.append(block)
        self.held += 0 if _is_mapped(block) else block.nbytes

    def release(self) -> None:
        """Let go of all blocks that are not mapped files. None of their rows may be asked for again."""
        kept = [(s, b) for s, b in zip(self._starts, self._blocks, strict=True) if _is_mapped(b)]
        self._starts, self._blocks = [s for s, _ in kept], [b for _, b in kept]
        self.held = 0

    def score(self, queries: Positions, rows: Rows) -> Exact:
        """Return the scores of pairs in float64: those of `_pairwise`, or others that round to the same float32."""
        if not self._spread:
            return self._scored(queries, rows)
        out, off = self._spread_over_cores(queries, rows)
        with np.errstate(over="ignore"):
            doubtful = np.flatnonzero((out - off).astype(np.float32) != (out + off).astype(np.float32))
        out[doubtful] = self._scored(queries[doubtful], rows[doubtful])
        return out

    def _by_block(self, rows: Rows) -> Iterator[tuple[npt.NDArray[Any], int, Positions]]:
        """Yield each block of some rows, with its first row and the positions of those rows among all."""
        block_of = np.searchsorted(self._starts, rows, side="right") - 1
        order = np.argsort(block_of, kind="stable")
        bounds = np.searchsorted(block_of[order], np.arange(len(self._blocks) + 1))
        for block, first, (begin, end) in zip(self._blocks, self._starts, pairwise(bounds), strict=True):
            if begin < end:
                if rows[order[begin:end]].max() - first >= len(block):
                    raise LookupError("a row of a block that was let go")
                yield block, first, order[begin:end]

    def _scored(self, queries: Positions, rows: Rows) -> Exact:
        out = np.empty(len(rows))
        step = max(1, TOGETHER // max(1, self._queries.shape[1]))
        jobs = [
            (block, first, pairs[at : at + JOB * step])
            for block, first, pairs in self._by_block(rows)
            for at in range(0, len(pairs), JOB * step)
        ]

        def work(job: tuple[npt.NDArray[Any], int, Positions]) -> None:
            block, first, pairs = job
            # Buffers made once a job: an allocation of this size asks the system for fresh pages each time,
            # which takes several times as long as the sums.
            shape = (min(step, len(pairs)), block.shape[1])
            taken, left, right = np.empty(shape, block.dtype), np.empty(shape), np.empty(shape)
            for at in range(0, len(pairs), step):
                some = pairs[at : at + step]
                size = len(some)
                np.take(block, rows[some] - first, axis=0, out=taken[:size], mode="clip")
                np.take(self._queries, queries[some], axis=0, out=left[:size], mode="clip")
                right[:size] = taken[:size]
                out[some] = self._pairwise(queries[some], left[:size], right[:size])

        if len(rows) > JOB * step:
            list(map_threads(work, jobs, self._pool))
        else:
            list(map(work, jobs))
        return out

    def _spread_over_cores(self, queries: Positions, rows: Rows) -> tuple[Exact, Exact]:
        """Return the scores of pairs, added up by torch in an order of its own, and how far off that may be."""
        import torch

        out, sizes = np.empty(len(rows)), np.ones(len(rows))
        step = max(1, SPREAD // max(1, self._queries.shape[1]))
        left, right = torch.empty((2, min(step, len(rows)), self._queries.shape[1]), dtype=torch.float64)
        vectors = tensor(self._queries)
        for block, first, pairs in self._by_block(rows):
            documents = tensor(block)
            taken = torch.empty(left.shape, dtype=documents.dtype)
            for at in range(0, len(pairs), step):
                some = pairs[at : at + step]
                size = len(some)
                torch.index_select(documents, 0, tensor(rows[some] - first), out=taken[:size])
                torch.index_select(vectors, 0, tensor(queries[some]), out=left[:size])
                right[:size].copy_(taken[:size])
                lengths = np.asarray(right[:size].norm(dim=1)) * self._norms[queries[some]]
                dots = np.asarray(left[:size].mul_(right[:size]).sum(1))
                if self._cosine:
                    out[some] = np.divide(dots, lengths, out=np.zeros(size), where=lengths > 0)
                else:
                    out[some], sizes[some] = dots, lengths
        return out, 8 * (self._queries.shape[1] + 8) * 2.0**-53 * sizes

    def _pairwise(self, numbers: Positions, queries: Exact, documents: Exact) -> Exact:
        # einsum adds up each row by itself, in an order that only the length decides. A BLAS product would
        # let the last bit depend on a row's neighbours, and duplicates could come apart.
        dots: Exact = np.einsum("ij,ij->i", queries, documents)
        if self._cosine:
            norms = np.sqrt(np.einsum("ij,ij->i", documents, documents)) * self._norms[numbers]
            dots = np.divide(dots, norms, out=np.zeros_like(dots), where=norms > 0)
        return dots


def _is_mapped(array: npt.NDArray[Any]) -> bool:
    base: Any = array
    while isinstance(base, np.ndarray):
        base = base.base
    return isinstance(base, mmap.mmap)
