"""Exact scores: float64 sums over the stored vectors in one fixed order, the same for any threads, memory and batch.

The score of a query and a document is the sum, over the vectors of the query, of the largest product with a vector of
the document. With one vector each it is their product. Scores are rounded once, to float32.
"""

from __future__ import annotations

import mmap
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from r2med.foundation.engine import share
from r2med.models.encoders.ragged import Ragged
from r2med.systems.retrieve.exact.text_vectors import Buffers, Exact, Positions, Rows, TextVectors, buffer_of

Block = tuple[int, npt.NDArray[Any] | Ragged]
"""The row of the first document, and vectors in float32 or float16: a row for each document, or several rows."""

BUFFER_NUMBERS = 1 << 17
"""Number of values converted to float64 at a time. A MiB fits into the cache of a core."""
PAIR_NUMBERS = 1 << 19
"""Number of values of the documents of pairs that are multiplied at a time: 2 MiB."""
PAIRS_TOGETHER = 32
"""Mean number of documents of a block that a query has, from which its pairs are multiplied apart from other pairs."""
PRODUCT_BUFFER_NUMBERS = 1 << 21
"""The same for queries with several vectors. Smaller matrix products are slow."""
MAX_LENGTH_PRODUCT = 2.0**126
"""From this product of two lengths on, a score or one of its partial sums may exceed float32."""


class ExactScorer:
    """Holds the blocks of documents seen so far and scores them in float64."""

    def __init__(self, queries: TextVectors, cosine: bool = False) -> None:
        """Raise ValueError if a query is not finite."""
        vectors = queries.vectors
        if not (finite := np.isfinite(vectors).all(axis=1)).all():
            bad = np.searchsorted(queries.starts, np.flatnonzero(~finite)[0], side="right") - 1
            raise ValueError(f"query {bad} has NaN or infinite values")
        self.queries, self.cosine = queries, cosine
        self.norms: Exact = np.sqrt(np.einsum("ij,ij->i", vectors, vectors, dtype=np.float64))
        """Lengths of the query vectors."""
        self.sizes: Exact = queries.sums((self.norms > 0).astype(np.float64) if cosine else self.norms)
        """For each query, the sum of the lengths of its vectors. For cosines each vector has length 1."""
        self.longest = 0.0
        """Length of the longest document vector seen so far."""
        self._blocks: list[tuple[int, TextVectors]] = []
        self._end = 0
        self._buffers = threading.local()  # Kept, because allocating them takes as long as the sums.
        self.held_bytes = 0
        """Memory of blocks that are not mapped files. The system can drop the pages of a mapped file itself."""

    def hold(self, first: int, given: npt.NDArray[Any] | Ragged) -> TextVectors:
        """Keep a block for scoring and return it.

        Raises ValueError if it does not fit the queries.
        """
        texts = TextVectors.of(given)
        vectors, dimension = texts.vectors, self.queries.vectors.shape[1]
        if vectors.dtype not in (np.float32, np.float16):
            raise ValueError(f"documents must be float32 or float16, not {vectors.dtype}")
        if vectors.ndim != 2 or vectors.shape[1] != dimension:
            raise ValueError(f"documents of shape {vectors.shape} do not fit queries of dimension {dimension}")
        if first < self._end:
            raise ValueError(f"row {first} comes after row {self._end - 1}: blocks must have ascending rows")
        block = TextVectors(np.ascontiguousarray(vectors), texts.offsets)
        self._end = first + len(block)
        self._blocks.append((first, block))
        self.held_bytes += 0 if _is_mapped(block.vectors) else block.vectors.nbytes
        return block

    def check_length(self, row: int, length: float) -> None:
        """Raise ValueError if scores of a document of this length, or their partial sums, may exceed float32."""
        if not self.cosine and length * self.sizes.max() >= MAX_LENGTH_PRODUCT:
            raise ValueError(f"row {row} is too long; its score may exceed float32")
        self.longest = max(self.longest, length)

    def release(self) -> None:
        """Drop all blocks that are not mapped files. Their rows cannot be scored afterwards."""
        self._blocks = [(first, block) for first, block in self._blocks if _is_mapped(block.vectors)]
        self.held_bytes = 0

    def score(self, line: int, rows: Rows) -> Exact:
        """Return the scores of a query with documents, given by their rows in ascending order.

        They are in float64. Rounded to float32, they are those of `score_in_order`.
        """
        if self.queries.offsets is None:
            return self.score_in_order(line, rows)
        scores = self._joined(line, rows, PRODUCT_BUFFER_NUMBERS, by_blas=True)
        doubtful = self.doubtful(scores, np.array(line), self.longest)
        scores[doubtful] = self.score_in_order(line, rows[doubtful])
        return scores

    @property
    def can_score_pairs(self) -> bool:
        """True if `score_pairs` can be used: all texts have one vector."""
        return all(texts.offsets is None for texts in (self.queries, *(block for _, block in self._blocks)))

    def score_pairs(self, lines: Rows, rows: Rows, pool: ThreadPoolExecutor) -> Exact:
        """Return the scores of pairs of a query and a document. Rounded to float32, they are those of `score`."""
        scores = np.empty(len(rows))

        def multiply(part: tuple[TextVectors, int, Positions]) -> None:
            block, first, pairs = part
            documents = self._gathered("documents", block.vectors, rows[pairs] - first)
            line = int(lines[pairs[0]])
            # NumPy converts to float64 in buffers, whose ends may split a sum: the last bit depends on the neighbours.
            if line == lines[pairs[-1]]:
                found = np.einsum("ij,j->i", documents, self.queries.vectors[line], dtype=np.float64)
            else:
                queries = self._gathered("queries", self.queries.vectors, lines[pairs])
                found = np.einsum("ij,ij->i", documents, queries, dtype=np.float64)
            if self.cosine:
                norms = (
                    np.sqrt(np.einsum("ij,ij->i", documents, documents, dtype=np.float64)) * self.norms[lines[pairs]]
                )
                found = np.divide(found, norms, out=np.zeros(len(found)), where=norms > 0)
            scores[pairs] = found

        parts = list(self._pairs_of_blocks(lines, rows))
        share(multiply, parts, pool)
        for place in np.flatnonzero(self.doubtful(scores, lines, self.longest)).tolist():
            scores[place] = self.score_in_order(int(lines[place]), rows[place : place + 1])[0]
        return scores

    def _pairs_of_blocks(self, lines: Rows, rows: Rows) -> Iterator[tuple[TextVectors, int, Positions]]:
        """Yield (block, its first row, positions of pairs in it), some pairs at a time.

        If a query has many documents of a block, its pairs stay together, so that the query need not be copied.
        """
        size = max(1, PAIR_NUMBERS // max(1, self.queries.vectors.shape[1]))
        numbers = np.searchsorted([first for first, _ in self._blocks], rows, side="right") - 1
        order = np.argsort(numbers, kind="stable")
        ends = np.cumsum(np.bincount(numbers + 1, minlength=len(self._blocks) + 1)).tolist()
        stops = np.array([first + len(block) for first, block in self._blocks])
        if ends[0] or (rows >= stops[numbers]).any():
            raise LookupError("the row is in a block that was released")
        for (first, block), (begin, end) in zip(self._blocks, pairwise(ends), strict=True):
            own = order[begin:end]
            changes = np.flatnonzero(np.diff(lines[own])) + 1
            groups = np.split(own, changes) if len(own) >= PAIRS_TOGETHER * (1 + len(changes)) else [own]
            for group in groups:
                yield from ((block, first, group[at : at + size]) for at in range(0, len(group), size))

    def _gathered(self, name: str, vectors: npt.NDArray[Any], rows: Rows) -> npt.NDArray[Any]:
        """Return copies of some vectors. They are in a buffer of this thread, which the next ones overwrite."""
        buffer = buffer_of(
            self._buffers.__dict__, f"{name} {vectors.dtype.char}", vectors.dtype, len(rows), vectors.shape[1]
        )
        return np.take(vectors, rows, axis=0, out=buffer, mode="clip")

    def score_in_order(self, line: int, rows: Rows) -> Exact:
        """Return the same scores, added up in the fixed order."""
        return self._joined(line, rows, BUFFER_NUMBERS, by_blas=False)

    def doubtful(self, scores: Any, lines: Any, longest: float) -> Any:
        """Return True for float64 scores whose rounding to float32 may depend on the order of their sums."""
        off = self.doubt(longest)[lines]
        return (scores - off).astype(np.float32) != (scores + off).astype(np.float32)

    def doubt(self, longest: float) -> Exact:
        """Return for each query the largest difference between two orders, for documents up to a given length."""
        additions = self.queries.vectors.shape[1] + self.queries.sizes + 8
        return np.asarray(8 * additions * 2.0**-53 * self.sizes * (1.0 if self.cosine else longest))

    def _taken(self, rows: Rows, numbers: int) -> Iterator[TextVectors]:
        """Yield documents in float64, a few at a time. The next ones overwrite them."""
        buffers: Buffers = self._buffers.__dict__
        for block, _, here in self._places(rows):
            yield from block.taken(here, max(1, numbers // max(1, block.vectors.shape[1])), buffers)

    def _places(self, rows: Rows) -> Iterator[tuple[TextVectors, int, Rows]]:
        """Yield (block, place of the first row in `rows`, rows in the block) for each block that has some rows."""
        bounds = [*np.searchsorted(rows, [first for first, _ in self._blocks]).tolist(), len(rows)]
        if bounds[0]:
            raise LookupError("the row is in a block that was released")
        for (first, block), (begin, end) in zip(self._blocks, pairwise(bounds), strict=True):
            here = rows[begin:end] - first
            if len(here) and here[-1] >= len(block):
                raise LookupError("the row is in a block that was released")
            if len(here):
                yield block, begin, here

    def _joined(self, line: int, rows: Rows, numbers: int, by_blas: bool) -> Exact:
        here = self.queries.span(line, line + 1)
        query = self.queries.vectors[here].astype(np.float64), self.norms[here, None]
        parts = [self._scores(*query, texts, by_blas) for texts in self._taken(rows, numbers)]
        return np.concatenate(parts) if parts else np.empty(0)

    def _scores(self, query: Exact, norms: Exact, texts: TextVectors, by_blas: bool) -> Exact:
        """Return the scores of a query with documents in float64."""
        # einsum adds up each product separately, in an order that depends only on the dimension. With BLAS, the last
        # bit could depend on neighbouring vectors, and duplicates could get different scores.
        products = query @ texts.vectors.T if by_blas else np.einsum("ik,jk->ij", query, texts.vectors)
        if self.cosine:
            norms = norms * np.sqrt(np.einsum("ij,ij->i", texts.vectors, texts.vectors))
            products = np.divide(products, norms, out=np.zeros_like(products), where=norms > 0)
        best: Exact = texts.largest(products)
        if len(best) == 1:
            return best[0]  # type: ignore[no-any-return]
        # Each row is one document, so that the order of the sum depends only on the number of vectors of the query.
        return np.asarray(np.ascontiguousarray(best.T).sum(axis=1))


def maxsim(query: npt.NDArray[Any], document: npt.NDArray[Any]) -> float:
    """Return the score of two texts, from the vectors of each, as an exact search would."""
    scorer = ExactScorer(TextVectors(np.asarray(query, np.float32), np.array([0, len(query)])))
    scorer.hold(0, Ragged({"vectors": document}, np.array([0, len(document)])))
    scorer.check_length(0, float(np.linalg.norm(document.astype(np.float64), axis=1).max(initial=0)))
    return float(scorer.score(0, np.zeros(1, np.int32)).astype(np.float32)[0])


def _is_mapped(array: npt.NDArray[Any]) -> bool:
    base: Any = array
    while isinstance(base, np.ndarray):
        base = base.base
    return isinstance(base, mmap.mmap)
