"""The report on overlap: what queries share with relevant documents, beside a known medical dataset."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import resources

import numpy as np

from r2med.analysis.estimates import mean_interval
from r2med.analysis.material import Material
from r2med.analysis.overlap import (
    HARDEST,
    RANDOM,
    RELEVANT,
    DocumentPairs,
    Overlap,
    cosines,
    dataset_overlap,
    judged_queries,
)
from r2med.data.dataset import Dataset
from r2med.evaluation.measure.scores import Floats
from r2med.foundation.pages.cells import Column, Estimate, Value
from r2med.foundation.pages.page import Dots, Section, Table

COVERAGE, WEIGHTED, COSINE = "coverage", "idf-weighted", "cosine"
MEASURES: Mapping[str, str] = {
    COVERAGE: "Share of a query's terms that a relevant document contains, as the mean of its relevant documents.",
    WEIGHTED: "The same share with each term weighted by its idf, so that rare terms count more.",
    COSINE: "Cosine similarity of a query and the most similar of its relevant documents.",
}
"""Measures of overlap -> their meaning. All are at most 1."""
ALL_SETS, ALL_DATASETS = "all these datasets", "all datasets"

Scored = Mapping[str, tuple[DocumentPairs, Floats]]
"""Kind of document -> pairs with a query, and the score of each."""


@dataclass(frozen=True)
class MeasuredDataset:
    """A dataset with the overlap of its pairs of queries and documents."""

    name: str
    queries: Sequence[str]
    """The ids of the queries with a relevant document."""
    words: Mapping[str, tuple[DocumentPairs, Overlap]]
    vectors: Scored | None = None
    """Cosines; None if no embedding model was named."""

    @classmethod
    def of(
        cls, dataset: Dataset, words: Mapping[str, tuple[DocumentPairs, Overlap]], vectors: Scored | None = None
    ) -> MeasuredDataset:
        """Return a dataset with the overlap of its pairs."""
        return cls(dataset.name, [query.id for query in judged_queries(dataset)], words, vectors)

    @property
    def size(self) -> int:
        """Number of queries with a relevant document."""
        return len(self.queries)

    @property
    def bm25(self) -> Scored:
        """BM25 scores of its pairs."""
        return {kind: (pairs, each.bm25) for kind, (pairs, each) in self.words.items()}

    @cached_property
    def values(self) -> Mapping[str, Floats]:
        """Measure -> a value for each query, NaN if it has none."""
        pairs, shared = self.words[RELEVANT]
        values = {COVERAGE: pairs.by_query(shared.coverage, self.size)}
        values[WEIGHTED] = pairs.by_query(shared.weighted, self.size)
        if self.vectors:
            gold, scores = self.vectors[RELEVANT]
            values[COSINE] = gold.best(scores, self.size)
        return values


@dataclass(frozen=True)
class OverlapReference:
    """A known medical dataset, with a file of its overlap in the form of `overlap-queries.csv` of a report."""

    title: str
    file: str
    version: str
    """The exact data: split, number of queries and documents."""
    origin: str
    """The day on which the numbers were computed, and with what."""
    model: str
    """The embedding model of the cosines, as in `--model`. Other models are not compared with it."""

    @cached_property
    def values(self) -> Mapping[str, Floats]:
        """Measure -> a value for each query. An empty cell is NaN."""
        text = resources.files("r2med").joinpath("analysis/references", self.file).read_text("utf-8")
        rows = list(csv.DictReader(text.splitlines()))
        return {measure: np.array([float(row[measure] or "nan") for row in rows]) for measure in MEASURES}


REFERENCE = OverlapReference(
    "SciFact",
    "scifact.csv",
    "BEIR's test set: 300 claims, 5,183 abstracts with their titles, 339 judgements",
    "Computed on 2026-11-17: r2med 0.3.0, and all-MiniLM-L6-v2 (256 tokens) for cosines",
    "minilm",
)


def overlap(material: Material) -> Section:
    """Return what queries share with relevant documents, by dataset. A model adds the cosine of its vectors."""
    runtime, model = material.runtime, material.model
    measured = [
        MeasuredDataset.of(
            dataset,
            dataset_overlap(dataset, runtime.store),
            cosines(dataset, model, runtime) if model else None,
        )
        for dataset in material.datasets.values()
    ]
    terms = _terms_table(measured)
    scores = [(each, each.bm25) for each in measured]
    tables = [terms, _margin_table("BM25 scores of relevant documents and negatives", "overlap-bm25", 2, scores)]
    if model:
        scored = [(each, each.vectors) for each in measured if each.vectors]
        tables.append(_margin_table(f"Cosine similarity by {model}", "overlap-cosine", 3, scored))
    tables += [_beside_table(measure, measured, model) for measure in MEASURES if model or measure != COSINE]
    tables.append(_queries_table(measured))
    unnamed = "No embedding model was named: model (--model minilm) adds the cosine of queries and documents."
    of_reference = np.nanmean(REFERENCE.values[WEIGHTED])
    lead = f"{_lead(terms)} For comparison, relevant documents contain {of_reference:.0%} in {REFERENCE.title}."
    return Section("Overlap", tables, lead, [*([] if model else [unnamed]), reference_note(model)], name="overlap")


def _terms_table(measured: Sequence[MeasuredDataset]) -> Table:
    rows: list[list[Value]] = []
    chart: list[tuple[str, Mapping[str, Estimate | None]]] = []
    for each in measured:
        figures = {
            kind: [mean_interval(pairs.by_query(values, each.size)) for values in (shared.coverage, shared.weighted)]
            for kind, (pairs, shared) in each.words.items()
        }
        rows += [[each.name, each.size, kind, *values] for kind, values in figures.items()]
        chart.append((each.name, {kind: values[-1] for kind, values in figures.items()}))
    if len(measured) > 1:
        for kind in (RELEVANT, HARDEST, RANDOM):
            own = [row for row in rows if row[2] == kind and row[0] != ALL_DATASETS]
            queries = sum(each.size for each in measured)
            rows.append([ALL_DATASETS, queries, kind, *_averages([row[3:] for row in own])])
    return Table.of(
        ("dataset", "queries", "document", COVERAGE, WEIGHTED),
        rows,
        "Words that queries and documents share",
        "Terms come from Lucene's English analysis, without stop words. Coverage: the share of a query's terms "
        "that the document contains. Idf-weighted: rare terms count more. Values are means over queries. "
        f"{_AVERAGES_NOTE}",
        name="overlap-terms",
        digits=3,
        chart=Dots(chart, "idf-weighted share of the query's terms"),
    )


_AVERAGES_NOTE = "The row of all datasets has means over datasets."
_MARGIN_NOTE = (
    "Scores of a query's best relevant document, of the best document that is not relevant, and of random documents. "
    "The last column is the share of queries whose best relevant document scores above all others."
)


def _averages(rows: Sequence[Sequence[Value]]) -> list[Value]:
    """Return the mean of the estimates in each column; None if there are none."""
    known = ([cell.value for cell in cells if isinstance(cell, Estimate)] for cells in zip(*rows, strict=True))
    return [Estimate(float(np.mean(values))) if values else None for values in known]


def _margin_table(title: str, name: str, digits: int, scored: Sequence[tuple[MeasuredDataset, Scored]]) -> Table:
    heads = ("dataset", "best relevant", HARDEST, RANDOM, "relevant above all negatives")
    rows: list[list[Value]] = [[each.name, *_margin(pairs, each.size)] for each, pairs in scored]
    if len(rows) > 1:
        rows.append([ALL_DATASETS, *_averages([row[1:] for row in rows])])
    return Table.of(heads, rows, title, f"{_MARGIN_NOTE} {_AVERAGES_NOTE}", name=name, digits=digits)


def _margin(scored: Scored, size: int) -> list[Value]:
    best = {kind: pairs.best(values, size) for kind, (pairs, values) in scored.items()}
    random = scored[RANDOM][0].by_query(scored[RANDOM][1], size)
    rival = np.nan_to_num(best[HARDEST], nan=-np.inf)
    above = np.where(np.isnan(best[RELEVANT]), np.nan, best[RELEVANT] > rival)
    # Scores of BM25 and cosines are not between 0 and 1.
    return [*(mean_interval(each, top=None) for each in (best[RELEVANT], best[HARDEST], random)), mean_interval(above)]


def _beside_table(measure: str, measured: Sequence[MeasuredDataset], model: str) -> Table:
    """Return a table of one measure with the datasets beside the reference. Cosines of other models are left out."""
    compared = [(each.name, "own", each.size, each.values[measure]) for each in measured]
    if len(measured) > 1:
        pooled = np.concatenate([each.values[measure] for each in measured])
        compared.append((ALL_SETS, "own", sum(each.size for each in measured), pooled))
    if measure != COSINE or REFERENCE.model == model:
        of_reference = REFERENCE.values[measure]
        compared.append((REFERENCE.title, "reference", len(of_reference), of_reference))
    top = None if measure == COSINE else 1.0
    rows: list[list[Value]] = [
        [name, numbers, queries, mean_interval(values, top), *_quartiles(values)]
        for name, numbers, queries, values in compared
    ]
    columns = (
        Column("dataset"),
        Column("numbers"),
        Column("queries", "integer"),
        Column("mean", "number", 3),
        *(Column(head, "number", 3) for head in ("lower quarter", "median", "upper quarter")),
    )
    pooled_note = f" In the row {ALL_SETS!r} every query has the same weight." if len(measured) > 1 else ""
    title, name = f"Side by side: {measure}", f"overlap-by-{measure}"
    return Table(columns, rows, title, f"{MEASURES[measure]}{pooled_note}", name)


def _quartiles(values: Floats) -> list[Value]:
    known = values[~np.isnan(values)]
    return [*np.quantile(known, [0.25, 0.5, 0.75]).tolist()] if len(known) else [None] * 3


def coverage_table(dataset: Dataset, words: Mapping[str, tuple[DocumentPairs, Overlap]]) -> Table:
    """Return the share of the queries' terms in relevant documents, beside the reference."""
    return _beside_table(COVERAGE, [MeasuredDataset.of(dataset, words)], "")


def reference_note(model: str) -> str:
    """Return the origin of the reference, and why its cosines are missing."""
    is_other = model not in ("", REFERENCE.model)
    other = f" Its cosines are by {REFERENCE.model}, so they are left out." if is_other else ""
    return f"{REFERENCE.title}: {REFERENCE.version}. {REFERENCE.origin}.{other}"


def _queries_table(measured: Sequence[MeasuredDataset]) -> Table:
    """Return the values of every query. Its CSV file has the form of the reference's."""
    return Table(
        (
            Column("dataset"),
            Column("query"),
            Column("BM25 score", "number"),
            *(Column(measure, "number", 3) for measure in MEASURES),
        ),
        [row for each in measured for row in _query_rows(each)],
        "Overlap of each query with its relevant documents",
        name="overlap-queries",
    )


def _query_rows(each: MeasuredDataset) -> Iterator[list[Value]]:
    pairs, scores = each.bm25[RELEVANT]
    columns = [pairs.best(scores, each.size)]
    columns += [each.values.get(measure, np.full(each.size, np.nan)) for measure in MEASURES]
    for query, *values in zip(each.queries, *(column.tolist() for column in columns), strict=True):
        yield [each.name, query, *values]


def _lead(terms: Table) -> str:
    chart = terms.chart.rows if isinstance(terms.chart, Dots) else ()
    known = [figures for _, figures in chart if all(figures.values())]
    if not known:
        return "No query has a relevant document in its corpus."
    kinds = (RELEVANT, HARDEST, RANDOM)
    relevant, hardest, random = (np.mean([figure.value for each in known if (figure := each[kind])]) for kind in kinds)
    return (
        f"Weighted by idf, a relevant document contains {relevant:.0%} of its query's terms, the hardest negative of "
        f"BM25 {hardest:.0%}, and a random document {random:.0%}."
    )
