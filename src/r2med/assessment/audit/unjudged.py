"""Show the effects of documents without a label and of duplicate texts on scores."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from r2med.data import Dataset
from r2med.data.text_copies import as_written, find_copies
from r2med.evaluation.comparison.standings import with_intervals
from r2med.evaluation.measure import HEADLINE_MEASURE
from r2med.evaluation.measure.incomplete_labels import (
    CUTOFF,
    Grades,
    Lists,
    as_one,
    bpref,
    condensed,
    headline,
    judged_share,
    with_unjudged_relevant,
)
from r2med.evaluation.measure.scores import Floats
from r2med.evaluation.measure.significance import Values
from r2med.evaluation.records.rankings import DEPTH
from r2med.foundation.pages.cells import Value
from r2med.foundation.pages.estimate import Estimate
from r2med.foundation.pages.page import Table

WHOLE_RUN = sys.maxsize
"""Depth for bpref, which counts judged documents at every rank, like trec_eval."""


@dataclass(frozen=True)
class RankedDataset:
    """The rankings of one system for the judged queries of one dataset."""

    system: str
    dataset: str
    qrels: Grades
    lists: Lists


def unjudged_table(rankings: Iterable[RankedDataset]) -> Table | None:
    """Return the scores of each system if unjudged documents were relevant or not; None without rankings.

    The rankings are whole runs.
    """
    figures: dict[str, dict[str, list[Floats]]] = {}
    negatives = False
    for ranked in rankings:
        qrels, lists = ranked.qrels, {query: documents[:DEPTH] for query, documents in ranked.lists.items()}
        negatives |= any(grade <= 0 for grades in qrels.values() for grade in grades.values())
        figures.setdefault(ranked.system, {})[ranked.dataset] = [
            judged_share(qrels, lists),
            headline(qrels, lists),
            headline(with_unjudged_relevant(qrels, lists), lists),
            headline(qrels, condensed(qrels, lists)),
            bpref(qrels, ranked.lists),
        ]
    if not figures:
        return None
    rows: list[list[Value]] = [[system, *_row(each)] for system, each in figures.items()]
    heads = ("system", f"judged % of the first {CUTOFF}", "all irrelevant", "all relevant", "judged only", "bpref")
    note = (
        f"{HEADLINE_MEASURE} × 100 if every unjudged document of the first {CUTOFF} is irrelevant (as it is scored) or "
        f"relevant. The true value is between the two. Judged only: the first {DEPTH} without unjudged documents. "
        "bpref is computed on the whole run."
    )
    if not negatives:
        note += " Only relevant documents are judged here, so judged only and bpref just show what share was retrieved."
    return Table.of(heads, rows, "Possible effect of unjudged documents", note, name="reliability-unjudged", digits=1)


def duplicate_tables(datasets: Mapping[str, Dataset], rankings: Iterable[RankedDataset]) -> Iterator[Table | None]:
    """Yield the number of duplicate texts, and the scores if all copies of a text counted as one document."""
    copies: list[list[Value]] = []
    keys: dict[str, dict[str, str]] = {}
    for name, dataset in datasets.items():
        keys[name] = first_copies(dataset)
        gold = {document for grades in dataset.qrels.values() for document, grade in grades.items() if grade > 0}
        twins = {keys[name].get(document, document) for document in gold}
        hidden = sum(first in twins and document not in gold for document, first in keys[name].items())
        copies.append([name, len(dataset.corpus), len(keys[name]), hidden])
    if not copies:
        return
    heads = ("dataset", "documents", "copies of an earlier text", "unjudged copies of a relevant document")
    yield Table.of(heads, copies, "Duplicate texts", name="reliability-duplicates")
    figures: dict[str, dict[str, list[Floats]]] = {}
    moved: dict[str, dict[str, list[Floats]]] = {}
    for each in rankings:
        before = headline(each.qrels, each.lists)
        after = headline(*as_one(each.qrels, each.lists, keys[each.dataset]))
        figures.setdefault(each.system, {})[each.dataset] = [before, after]
        moved.setdefault(each.system, {})[each.dataset] = [after - before]
    rows: list[list[Value]] = [
        [system, *_row(each), *_row(moved[system], top=None)] for system, each in figures.items()
    ]
    heads = ("system", "as it is scored", "copies as one", "difference")
    yield Table.of(heads, rows, "Scores if copies counted as one document", name="reliability-copies") if rows else None


def first_copies(dataset: Dataset) -> dict[str, str]:
    """Return for every document that repeats an earlier text the first document with this text."""
    corpus = dataset.corpus
    found = find_copies(corpus, form=as_written).first
    return dict(zip(corpus.ids(list(found)), corpus.ids(list(found.values())), strict=True))


def _row(figures: Mapping[str, list[Floats]], top: float | None = 100.0) -> list[Estimate]:
    return over_datasets({name: np.array(each) for name, each in figures.items()}, top)


def over_datasets(values: Values, top: float | None = 100.0) -> list[Estimate]:
    """Return for each row the unweighted mean over datasets with its interval. For `top` see `mean_interval`."""
    return [figure for figure in with_intervals(values, top) if figure is not None]
