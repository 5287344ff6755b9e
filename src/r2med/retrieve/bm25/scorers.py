"""BM25's scorers: the one behind the benchmark's published figures, and Lucene's own.

A score is Σ_t impact(t, d) · weight(t, q). The impact tf / (tf + k1·(1 − b + b·len/avglen)) depends on the
document alone; idf and all else that a scorer decides is on the query's side.
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
    """What a scorer knows of a corpus: its documents, those with at least one term, and all tokens."""

    documents: int
    filled: int
    tokens: int


@dataclass(frozen=True)
class Scorer:
    """One way to score; k1 is how fast repetition saturates, b how much length counts."""

    idf: Callable[[int, Ints], Floats]
    counts_empty_documents: bool
    """Whether documents without a term count in N and in the mean length."""
    byte_lengths: bool
    """Whether lengths are rounded as Lucene's one-byte norms are."""
    counts_repeats: bool
    """Whether rows whose id came again count in N, in df and in the mean length, as if they were documents."""
    weighs_query: bool
    """Whether a query's terms are weighted as a document's are: idf then counts twice and query tf saturates."""

    def impacts(self, tf: Ints, norms: Floats) -> Floats:
        """Return the impact of postings, given the tf of each and the norm of its document."""
        return np.asarray(tf / (tf + norms))

    def norms(self, lengths: Ints, collection: Collection, k1: float, b: float) -> Floats:
        """Return what the lengths of documents add to a tf."""
        return self._norm(byte_length(lengths) if self.byte_lengths else lengths, collection, k1, b)

    def weights(self, tf: Ints, df: Ints, collection: Collection, k1: float, b: float) -> Floats:
        """Return the weight of the query terms that the corpus has, given their tf in the query and their df."""
        idf = self.idf(self._count(collection), df)
        if not self.weighs_query:
            return idf * tf
        return idf * idf * tf / (tf + self._norm(tf.sum(), collection, k1, b))

    def given_weights(self, given: Floats, df: Ints, collection: Collection) -> Floats:
        """Return the weight of query terms that came with one: linear in it, as Lucene's boosts are, never saturated.

        idf counts as often as for any other query of this scorer, so that equal weights rank as the words would.
        """
        idf = self.idf(self._count(collection), df)
        return (idf * idf if self.weighs_query else idf) * given

    def _count(self, collection: Collection) -> int:
        return collection.documents if self.counts_empty_documents else collection.filled

    def _norm(self, lengths: Ints, collection: Collection, k1: float, b: float) -> Floats:
        mean_length = collection.tokens / self._count(collection) if collection.tokens else 1.0
        return np.asarray(k1 * (1 - b + b * lengths / mean_length))


def byte_length(lengths: Ints) -> Ints:
    """Return lengths as they come back from Lucene's norms: exact below 40, else 24 plus four significant bits."""
    above = np.maximum(np.asarray(lengths, dtype=np.int64) - 24, 0)
    shift = np.maximum(np.frexp(above)[1] - 4, 0)  # frexp's exponent is the number of bits
    return np.where(lengths < 24, lengths, 24 + ((above >> shift) << shift))


SCORERS = {
    # gensim's LuceneBM25Model on both sides, as BRIGHT and after it R2MED use it.
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
