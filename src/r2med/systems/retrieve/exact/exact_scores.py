"""Exact scores, and the k best: float64 sums over the stored vectors, the same for any threads, memory and batch.

The score of a query and a document is the sum, over the vectors of the query, of the largest product with a vector of
the document. With one vector each it is their product. Scores are rounded once, to float32.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from r2med.data.runs.ties import best
from r2med.models.encoders.encoder import Vectors
from r2med.systems.retrieve.exact.text_vectors import Exact, Hits, Places, Rows, TextVectors

OPERATION_ERROR = {np.float32: 2.0**-24, np.float64: 2.0**-51}
"""Largest relative error of one operation in float32, and four times the one in float64."""
MAX_LENGTH_PRODUCT = 2.0**126
"""From this product of two lengths on, a score or one of its partial sums may exceed float32."""


class Queries:
    """The queries of a search, in float64."""

    def __init__(self, texts: TextVectors, cosine: bool = False) -> None:
        """Raise ValueError if a query is not finite."""
        if not (finite := np.isfinite(texts.vectors).all(axis=1)).all():
            raise ValueError(f"query {texts.text_of(int(finite.argmin()))} has NaN or infinite values")
        vectors = texts.vectors.astype(np.float64)
        self.texts, self.cosine = TextVectors(vectors, texts.offsets), cosine
        self.norms: Exact = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))
        """Lengths of the query vectors."""
        self.sizes: Exact = texts.reduced(np.add, ((self.norms > 0) * 1.0 if cosine else self.norms)[None])[0]
        """For each query, the sum of the lengths of its vectors. For cosines each vector has length 1."""

    def __len__(self) -> int:
        return len(self.texts)

    def check_length(self, row: int, length: float) -> None:
        """Raise ValueError if scores of a document of this length, or their partial sums, may exceed float32."""
        if not np.isfinite(length):
            raise ValueError(f"row {row} has NaN or infinite values")
        if not self.cosine and length * self.sizes.max() >= MAX_LENGTH_PRODUCT:
            raise ValueError(f"row {row} is too long; its score may exceed float32")

    def errors(self, kind: Any, longest: float) -> Exact:
        """Return for each query the largest error of a score in float32, for documents up to a given length.

        In float64, return four times as much: also the difference between sums in two orders. A sum of d products in
        any order has an error of at most d operations of |q||d|. The lengths in cosines add at most as many, and the
        sum over n vectors of a query adds n. The rest covers single steps.
        """
        operations = 2 * self.texts.vectors.shape[1] + self.texts.sizes + 20
        return np.asarray(1.02 * operations * OPERATION_ERROR[kind] * self.sizes * (1.0 if self.cosine else longest))

    def doubtful(self, scores: Exact, lines: Places, longest: float) -> Places:
        """Return the places of the scores whose rounding to float32 may depend on the order of their sums."""
        off = self.errors(np.float64, longest)[lines]
        return np.flatnonzero((scores - off).astype(np.float32) != (scores + off).astype(np.float32))

    def scores_in_order(self, lines: Places, documents: TextVectors) -> Exact:
        """Return the score of each document, in float64, with the query of its place in `lines`.

        einsum adds up each product separately, in an order that depends only on the dimension. With BLAS, the last bit
        could depend on neighbouring vectors, and duplicates could get different scores.
        """
        vectors = documents.vectors.astype(np.float64)
        if self.texts.offsets is None and documents.offsets is None:
            products = np.einsum("ij,ij->i", vectors, self.texts.vectors[lines])
            return self._scaled(products, self.norms[lines], vectors)
        scores = np.zeros(len(lines))
        for place, line in enumerate(lines.tolist()):
            here, document = self.texts.span(line, line + 1), vectors[documents.span(place, place + 1)]
            if len(document):
                products = np.einsum("ik,jk->ij", self.texts.vectors[here], document)
                scores[place] = self._scaled(products, self.norms[here, None], document).max(axis=1).sum()
        return scores

    def _scaled(self, products: Exact, norms: Exact, documents: Exact) -> Exact:
        """Return products of queries and documents, or their cosines."""
        if not self.cosine:
            return products
        both = norms * lengths(documents)
        return np.asarray(np.divide(products, both, out=products, where=both > 0))


class Nearest:
    """The rows and exact scores of at most k documents for each query."""

    def __init__(self, queries: int, k: int, ranks: Rows) -> None:
        self.k, self._ranks = k, ranks
        self.hits: list[Hits] = [(np.empty(0, np.int32), np.empty(0, np.float32))] * queries
        self.reached: Exact = np.full(queries, -np.inf)
        """For each query, a score that k documents reach."""

    def add(self, lines: Places, rows: Rows, scores: Exact) -> None:
        """Add documents with exact scores, query by query, and keep the k best of each."""
        single = scores.astype(np.float32)
        bounds = np.flatnonzero(np.diff(lines, prepend=-1, append=-1))
        for begin, end in pairwise(bounds.tolist()):
            line = int(lines[begin])
            own_rows = np.concatenate((self.hits[line][0], rows[begin:end]))
            own_scores = np.concatenate((self.hits[line][1], single[begin:end]))
            places = best(own_scores, self.k, self._ranks[own_rows])
            self.hits[line] = own_rows[places], own_scores[places]
            if len(places) == self.k:
                self.reached[line] = own_scores[places].min()


def lengths(vectors: npt.NDArray[Any]) -> Exact:
    """Return the lengths of vectors. Squares of float32 numbers neither overflow nor underflow in float64."""
    return np.asarray(np.sqrt(np.einsum("ij,ij->i", vectors, vectors, dtype=np.float64)))


def maxsim(query: npt.NDArray[Any], document: npt.NDArray[Any]) -> float:
    """Return the score of two texts, from the vectors of each, as an exact search would."""
    queries = Queries(TextVectors(np.asarray(query, np.float32), np.array([0, len(query)])))
    queries.check_length(0, float(lengths(document).max(initial=0)))
    text = TextVectors(document, np.array([0, len(document)]))
    scores: Vectors = queries.scores_in_order(np.zeros(1, np.int64), text).astype(np.float32)
    return float(scores[0])
