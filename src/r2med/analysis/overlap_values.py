"""The overlap of each query with its relevant documents, by five measures with a common scale."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from r2med.analysis.overlap import HARDEST, RELEVANT, DocumentPairs, Overlap, judged_queries
from r2med.data.dataset import Dataset
from r2med.evaluation.measure.scores import Floats
from r2med.foundation.pages.cells import Column, Value
from r2med.foundation.pages.page import Table

JACCARD, COVERAGE, WEIGHTED, RELATIVE_BM25, COSINE = "Jaccard", "coverage", "idf-weighted", "relative BM25", "cosine"
MEASURES: Mapping[str, str] = {
    JACCARD: "Share of the terms of either text that query and document have in common, as the mean of a query's "
    "relevant documents.",
    COVERAGE: "Share of a query's terms that a relevant document contains, as the mean of its relevant documents.",
    WEIGHTED: "The same share with each term weighted by its idf, so that rare terms count more.",
    RELATIVE_BM25: "BM25 score of a query's best relevant document, divided by the best score of all documents. It is "
    "1 if a relevant document is first. BM25 scores themselves cannot be compared between datasets.",
    COSINE: "Cosine similarity of a query and the most similar of its relevant documents.",
}
"""Measures of overlap -> their meaning. All are at most 1."""
QUERIES_TABLE = "overlap-queries"


@dataclass(frozen=True)
class OverlapValues:
    """A set of queries with their overlap: measure -> a value for each query, NaN if it has none."""

    name: str
    queries: Sequence[str]
    values: Mapping[str, Floats]
    bm25: Floats
    """BM25 score of each query's best relevant document."""

    @classmethod
    def of(
        cls,
        dataset: Dataset,
        words: Mapping[str, tuple[DocumentPairs, Overlap]],
        vectors: Mapping[str, tuple[DocumentPairs, Floats]] | None = None,
    ) -> OverlapValues:
        """Return the values of a dataset from the overlap of its pairs, and from their cosines if they are known."""
        queries = [query.id for query in judged_queries(dataset)]
        size = len(queries)
        pairs, shared = words[RELEVANT]
        best = {kind: each.best(overlap.bm25, size) for kind, (each, overlap) in words.items()}
        values = {
            JACCARD: pairs.by_query(shared.jaccard, size),
            COVERAGE: pairs.by_query(shared.coverage, size),
            WEIGHTED: pairs.by_query(shared.weighted, size),
            RELATIVE_BM25: _relative(best[RELEVANT], best[HARDEST]),
        }
        if vectors:
            gold, cosines = vectors[RELEVANT]
            values[COSINE] = gold.best(cosines, size)
        return cls(dataset.name, queries, values, best[RELEVANT])


def _relative(relevant: Floats, rival: Floats) -> Floats:
    """Return scores divided by the best score of all documents; NaN if no document has a term of the query."""
    top = np.fmax(relevant, np.nan_to_num(rival, nan=0.0))
    with np.errstate(invalid="ignore"):
        return relevant / np.where(top > 0, top, np.nan)


def queries_table(sets: Sequence[OverlapValues]) -> Table:
    """Return the values of every query. Its CSV file has the form of a reference's."""
    rows: list[list[Value]] = []
    for each in sets:
        known = [each.values.get(measure, np.full(len(each.queries), np.nan)) for measure in MEASURES]
        cells = zip(each.queries, each.bm25.tolist(), *(values.tolist() for values in known), strict=True)
        rows += [[each.name, *row] for row in cells]
    numbers = [Column(measure, "number", 3) for measure in MEASURES]
    columns = (Column("dataset"), Column("query"), Column("BM25 score", "number"), *numbers)
    return Table(columns, rows, "Overlap of each query with its relevant documents", name=QUERIES_TABLE)
