"""Products that threads take without the interpreter's lock."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from r2med.encoders.encoder import Vectors
from r2med.retrieve.dense.exact import product_kernels
from r2med.retrieve.dense.exact.arithmetic import sgemm_address
from r2med.retrieve.dense.exact.arrays import Block, Positions, Step
from r2med.retrieve.dense.exact.compiled_shortlists import CompiledStep
from r2med.retrieve.dense.exact.products import Pieces, Products

_NONE = np.empty(0, np.float32)


class CompiledProducts(Products):
    """Products by compiled loops, which go on to choosing."""

    def _multiply(self, batch: list[Block], pieces: Pieces, scores: Vectors, step: Step) -> Pieces:
        if not self._rescorer.queries.size:
            return super()._multiply(batch, pieces, scores, step)
        assert isinstance(step, CompiledStep)
        product = product_kernels.Product(
            blas=sgemm_address(),
            queries=self._rescorer.queries,
            cosine=self._factors is not None,
            factors=_NONE if self._factors is None else self._factors,
            pieces=_table(batch, pieces),
            scores=scores,
            pieces_taken=np.zeros(1, np.int64),
            pieces_done=np.zeros(1, np.int64),
            longest=np.zeros(len(pieces)),
            odd=np.zeros(len(pieces), np.bool_),
        )
        step.multiply(product, batch)
        self._rounding.saw(product.longest.max())
        odd = tuple(pieces[number] for number in np.flatnonzero(product.odd))
        return super()._multiply(batch, odd, scores, step)


def _table(batch: list[Block], pieces: Pieces) -> product_kernels.PieceTable:
    """Return where the documents of pieces lie in memory."""
    firsts = np.array([first for first, _ in batch], np.int64)
    addresses = np.array([block.ctypes.data for _, block in batch], np.int64)
    sizes = np.array([block.strides[0] for _, block in batch], np.int64)
    halves = np.array([block.dtype == np.float16 for _, block in batch], np.bool_)
    blocks, starts, ends, columns = _as_array(pieces)
    at = addresses[blocks] + starts * sizes[blocks]
    return product_kernels.PieceTable(at, firsts[blocks] + starts, ends - starts, halves[blocks], columns)


@lru_cache(maxsize=16)
def _as_array(pieces: Pieces) -> Positions:
    return np.array(pieces, np.int64).reshape(-1, 4).T.copy()
