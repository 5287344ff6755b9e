"""How much queries share with their gold documents: terms through BM25's own analysis, BM25's score, cosine of vectors.

All of it is held against the hardest negative, what scores best of what is not judged relevant, and against documents
drawn at random.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from scipy import sparse

from r2med.analysis.estimates import mean_interval
from r2med.analysis.material import Material
from r2med.data.corpus import Rows
from r2med.data.dataset import Dataset, Query
from r2med.measure.scores import Floats
from r2med.measure.significance import Integers
from r2med.pages.cells import Value
from r2med.pages.estimate import Estimate
from r2med.pages.page import Dots, Section, Table
from r2med.retrieve.bm25 import BM25
from r2med.retrieve.bm25.index import Index, Positions, open_index
from r2med.retrieve.bm25.postings import MEMORY
from r2med.retrieve.bm25.scorers import SCORERS
from r2med.retrieve.retriever import SearchQuery
from r2med.runtime.runtime import Runtime
from r2med.store import Store

GOLD, HARDEST, RANDOM = "gold", "hardest negative", "random document"
DRAWN = 20
"""Random documents for each query: their mean is steady long before its interval over queries is."""

AT_ONCE = 1 << 16
"""Pairs that are held against each other together: bounds the memory, whatever the number of queries."""

TINY = 1e-12
"""A vector of zeros has a cosine of 0 with all others."""

SCORER = SCORERS["published"]


@dataclass(frozen=True)
class Pairs:
    """Which query is held against which document: positions of queries, rows of the corpus."""

    queries: Integers
    rows: Rows

    def by_query(self, values: Floats, size: int) -> Floats:
        """Return the mean of each query's pairs; NaN for a query without any."""
        counts = np.bincount(self.queries, minlength=size)
        with np.errstate(invalid="ignore"):
            return np.bincount(self.queries, weights=values, minlength=size) / np.where(counts, counts, np.nan)

    def best(self, values: Floats, size: int) -> Floats:
        """Return the largest value of each query's pairs; NaN for a query without any."""
        most = np.full(size, -np.inf)
        np.maximum.at(most, self.queries, values)
        return np.where(np.isinf(most), np.nan, most)


@dataclass(frozen=True)
class Overlap:
    """What pairs of a query and a document share; a value for each pair."""

    jaccard: Floats
    """Terms that both have, of the terms that either has."""
    coverage: Floats
    """Terms of the query that the document has."""
    weighted: Floats
    """The same with every term weighted by its idf: rare words count more."""
    bm25: Floats
    """The score of the benchmark's own BM25."""


def judged_queries(dataset: Dataset) -> list[Query]:
    """Return the queries that have a relevant document."""
    return [query for query in dataset.queries if any(g > 0 for g in dataset.qrels.get(query.id, {}).values())]


def gold_pairs(dataset: Dataset, queries: Sequence[Query]) -> Pairs:
    """Return every query with each of its relevant documents that the corpus has."""
    wanted = [(n, d) for n, query in enumerate(queries) for d, g in dataset.qrels[query.id].items() if g > 0]
    rows = dataset.corpus.rows([document for _, document in wanted])
    numbers = np.array([number for number, _ in wanted], dtype=np.intp)
    return Pairs(numbers[rows >= 0], rows[rows >= 0])


def random_pairs(dataset: Dataset, barred: Sequence[set[int]], seed: int = 0) -> Pairs:
    """Return every query with documents drawn at random, its relevant and excluded ones left out."""
    rows = np.random.default_rng(seed).integers(0, len(dataset.corpus), (len(barred), DRAWN)).astype(np.int32)
    pairs = [(number, row) for number, drawn in enumerate(rows.tolist()) for row in drawn if row not in barred[number]]
    numbers, kept = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    return Pairs(numbers, kept.astype(np.int32))


def hardest_pairs(hits: Sequence[npt.NDArray[np.int32]], barred: Sequence[set[int]]) -> Pairs:
    """Return every query with the first document of its ranking that is neither relevant nor excluded."""
    first = [
        next((row for row in rows.tolist() if row >= 0 and row not in left_out), -1)
        for rows, left_out in zip(hits, barred, strict=True)
    ]
    rows = np.array(first, dtype=np.int32)
    return Pairs(np.flatnonzero(rows >= 0), rows[rows >= 0])


def barred_rows(dataset: Dataset, queries: Sequence[Query], gold: Pairs) -> list[set[int]]:
    """Return for each query the rows that cannot be its negatives."""
    barred: list[set[int]] = [set(dataset.corpus.rows(query.excluded).tolist()) for query in queries]
    for number, row in zip(gold.queries.tolist(), gold.rows.tolist(), strict=True):
        barred[number].add(row)
    return barred


def dataset_overlap(
    dataset: Dataset, store: Store, seed: int = 0, memory: int = MEMORY
) -> dict[str, tuple[Pairs, Overlap]]:
    """Return gold, hardest negative (by BM25) and random documents of every judged query, with what they share."""
    queries = judged_queries(dataset)
    gold = gold_pairs(dataset, queries)
    barred = barred_rows(dataset, queries, gold)
    depth = max(map(len, barred), default=0) + 1
    run = BM25().index(dataset, store, memory=memory).search([SearchQuery(query) for query in queries], depth).run
    pairs = {GOLD: gold, HARDEST: hardest_pairs(list(run.rows), barred), RANDOM: random_pairs(dataset, barred, seed)}
    index = open_index(dataset.corpus, store, SCORER.counts_repeats, memory=memory)
    terms = QueryTerms.of([query.text for query in queries], index)
    return {kind: (each, shared_terms(terms, index, each)) for kind, each in pairs.items()}


@dataclass(frozen=True)
class QueryTerms:
    """Queries × their distinct terms."""

    terms: pa.Array
    counts: sparse.csr_array
    weights: sparse.csr_array
    """BM25's."""
    idf: Floats

    @classmethod
    def of(cls, texts: Sequence[str], index: Index) -> QueryTerms:
        """Analyse queries as BM25 does."""
        from r2med.text.english import english

        bags = [Counter(english(text)) for text in texts]
        terms = pa.array(sorted(set().union(*bags)), pa.string())
        number_of = {term: number for number, term in enumerate(terms.to_pylist())}
        df = index.df(terms)
        indices = np.array([number_of[term] for bag in bags for term in bag], dtype=np.int64)
        ends = np.cumsum([0, *map(len, bags)])
        counts = np.array([count for bag in bags for count in bag.values()], dtype=np.int64)
        weights = np.zeros(len(counts))
        settings = index.collection, BM25().k1, BM25().b
        for start, end in pairwise(ends.tolist()):
            # As the search does it: what the corpus has not is no part of the query.
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


def shared_terms(asked: QueryTerms, index: Index, pairs: Pairs) -> Overlap:
    """Return what each pair shares."""
    distinct, positions = np.unique(pairs.rows, return_inverse=True)
    held, sizes, lengths = _documents(asked.terms, index, distinct)
    spread = np.repeat(lengths, np.diff(held.indptr))
    impacts = held.copy()
    impacts.data = SCORER.impacts(held.data, SCORER.norms(spread, index.collection, BM25().k1, BM25().b))
    marks, held_marks = _marks(asked.counts), _marks(held)
    query_sizes = np.diff(asked.counts.indptr)
    query_idf = marks @ asked.idf
    values: list[Floats] = []
    for start in range(0, len(pairs.rows), AT_ONCE):
        part = slice(start, start + AT_ONCE)
        q, d = pairs.queries[part], positions[part]
        both = marks[q].multiply(held_marks[d]).tocsr()
        shared = np.asarray(both.sum(axis=1)).ravel()
        scores = np.asarray(asked.weights[q].multiply(impacts[d]).sum(axis=1)).ravel()
        either = np.maximum(1, query_sizes[q] + sizes[d] - shared)
        coverage = shared / np.maximum(1, query_sizes[q])
        weighted = (both @ asked.idf) / np.where(query_idf[q] > 0, query_idf[q], 1.0)
        values.append(np.array([shared / either, coverage, weighted, scores]))
    return Overlap(*(np.hstack(values) if values else np.zeros((4, 0))))


def _marks(counts: sparse.csr_array) -> sparse.csr_array:
    return sparse.csr_array((np.ones(len(counts.data)), counts.indices, counts.indptr), counts.shape)


def _documents(terms: pa.Array, index: Index, rows: npt.NDArray[Any]) -> tuple[sparse.csr_array, Positions, Positions]:
    """Return some documents × terms with how often each has them, and their distinct and all terms."""
    parts, sizes, lengths = [], [], []
    for segment, where in zip(index.segments, index.positions(terms), strict=True):
        documents = len(segment.lengths)
        local = rows[(rows >= segment.start) & (rows < segment.start + documents)] - segment.start
        known = np.flatnonzero(where >= 0)
        postings = sparse.csc_array(
            (segment.frequencies, segment.documents, segment.offsets), shape=(documents, len(segment.terms))
        )
        part = postings[:, where[known]].tocsr()[local].astype(np.int64)
        parts.append(sparse.csr_array((part.data, known[part.indices], part.indptr), (len(local), len(terms))))
        sizes.append(np.bincount(segment.documents, minlength=documents)[local])
        lengths.append(segment.lengths[local].astype(np.int64))
    return sparse.vstack(parts, format="csr"), np.concatenate(sizes), np.concatenate(lengths)


def cosines(dataset: Dataset, model: str, runtime: Runtime, seed: int = 0) -> dict[str, tuple[Pairs, Floats]]:
    """Return the cosine of query and document for gold, the nearest negative and random ones; the corpus is encoded."""
    from r2med.encoders.encoder import open_encoder
    from r2med.encoders.model_cards import resolve_card
    from r2med.retrieve.dense.dense_retriever import query_vectors
    from r2med.retrieve.dense.embeddings import embed_corpus
    from r2med.retrieve.dense.exact_search import search_exact

    queries = judged_queries(dataset)
    gold = gold_pairs(dataset, queries)
    barred = barred_rows(dataset, queries, gold)
    depth = max(map(len, barred), default=0) + 1
    encoder = open_encoder(resolve_card(model), dataset.instruction, runtime, runtime.store)
    embeddings = embed_corpus(dataset.corpus, encoder, runtime.store, runtime.engine)
    asked = query_vectors([SearchQuery(query) for query in queries], encoder, runtime.store).vectors
    asked = asked / np.maximum(np.linalg.norm(asked, axis=1, keepdims=True), TINY)
    ranks = dataset.corpus.id_ranks()
    hits = search_exact(asked, embeddings.blocks, depth, ranks, cosine=True, memory=runtime.setup.memory)
    nearest = [rows[np.argsort(-scores, kind="stable")] for rows, scores in hits]
    pairs = {GOLD: gold, HARDEST: hardest_pairs(nearest, barred), RANDOM: random_pairs(dataset, barred, seed)}
    values = {kind: np.zeros(len(each.rows)) for kind, each in pairs.items()}
    for start, vectors in embeddings.blocks:
        for kind, each in pairs.items():
            here = np.flatnonzero((each.rows >= start) & (each.rows < start + len(vectors)))
            found = vectors[each.rows[here] - start].astype(np.float64)
            products = np.einsum("ij,ij->i", found, asked[each.queries[here]])
            values[kind][here] = products / np.maximum(np.linalg.norm(found, axis=1), TINY)
    return {kind: (each, values[kind]) for kind, each in pairs.items()}


def overlap(material: Material) -> Section:
    """Return what queries share with gold documents, dataset by dataset; a model adds the cosine of its vectors."""
    runtime, model = material.runtime, material.model
    terms: list[list[Value]] = []
    scores: list[list[Value]] = []
    vectors: list[list[Value]] = []
    chart = []
    for name, dataset in material.datasets.items():
        size = len(judged_queries(dataset))
        shared = dataset_overlap(dataset, runtime.store, memory=runtime.setup.memory)
        figures = {kind: _figures(*each, size) for kind, each in shared.items()}
        terms += [[name, size, kind, *values] for kind, values in figures.items()]
        chart.append((name, {kind: values[-1] for kind, values in figures.items()}))
        scores.append([name, *_margin({kind: (pairs, each.bm25) for kind, (pairs, each) in shared.items()}, size)])
        if model:
            vectors.append([name, *_margin(cosines(dataset, model, runtime), size)])
    heads = ("dataset", "best gold", HARDEST, RANDOM, "gold above all negatives")
    tables = [
        Table.of(
            ("dataset", "queries", "document", "Jaccard", "coverage", "idf-weighted"),
            terms,
            "Words that queries and documents share",
            "Terms of Lucene's English analysis, stop words left out. Coverage: the share of a query's terms that the "
            "document has; idf-weighted: rare terms count more. Means over queries.",
            name="overlap-terms",
            digits=3,
            chart=Dots(chart, "idf-weighted share of the query's terms"),
        ),
        Table.of(heads, scores, "BM25 score of gold and negatives", _MARGIN, name="overlap-bm25"),
    ]
    if model:
        tables.append(Table.of(heads, vectors, f"Cosine by {model}", _MARGIN, name="overlap-cosine", digits=3))
    notes = [] if model else ["No embedding model was named: --by minilm adds the cosine of queries and documents."]
    return Section("Overlap", tables, _lead(chart), notes, name="overlap")


_MARGIN = (
    "The best of a query's gold documents, the best-scoring document that is not gold, and random ones; then the share "
    "of queries whose best gold document scores above every other."
)


def _figures(pairs: Pairs, overlap: Overlap, size: int) -> list[Estimate | None]:
    values = overlap.jaccard, overlap.coverage, overlap.weighted
    return [mean_interval(pairs.by_query(each, size)) for each in values]


def _margin(scored: Mapping[str, tuple[Pairs, Floats]], size: int) -> list[Value]:
    best = {kind: pairs.best(values, size) for kind, (pairs, values) in scored.items()}
    random = scored[RANDOM][0].by_query(scored[RANDOM][1], size)
    rival = np.nan_to_num(best[HARDEST], nan=-np.inf)
    above = np.where(np.isnan(best[GOLD]), np.nan, best[GOLD] > rival)
    return [mean_interval(each) for each in (best[GOLD], best[HARDEST], random, above)]


def _lead(chart: Sequence[tuple[str, Mapping[str, Estimate | None]]]) -> str:
    known = [figures for _, figures in chart if all(figures.values())]
    if not known:
        return "No query has a relevant document in its corpus."
    kinds = (GOLD, HARDEST, RANDOM)
    gold, hardest, random = (np.mean([figure.value for each in known if (figure := each[kind])]) for kind in kinds)
    return (
        f"By weight of rare words, a gold document holds {gold:.0%} of what its query says; the document that BM25 "
        f"prefers without being gold holds {hardest:.0%}, a random one {random:.0%}."
    )
