"""Show the effects of documents without a label on scores."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from r2med.evaluation.comparison.standings import with_intervals
from r2med.evaluation.measure import HEADLINE_MEASURE
from r2med.evaluation.measure.incomplete_labels import (
    CUTOFF,
    Grades,
    Lists,
    bpref,
    condensed,
    headline,
    judged_share,
    with_unjudged_relevant,
)
from r2med.evaluation.measure.scores import Floats
from r2med.evaluation.measure.significance import Values
from r2med.evaluation.records.rankings import DEPTH
from r2med.foundation.pages.cells import Estimate, Value
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


def _row(figures: Mapping[str, list[Floats]]) -> list[Estimate]:
    return over_datasets({name: np.array(each) for name, each in figures.items()})


def over_datasets(values: Values) -> list[Estimate]:
    """Return for each row the unweighted mean over datasets with its interval."""
    return [figure for figure in with_intervals(values) if figure is not None]
