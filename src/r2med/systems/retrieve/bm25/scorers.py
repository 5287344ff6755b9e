"""BM25 scorers: the one used for the published results of the benchmark, and Lucene's.

A score is Σ_t impact(t, d) · weight(t, q). The impact tf / (tf + k1·(1 − b + b·len/avglen)) depends only on the
document. The query weight contains idf and everything else that differs between scorers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.integer[Any]]


@dataclass(frozen=True)
class Collection:
    """Statistics of a corpus: the number of documents, of documents with at least one term, and of tokens."""

    documents: int
    filled: int
    tokens: int


@dataclass(frozen=True)
class Scorer:
    """A variant of BM25.

    k1 controls how fast repeated terms saturate. b controls the effect of the document length.
    """

    idf: Callable[[int, Ints], Floats]
    counts_empty_documents: bool
    """True if documents without a term count in N and in the mean length."""
    byte_lengths: bool
    """True if lengths are rounded as in Lucene's one-byte norms."""
    counts_repeats: bool
    """True if rows with a repeated id count as documents in N, in df and in the mean length."""
    weighs_query: bool
    """True if query terms are weighted like document terms. Then idf counts twice and query tf saturates."""

    def size(self, collection: Collection) -> int:
        """Return N, the number of documents that count."""
        return collection.documents if self.counts_empty_documents else collection.filled

    def norms(self, lengths: Ints, collection: Collection, k1: float, b: float) -> Floats:
        """Return the length norms of documents, which are added to tf in the denominator."""
        mean_length = collection.tokens / self.size(collection) if collection.tokens else 1.0
        lengths = byte_length(lengths) if self.byte_lengths else lengths
        return np.asarray(k1 * (1 - b + b * lengths / mean_length))

    def weights(
        self, tf: Ints | Floats, df: Ints, collection: Collection, k1: float, b: float, is_weighted: bool = False
    ) -> Floats:
        """Return the weights of query terms that occur in the corpus, given their tf in the query and their df.

        In a weighted query, `tf` are the given weights. The result is linear in them, as for Lucene's boosts, and never
        saturates. idf counts as often as for other queries of this scorer, so equal weights rank as the plain words
        would.
        """
        idf = self.idf(self.size(collection), df)
        if not self.weighs_query:
            return idf * tf
        if is_weighted:
            return idf * idf * tf
        return idf * idf * tf / (tf + self.norms(tf.sum(), collection, k1, b))


def byte_length(lengths: Ints) -> Ints:
    """Return lengths after rounding by Lucene's norms: exact below 40, otherwise 24 plus four significant bits."""
    above = np.maximum(np.asarray(lengths, dtype=np.int64) - 24, 0)
    shift = np.maximum(np.frexp(above)[1] - 4, 0)  # The exponent of frexp is the number of bits.
    return np.where(lengths < 24, lengths, 24 + ((above >> shift) << shift))


SCORERS = {
    # gensim's LuceneBM25Model for queries and documents, as used by BRIGHT and then by R2MED.
    "published": Scorer(
        idf=lambda n, df: np.log((n + 1) / (df + 0.5)),
        counts_empty_documents=True,
        byte_lengths=False,
        counts_repeats=True,
        weighs_query=True,
    ),
    # org.apache.lucene.search.similarities.BM25Similarity, with repeated query words counted.
    "lucene": Scorer(
        idf=lambda n, df: np.log1p((n - df + 0.5) / (df + 0.5)),
        counts_empty_documents=False,
        byte_lengths=True,
        counts_repeats=False,
        weighs_query=False,
    ),
}
