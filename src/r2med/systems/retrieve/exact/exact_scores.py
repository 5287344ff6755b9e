"""Exact scores: float64 sums over the stored vectors in one fixed order, the same for any threads, memory and batch.

The score of a query and a document is the sum, over the vectors of the query, of the largest product with a vector of
the document. With one vector each it is their product. Scores are rounded once, to float32.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from r2med.models.encoders.encoder import Vectors
from r2med.systems.retrieve.exact.text_vectors import Buffers, Exact, Places, TextVectors

QUERY_VECTORS = 1 << 10
"""Maximum number of query vectors multiplied at a time, if a text has several vectors."""
MAX_LENGTH_PRODUCT = 2.0**126
"""From this product of two lengths on, a score or one of its partial sums may exceed float32."""


class Queries:
    """The queries of a search. They score documents in float64."""

    def __init__(self, texts: TextVectors, cosine: bool = False) -> None:
        """Raise ValueError if a query is not finite."""
        if not (finite := np.isfinite(texts.vectors).all(axis=1)).all():
            bad = np.searchsorted(texts.starts, np.flatnonzero(~finite)[0], side="right") - 1
            raise ValueError(f"query {bad} has NaN or infinite values")
        vectors = texts.vectors.astype(np.float64)
        self.singles: Vectors = texts.vectors
        """The vectors of all queries in float32."""
        self.texts, self.cosine = TextVectors(vectors, texts.offsets), cosine
        self.norms: Exact = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))
        """Lengths of the query vectors."""
        self.sizes: Exact = texts.sums((self.norms > 0).astype(np.float64) if cosine else self.norms)
        """For each query, the sum of the lengths of its vectors. For cosines each vector has length 1."""
        self.buffers = Buffers()

    def __len__(self) -> int:
        return len(self.texts)

    def check_length(self, row: int, length: float) -> None:
        """Raise ValueError if scores of a document of this length, or their partial sums, may exceed float32."""
        if not self.cosine and length * self.sizes.max() >= MAX_LENGTH_PRODUCT:
            raise ValueError(f"row {row} is too long; its score may exceed float32")

    def is_single(self, documents: TextVectors) -> bool:
        """Return True if all queries and these documents have one vector each."""
        return self.texts.offsets is None and documents.offsets is None

    def scores(self, documents: TextVectors, lines: Places, places: Places) -> Exact:
        """Return the scores of pairs of a query and a document. The order of their sums depends on the other pairs."""
        if self.is_single(documents):
            vectors = self.buffers.taken("documents", documents.vectors, places)
            different = lines[:1] if (lines == lines[0]).all() else lines
            queries = self.buffers.taken("queries", self.singles, different)
            # NumPy converts to float64 in buffers, whose ends may split a sum.
            return self._scaled(np.einsum("ij,ij->i", vectors, queries, dtype=np.float64), self.norms[lines], vectors)
        chosen, line_of = np.unique(lines, return_inverse=True)
        wanted, place_of = np.unique(places, return_inverse=True)
        texts, scores = documents.taken(wanted, self.buffers), np.empty((len(chosen), len(wanted)))
        asked = self.texts if len(chosen) == len(self) else self.texts.taken(chosen, Buffers())
        norms = np.concatenate([self.norms[self.texts.span(line, line + 1)] for line in chosen.tolist()])[:, None]
        for begin, end in asked.parts(QUERY_VECTORS):
            here = asked.span(begin, end)
            products = self.buffers.array("products", (here.stop - here.start, len(texts.vectors)), np.float64)
            np.matmul(asked.vectors[here], texts.vectors.T, out=products)
            largest = texts.largest(self._scaled(products, norms[here], texts.vectors))
            scores[begin:end] = asked.part(begin, end).sums(largest)
        return np.asarray(scores[line_of, place_of])

    def scores_in_order(self, lines: Places, documents: TextVectors) -> Exact:
        """Return the score of each document, in float64, with the query of its place in `lines`.

        einsum adds up each product separately, in an order that depends only on the dimension. With BLAS, the last bit
        could depend on neighbouring vectors, and duplicates could get different scores.
        """
        if self.is_single(documents):
            products = np.einsum("ij,ij->i", documents.vectors, self.texts.vectors[lines])
            return self._scaled(products, self.norms[lines], documents.vectors)
        scores = np.zeros(len(lines))
        for place, line in enumerate(lines.tolist()):
            here, document = self.texts.span(line, line + 1), documents.part(place, place + 1).vectors
            if len(document):
                products = np.einsum("ik,jk->ij", self.texts.vectors[here], document)
                scores[place] = self._scaled(products, self.norms[here, None], document).max(axis=1).sum()
        return scores

    def _scaled(self, products: Exact, norms: Exact, documents: Exact) -> Exact:
        """Return products of queries and documents, or their cosines."""
        if not self.cosine:
            return products
        lengths = np.sqrt(np.einsum("ij,ij->i", documents, documents, dtype=np.float64))
        both = norms * lengths
        return np.asarray(np.divide(products, both, out=products, where=both > 0))

    def doubtful(self, scores: Any, lines: Any, longest: float) -> Any:
        """Return True for float64 scores whose rounding to float32 may depend on the order of their sums."""
        off = self.doubt(longest)[lines]
        return (scores - off).astype(np.float32) != (scores + off).astype(np.float32)

    def doubt(self, longest: float) -> Exact:
        """Return for each query the largest difference between two orders, for documents up to a given length."""
        additions = self.texts.vectors.shape[1] + self.texts.sizes + 8
        return np.asarray(8 * additions * 2.0**-53 * self.sizes * (1.0 if self.cosine else longest))


def maxsim(query: npt.NDArray[Any], document: npt.NDArray[Any]) -> float:
    """Return the score of two texts, from the vectors of each, as an exact search would."""
    queries = Queries(TextVectors(np.asarray(query, np.float32), np.array([0, len(query)])))
    vectors = document.astype(np.float64)
    queries.check_length(0, float(np.linalg.norm(vectors, axis=1).max(initial=0)))
    text = TextVectors(vectors, np.array([0, len(document)]))
    return float(queries.scores_in_order(np.zeros(1, np.int64), text).astype(np.float32)[0])
