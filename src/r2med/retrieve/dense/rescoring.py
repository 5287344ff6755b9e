"""The score that decides: float64 from the vectors themselves, the same numbers whatever made the fast ones."""

from __future__ import annotations

import mmap
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import numpy.typing as npt

from r2med.encoders.encoder import Vectors
from r2med.engine import map_threads

Rows = npt.NDArray[np.int32]
Positions = npt.NDArray[np.int64]
Exact = npt.NDArray[np.float64]

TOGETHER = 1 << 17
"""Numbers converted to float64 at once: 1 MiB stays in a core's cache."""
JOB = 8
"""Such portions a thread takes at a time."""


class Rescorer:
    """Holds the blocks seen so far, and scores (query, row) pairs of them."""

    def __init__(self, queries: Vectors, cosine: bool, pool: ThreadPoolExecutor) -> None:
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
        """Return the scores of pairs in float64."""
        out = np.empty(len(rows))
        block_of = np.searchsorted(self._starts, rows, side="right") - 1
        order = np.argsort(block_of, kind="stable")
        ends = np.searchsorted(block_of[order], np.arange(len(self._blocks)), side="right")
        begins = np.concatenate(([0], ends[:-1])) if len(ends) else ends
        step = max(1, TOGETHER // max(1, self._queries.shape[1]))
        jobs = [
            (number, order[at : min(at + JOB * step, end)])
            for number, (begin, end) in enumerate(zip(begins, ends, strict=True))
            for at in range(begin, end, JOB * step)
        ]

        def work(job: tuple[int, Positions]) -> None:
            number, pairs = job
            block, first = self._blocks[number], self._starts[number]
            if rows[pairs].max() - first >= len(block):
                raise LookupError("a row of a block that was let go")
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
