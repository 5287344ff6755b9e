"""Measure what queries share with their relevant documents: terms by BM25's analysis, BM25 score, cosine of vectors.

The values are compared with those of random documents and of the hardest negative, which is the document with the best
score that is not judged relevant.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from scipy import sparse

from r2med.data.corpus import Rows
from r2med.data.dataset import Dataset, Query
from r2med.evaluation.measure.scores import Floats
from r2med.evaluation.measure.significance import Integers
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.store import Store
from r2med.systems.retrieve.bm25 import BM25
from r2med.systems.retrieve.bm25.index import Index, Positions, open_index
from r2med.systems.retrieve.bm25.scorers import SCORERS
from r2med.systems.retrieve.retriever import SearchQuery

RELEVANT, HARDEST, RANDOM = "relevant document", "hardest negative", "random document"
RANDOM_DOCUMENTS = 20
"""Number of random documents per query. Their mean varies much less than its interval over queries."""

PAIRS_PER_BLOCK = 1 << 16
"""Number of pairs that are compared together. It bounds the memory for any number of queries."""

MIN_LENGTH = 1e-12
"""Smallest vector length to divide by, so that a vector of zeros has a cosine of 0 with all others."""

SCORER = SCORERS["published"]


@dataclass(frozen=True)
class DocumentPairs:
    """Pairs of a query and a document to compare: positions of queries and rows of the corpus."""

    queries: Integers
    rows: Rows

    def by_query(self, values: Floats, size: int) -> Floats:
        """Return the mean value of each query's pairs; NaN for a query without pairs."""
        counts = np.bincount(self.queries, minlength=size)
        with np.errstate(invalid="ignore"):
            return np.bincount(self.queries, weights=values, minlength=size) / np.where(counts, counts, np.nan)

    def best(self, values: Floats, size: int) -> Floats:
        """Return the largest value of each query's pairs; NaN for a query without pairs."""
        most = np.full(size, -np.inf)
        np.maximum.at(most, self.queries, values)
        return np.where(np.isinf(most), np.nan, most)


@dataclass(frozen=True)
class Overlap:
    """What a query and a document share, with one value for each pair."""

    coverage: Floats
    """Share of the query's terms that the document contains."""
    weighted: Floats
    """The same share with every term weighted by its idf, so that rare words count more."""
    bm25: Floats
    """Score of the benchmark's own BM25."""


def judged_queries(dataset: Dataset) -> list[Query]:
    """Return the queries that have a relevant document."""
    return [query for query in dataset.queries if any(g > 0 for g in dataset.qrels.get(query.id, {}).values())]


def gold_pairs(dataset: Dataset, queries: Sequence[Query]) -> DocumentPairs:
    """Return every query with each of its relevant documents in the corpus."""
    wanted = [(n, d) for n, query in enumerate(queries) for d, g in dataset.qrels[query.id].items() if g > 0]
    rows = dataset.corpus.rows([document for _, document in wanted])
    numbers = np.array([number for number, _ in wanted], dtype=np.intp)
    return DocumentPairs(numbers[rows >= 0], rows[rows >= 0])


def random_pairs(dataset: Dataset, barred: Sequence[set[int]]) -> DocumentPairs:
    """Return every query with random documents that are neither relevant nor excluded."""
    rows = np.random.default_rng(0).integers(0, len(dataset.corpus), (len(barred), RANDOM_DOCUMENTS))
    rows = rows.astype(np.int32)
    pairs = [(number, row) for number, drawn in enumerate(rows.tolist()) for row in drawn if row not in barred[number]]
    numbers, kept = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    return DocumentPairs(numbers, kept.astype(np.int32))


def hardest_pairs(hits: Sequence[npt.NDArray[np.int32]], barred: Sequence[set[int]]) -> DocumentPairs:
    """Return every query with the first document of its ranking that is neither relevant nor excluded."""
    first = [
        next((row for row in rows.tolist() if row >= 0 and row not in left_out), -1)
        for rows, left_out in zip(hits, barred, strict=True)
    ]
    rows = np.array(first, dtype=np.int32)
    return DocumentPairs(np.flatnonzero(rows >= 0), rows[rows >= 0])


def barred_rows(dataset: Dataset, queries: Sequence[Query], gold: DocumentPairs) -> list[set[int]]:
    """Return for each query the rows of its relevant and excluded documents, which cannot be negatives."""
    barred: list[set[int]] = [set(dataset.corpus.rows(query.excluded).tolist()) for query in queries]
    for number, row in zip(gold.queries.tolist(), gold.rows.tolist(), strict=True):
        barred[number].add(row)
    return barred


def dataset_overlap(dataset: Dataset, store: Store) -> dict[str, tuple[DocumentPairs, Overlap]]:
    """Return the overlap of every judged query with its relevant, hardest negative (by BM25) and random documents."""
    queries = judged_queries(dataset)
    gold = gold_pairs(dataset, queries)
    barred = barred_rows(dataset, queries, gold)
    depth = max(map(len, barred), default=0) + 1
    runtime = Runtime(store=store)
    run = BM25().search(dataset, [SearchQuery(query) for query in queries], depth, runtime).run
    pairs = {
        RELEVANT: gold,
        HARDEST: hardest_pairs(list(run.rows), barred),
        RANDOM: random_pairs(dataset, barred),
    }
    index = open_index(dataset.corpus, runtime, counts_repeats=SCORER.counts_repeats)
    terms = QueryTerms.of([query.text for query in queries], index)
    return {kind: (each, shared_terms(terms, index, each)) for kind, each in pairs.items()}


@dataclass(frozen=True)
class QueryTerms:
    """Matrices of queries × distinct terms."""

    terms: pa.Array
    counts: sparse.csr_array
    weights: sparse.csr_array
    """Weights of BM25."""
    idf: Floats

    @classmethod
    def of(cls, texts: Sequence[str], index: Index) -> QueryTerms:
        """Analyse queries like BM25."""
        from r2med.foundation.text.english import english

        bags = [Counter(english(text)) for text in texts]
        terms = pa.array(sorted(set().union(*bags)), pa.string())
        number_of = {term: number for number, term in enumerate(terms.to_pylist())}
        _, df = index.lookup(terms)
        indices = np.array([number_of[term] for bag in bags for term in bag], dtype=np.int64)
        ends = np.cumsum([0, *map(len, bags)])
        counts = np.array([count for bag in bags for count in bag.values()], dtype=np.int64)
        weights = np.zeros(len(counts))
        settings = index.collection, BM25().k1, BM25().b
        for start, end in pairwise(ends.tolist()):
            # Like the search, ignore terms that the corpus does not contain.
            known = start + np.flatnonzero(df[indices[start:end]])
            weights[known] = SCORER.weights(counts[known], df[indices[known]], *settings)
        shape = (len(bags), len(terms))
        idf = SCORER.idf(index.collection.documents, df)
        return cls(
            terms,
            sparse.csr_array((counts, indices, ends), shape),
            sparse.csr_array((weights, indices, ends), shape),
            idf,
        )


def shared_terms(asked: QueryTerms, index: Index, pairs: DocumentPairs) -> Overlap:
    """Return the overlap of each pair."""
    distinct, positions = np.unique(pairs.rows, return_inverse=True)
    held, lengths = _documents(asked.terms, index, distinct)
    spread = np.repeat(lengths, np.diff(held.indptr))
    impacts = held.copy()
    impacts.data = held.data / (held.data + SCORER.norms(spread, index.collection, BM25().k1, BM25().b))
    marks, held_marks = _marks(asked.counts), _marks(held)
    query_sizes = np.diff(asked.counts.indptr)
    query_idf = marks @ asked.idf
    values: list[Floats] = []
    for start in range(0, len(pairs.rows), PAIRS_PER_BLOCK):
        part = slice(start, start + PAIRS_PER_BLOCK)
        q, d = pairs.queries[part], positions[part]
        both = marks[q].multiply(held_marks[d]).tocsr()
        shared = np.asarray(both.sum(axis=1)).ravel()
        scores = np.asarray(asked.weights[q].multiply(impacts[d]).sum(axis=1)).ravel()
        coverage = shared / np.maximum(1, query_sizes[q])
        weighted = (both @ asked.idf) / np.where(query_idf[q] > 0, query_idf[q], 1.0)
        values.append(np.array([coverage, weighted, scores]))
    return Overlap(*(np.hstack(values) if values else np.zeros((3, 0))))


def _marks(counts: sparse.csr_array) -> sparse.csr_array:
    return sparse.csr_array((np.ones(len(counts.data)), counts.indices, counts.indptr), counts.shape)


def _documents(terms: pa.Array, index: Index, rows: npt.NDArray[Any]) -> tuple[sparse.csr_array, Positions]:
    """Return the term counts of documents (documents × terms), and their numbers of terms."""
    parts, lengths = [], []
    for segment in index.segments:
        where = segment.positions(terms)
        documents = len(segment.lengths)
        local = rows[(rows >= segment.start) & (rows < segment.start + documents)] - segment.start
        known = np.flatnonzero(where >= 0)
        postings = sparse.csc_array(
            (segment.frequencies, segment.documents, segment.offsets), shape=(documents, len(segment.terms))
        )
        part = postings[:, where[known]].tocsr()[local].astype(np.int64)
        parts.append(sparse.csr_array((part.data, known[part.indices], part.indptr), (len(local), len(terms))))
        lengths.append(segment.lengths[local].astype(np.int64))
    return sparse.vstack(parts, format="csr"), np.concatenate(lengths)


def cosines(dataset: Dataset, model: str, runtime: Runtime) -> dict[str, tuple[DocumentPairs, Floats]]:
    """Encode the corpus and return the cosines of queries with relevant, nearest negative and random documents."""
    from r2med.models.encoders.encoder import open_encoder
    from r2med.models.encoders.model_cards import resolve_card
    from r2med.systems.retrieve.dense.dense_retriever import query_vectors
    from r2med.systems.retrieve.exact.exact_search import search_exact
    from r2med.systems.retrieve.vectors.embeddings import embed_corpus

    queries = judged_queries(dataset)
    gold = gold_pairs(dataset, queries)
    barred = barred_rows(dataset, queries, gold)
    depth = max(map(len, barred), default=0) + 1
    encoder = open_encoder(resolve_card(model), dataset.instruction, runtime, runtime.store)
    embeddings = embed_corpus(dataset.corpus, encoder, runtime.store, runtime.engine)
    asked = query_vectors([SearchQuery(query) for query in queries], encoder, runtime.store).arrays["vectors"]
    asked = asked / np.maximum(np.linalg.norm(asked, axis=1, keepdims=True), MIN_LENGTH)
    ranks = dataset.corpus.id_ranks()
    hits = search_exact(asked, embeddings.blocks, depth, ranks, cosine=True, memory=runtime.setup.memory)
    nearest = [rows[np.argsort(-scores, kind="stable")] for rows, scores in hits]
    pairs = {RELEVANT: gold, HARDEST: hardest_pairs(nearest, barred), RANDOM: random_pairs(dataset, barred)}
    values = {kind: np.zeros(len(each.rows)) for kind, each in pairs.items()}
    for start, vectors in embeddings.blocks:
        for kind, each in pairs.items():
            here = np.flatnonzero((each.rows >= start) & (each.rows < start + len(vectors)))
            found = vectors[each.rows[here] - start].astype(np.float64)
            products = np.einsum("ij,ij->i", found, asked[each.queries[here]])
            values[kind][here] = products / np.maximum(np.linalg.norm(found, axis=1), MIN_LENGTH)
    return {kind: (each, values[kind]) for kind, each in pairs.items()}
