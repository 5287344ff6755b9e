"""Products that threads take without the interpreter's lock."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import lru_cache

import numpy as np

from r2med.encoders.encoder import Vectors
from r2med.engine.threads import share
from r2med.retrieve.dense.exact import product_kernels
from r2med.retrieve.dense.exact.arithmetic import sgemm_address
from r2med.retrieve.dense.exact.arrays import Block, Positions
from r2med.retrieve.dense.exact.compiled_shortlists import FinalStep
from r2med.retrieve.dense.exact.jit import reached, wait
from r2med.retrieve.dense.exact.products import MOST, Pieces, Products

CALL = 1 << 33
"""Multiplications after which a call returns: Ctrl-C waits for it."""


class CompiledProducts(Products):
    """Products by compiled loops: one call for all that a thread takes."""

    def _multiply(
        self, batch: list[Block], pieces: Pieces, scores: Vectors, after: Callable[[], object] | None = None
    ) -> Pieces:
        if not self._queries.size:
            return super()._multiply(batch, pieces, scores)
        product, count, here = self.product(batch, pieces, scores), len(pieces), threading.get_ident()
        final = after if isinstance(after, FinalStep) else None

        def multiply(_: list[Block]) -> None:
            number, patient = 0, threading.get_ident() == here
            while number < count:
                number = final.join(product, patient) if final else product_kernels.multiply(product)
            if patient and not final:
                wait(product.pieces_done, count)

        # Each thread has the vectors as long as it may read them, though whoever asked may have given up.
        share(multiply, [batch] * self._threads, self._threads, lambda: reached(product.pieces_done, count))
        self._rounding.saw(product.longest.max())
        return super()._multiply(batch, tuple(pieces[number] for number in np.flatnonzero(product.odd)), scores)

    def product(self, batch: list[Block], pieces: Pieces, scores: Vectors) -> product_kernels.Product:
        """Return what threads have to multiply."""
        return product_kernels.Product(
            blas=sgemm_address(),
            queries=self._queries,
            cosine=self._cosine,
            pieces=_table(batch, pieces),
            scores=scores,
            most=max(1, CALL // (self._queries.size * MOST)),
            pieces_taken=np.zeros(1, np.int64),
            pieces_done=np.zeros(1, np.int64),
            longest=np.zeros(len(pieces)),
            odd=np.zeros(len(pieces), np.bool_),
        )


def _table(batch: list[Block], pieces: Pieces) -> product_kernels.PieceTable:
    """Return where the documents of pieces lie in memory."""
    addresses = np.array([block.ctypes.data for _, block in batch], np.int64)
    sizes = np.array([block.strides[0] for _, block in batch], np.int64)
    halves = np.array([block.dtype == np.float16 for _, block in batch], np.bool_)
    blocks, starts, ends, columns = _as_array(pieces)
    at = addresses[blocks] + starts * sizes[blocks]
    return product_kernels.PieceTable(at, ends - starts, halves[blocks], columns)


@lru_cache(maxsize=16)
def _as_array(pieces: Pieces) -> Positions:
    return np.array(pieces, np.int64).reshape(-1, 4).T.copy()
