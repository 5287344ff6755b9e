"""The scores of all queries with some documents, by NumPy; each thread multiplies some of the documents."""

from __future__ import annotations

from itertools import accumulate
from typing import Any

import numpy as np
import numpy.typing as npt

from r2med.encoders.encoder import Vectors
from r2med.engine.threads import share
from r2med.retrieve.dense.gpu_loader import Block
from r2med.retrieve.dense.rounding import Rounding

PANEL = 1 << 12
"""Documents a product at most: that many scores of a hundred queries stay in a core's cache."""
SMALLEST_PANEL = 1 << 8
"""Documents a product at least, if there are so many."""
PANELS = 8
"""Products of each thread, at least: one that falls behind makes fewer of them."""


class Products:
    """Multiplies one set of queries, of length 1 if cosines are asked for."""

    def __init__(self, queries: Vectors, cosine: bool, rounding: Rounding, threads: int) -> None:
        self._queries, self._cosine, self._rounding, self._threads = queries, cosine, rounding, threads

    def write(self, batch: list[Block], scores: Vectors) -> None:
        """Write the scores of documents; there may be room behind them. Raises ValueError if a vector is not finite."""
        count = sum(len(block) for _, block in batch)
        # As many products for each thread, if the batch is of one block: a lone one at the end would be waited for.
        panels = self._threads * max(PANELS, -(-count // (self._threads * PANEL)))
        self._multiply(batch, max(SMALLEST_PANEL, -(-count // panels)), scores)
        _check_documents(batch, scores[0])

    def _multiply(self, batch: list[Block], panel: int, scores: Vectors) -> None:
        """Write the scores of documents, of so many at a time."""
        starts = accumulate((len(block) for _, block in batch), initial=0)
        pieces = [
            (first + at, block[at : at + panel], scores[:, start + at : start + min(at + panel, len(block))])
            for (first, block), start in zip(batch, starts, strict=False)
            for at in range(0, len(block), panel)
        ]
        share(lambda piece: self._product(*piece), pieces, self._threads)

    def _product(self, first: int, block: npt.NDArray[Any], out: Vectors) -> None:
        documents = np.ascontiguousarray(block, dtype=np.float32)
        if self._cosine:
            documents, factors = _unit_length(first, documents)
            multiply(self._queries, documents, out)
            np.multiply(out, factors, out=out)
        else:
            multiply(self._queries, documents, out)
            self._rounding.saw(_longest(documents))


def _check_documents(batch: list[Block], scores: Vectors) -> None:
    """Raise ValueError if a vector is not finite: its score with any one query is not, either."""
    at = 0
    for first, block in batch:
        for index in np.flatnonzero(~np.isfinite(scores[at : at + len(block)])):
            if not np.isfinite(block[index]).all():
                raise ValueError(f"row {first + index} has NaN or infinite values")
        at += len(block)


def multiply(queries: Vectors, documents: Vectors, out: Vectors) -> None:
    """Write the scores of all queries with some documents."""
    with np.errstate(all="ignore"):  # what is not finite is found in the scores, and named
        np.matmul(queries, documents.T, out=out)


def _longest(documents: Vectors) -> float:
    """Return the largest length of every n-th document: reading all once more would cost a sixth of the product."""
    some = documents[:: max(1, min(64, len(documents) // 16))]
    squares = np.einsum("ij,ij->i", some, some).max(initial=0)
    if not 2.0**-80 < squares < 2.0**100:
        squares = np.einsum("ij,ij->i", some, some, dtype=np.float64).max(initial=0)
    return float(np.sqrt(squares))


def _unit_length(first: int, documents: Vectors) -> tuple[Vectors, Vectors]:
    """Return documents and the factors that make their scores cosines."""
    with np.errstate(all="ignore"):
        squares = np.einsum("ij,ij->i", documents, documents)
        factors = (1 / np.sqrt(squares)).astype(np.float32)
    odd = np.flatnonzero(~((squares > 2.0**-80) & (squares < 2.0**100)))
    if len(odd):  # zero, not finite, or squares that float32 cannot hold
        if len(bad := odd[~np.isfinite(documents[odd]).all(axis=1)]):
            raise ValueError(f"row {first + bad[0]} has NaN or infinite values")
        exact = documents[odd].astype(np.float64)
        norms = np.sqrt(np.einsum("ij,ij->i", exact, exact))[:, None]
        documents = documents.copy()
        documents[odd] = np.divide(exact, norms, out=np.zeros_like(exact), where=norms > 0)
        factors[odd] = 1
    return documents, factors
