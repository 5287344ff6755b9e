"""The report on overlap: what queries share with relevant documents, beside other datasets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

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
from r2med.analysis.overlap_context import (
    THRESHOLDS,
    context_lead,
    context_notes,
    context_tables,
    own_sets,
    reference_sets,
)
from r2med.analysis.overlap_values import OverlapValues, queries_table
from r2med.data.dataset import Dataset
from r2med.evaluation.measure.scores import Floats
from r2med.foundation.core.notices import Notice, Setting
from r2med.foundation.pages.cells import Value
from r2med.foundation.pages.estimate import Estimate
from r2med.foundation.pages.page import Dots, Section, Table


@dataclass(frozen=True)
class MeasuredDataset:
    """A dataset with the overlap of its pairs of queries and documents."""

    dataset: Dataset
    words: Mapping[str, tuple[DocumentPairs, Overlap]]
    vectors: Mapping[str, tuple[DocumentPairs, Floats]] | None
    """Cosines; None if no embedding model was named."""

    @property
    def size(self) -> int:
        """Number of queries with a relevant document."""
        return len(judged_queries(self.dataset))

    @property
    def bm25(self) -> Mapping[str, tuple[DocumentPairs, Floats]]:
        """BM25 scores of its pairs."""
        return {kind: (pairs, each.bm25) for kind, (pairs, each) in self.words.items()}


def overlap(material: Material) -> Section:
    """Return what queries share with relevant documents, by dataset. A model adds the cosine of its vectors."""
    runtime, model = material.runtime, material.model
    measured = [
        MeasuredDataset(
            dataset,
            dataset_overlap(dataset, runtime.store, memory=runtime.setup.memory),
            cosines(dataset, model, runtime) if model else None,
        )
        for dataset in material.datasets.values()
    ]
    values = [OverlapValues.of(each.dataset, each.words, each.vectors) for each in measured]
    references = reference_sets(model)
    terms = _terms_table(measured)
    tables = [
        terms,
        _margin_table(
            "BM25 scores of relevant documents and negatives",
            "overlap-bm25",
            2,
            [(each, each.bm25) for each in measured],
        ),
    ]
    if model:
        scored = [(each, each.vectors) for each in measured if each.vectors]
        tables.append(_margin_table(f"Cosine similarity by {model}", "overlap-cosine", 3, scored))
    tables += [*context_tables(own_sets(values), references, material.thresholds or THRESHOLDS), queries_table(values)]
    unnamed = Notice(
        "No embedding model was named: ",
        Setting("analyse", model="minilm"),
        " adds the cosine of queries and documents.",
    )
    notes = [*([] if model else [unnamed]), *context_notes(model)]
    return Section("Overlap", tables, _lead(terms) + context_lead(references), notes, name="overlap")


def _terms_table(measured: Sequence[MeasuredDataset]) -> Table:
    rows: list[list[Value]] = []
    chart: list[tuple[str, Mapping[str, Estimate | None]]] = []
    for each in measured:
        figures = {kind: _figures(*pairs, each.size) for kind, pairs in each.words.items()}
        rows += [[each.dataset.name, each.size, kind, *values] for kind, values in figures.items()]
        chart.append((each.dataset.name, {kind: values[-1] for kind, values in figures.items()}))
    for group, names in dataset_groups(measured).items():
        for kind in dict.fromkeys(row[2] for row in rows):
            rows.append([group, *_averages([row[1:] for row in rows if row[2] == kind and row[0] in names])])
    return Table.of(
        ("dataset", "queries", "document", "Jaccard", "coverage", "idf-weighted"),
        rows,
        "Words that queries and documents share",
        "Terms come from Lucene's English analysis, without stop words. Coverage: the share of a query's terms "
        "that the document contains. Idf-weighted: rare terms count more. Values are means over queries. "
        + GROUPS_NOTE,
        name="overlap-terms",
        digits=3,
        chart=Dots(chart, "idf-weighted share of the query's terms"),
    )


def _margin_table(
    title: str,
    name: str,
    digits: int,
    scored: Sequence[tuple[MeasuredDataset, Mapping[str, tuple[DocumentPairs, Floats]]]],
) -> Table:
    heads = ("dataset", "best relevant", HARDEST, RANDOM, "relevant above all negatives")
    rows = [[each.dataset.name, *_margin(pairs, each.size)] for each, pairs in scored]
    of_groups = [
        [group, *_averages([row[1:] for row in rows if row[0] in names])]
        for group, names in dataset_groups([each for each, _ in scored]).items()
    ]
    return Table.of(heads, [*rows, *of_groups], title, f"{_MARGIN_NOTE} {GROUPS_NOTE}", name=name, digits=digits)


GROUPS_NOTE = "Rows of tasks and of all datasets are means over datasets."


def dataset_groups(measured: Sequence[MeasuredDataset]) -> dict[str, set[str]]:
    """Return the groups of several datasets, with the names of their datasets: each task, and all together."""
    groups: dict[str, set[str]] = {}
    for each in measured:
        if (card := each.dataset.card) is not None and card.task:
            groups.setdefault(f"task {card.task}", set()).add(each.dataset.name)
    groups["all datasets"] = {each.dataset.name for each in measured}
    return {group: names for group, names in groups.items() if len(names) > 1}


def _averages(rows: Sequence[Sequence[Value]]) -> list[Value]:
    """Return the means of estimates and the sums of numbers of queries, by column. Other cells stay as they are."""
    columns: list[Value] = []
    for cells in zip(*rows, strict=True):
        known = [cell.value for cell in cells if isinstance(cell, Estimate)]
        if all(isinstance(cell, int) for cell in cells):
            columns.append(sum(cell for cell in cells if isinstance(cell, int)))
        elif all(cell is None or isinstance(cell, Estimate) for cell in cells):
            columns.append(Estimate(float(np.mean(known))) if known else None)
        else:
            columns.append(cells[0])
    return columns


_MARGIN_NOTE = (
    "Scores of a query's best relevant document, of the best document that is not relevant, and of random documents. "
    "The last column is the share of queries whose best relevant document scores above all others."
)


def _figures(pairs: DocumentPairs, overlap: Overlap, size: int) -> list[Estimate | None]:
    values = overlap.jaccard, overlap.coverage, overlap.weighted
    return [mean_interval(pairs.by_query(each, size)) for each in values]


def _margin(scored: Mapping[str, tuple[DocumentPairs, Floats]], size: int) -> list[Value]:
    best = {kind: pairs.best(values, size) for kind, (pairs, values) in scored.items()}
    random = scored[RANDOM][0].by_query(scored[RANDOM][1], size)
    rival = np.nan_to_num(best[HARDEST], nan=-np.inf)
    above = np.where(np.isnan(best[RELEVANT]), np.nan, best[RELEVANT] > rival)
    # Scores of BM25 and cosines are not between 0 and 1.
    return [*(mean_interval(each, top=None) for each in (best[RELEVANT], best[HARDEST], random)), mean_interval(above)]


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
