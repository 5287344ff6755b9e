"""Show the overlap of datasets beside that of known medical datasets: distributions and shares below thresholds."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import resources

import numpy as np

from r2med.analysis.estimates import mean_interval
from r2med.analysis.overlap_values import COSINE, MEASURES, WEIGHTED, OverlapValues
from r2med.evaluation.measure.scores import Floats
from r2med.foundation.pages.cells import Column, Value
from r2med.foundation.pages.estimate import Estimate
from r2med.foundation.pages.page import Curves, Table

THRESHOLDS = (0.1, 0.2, 0.3, 0.5)
"""Overlaps below which queries are counted, unless others are given."""
MAX_CURVES = 6
STEPS = 20
"""Number of steps of a curve between 0 and 1."""
ALL = "all these datasets"


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


REFERENCES = (
    OverlapReference(
        "SciFact",
        "scifact.csv",
        "BEIR's test set: 300 claims, 5,183 abstracts with their titles, 339 judgements",
        "Computed on 2026-11-17: r2med 0.3.0, and all-MiniLM-L6-v2 (256 tokens) for cosines",
        "minilm",
    ),
)


@dataclass(frozen=True)
class ComparedSet:
    """One row of the comparison: a dataset of the report, or a reference."""

    name: str
    queries: int
    values: Mapping[str, Floats]
    is_reference: bool = False


def own_sets(sets: Sequence[OverlapValues]) -> list[ComparedSet]:
    """Return the datasets of a report, and all of them together if there are several."""
    rows = [ComparedSet(each.name, len(each.queries), each.values) for each in sets]
    if len(rows) < 2:
        return rows
    shared = [measure for measure in MEASURES if all(measure in each.values for each in sets)]
    pooled = {measure: np.concatenate([each.values[measure] for each in sets]) for measure in shared}
    return [*rows, ComparedSet(ALL, sum(len(each.queries) for each in sets), pooled)]


def reference_sets(model: str) -> list[ComparedSet]:
    """Return the references. Cosines of other models are left out."""
    return [_compared(each, model) for each in REFERENCES]


def _compared(reference: OverlapReference, model: str) -> ComparedSet:
    values = {
        measure: each for measure, each in reference.values.items() if measure != COSINE or reference.model == model
    }
    return ComparedSet(reference.title, len(values[WEIGHTED]), values, is_reference=True)


def context_tables(
    own: Sequence[ComparedSet],
    references: Sequence[ComparedSet],
    thresholds: Sequence[float],
    measures: Iterable[str] = tuple(MEASURES),
) -> Iterator[Table]:
    """Yield a table for each measure with the datasets side by side, and the distributions as a chart."""
    for measure in measures:
        compared = [each for each in (*own, *references) if measure in each.values]
        if any(not each.is_reference for each in compared):
            yield _table(measure, compared, thresholds)


def _table(measure: str, compared: Sequence[ComparedSet], thresholds: Sequence[float]) -> Table:
    rows = [
        [each.name, "reference" if each.is_reference else "own", each.queries, *_figures(each, measure, thresholds)]
        for each in compared
    ]
    columns = (
        Column("dataset"),
        Column("numbers"),
        Column("queries", "integer"),
        Column("mean", "number", 3),
        *(Column(head, "number", 3) for head in ("lower quarter", "median", "upper quarter")),
        *(Column(f"below {threshold:g}", "share", 0) for threshold in thresholds),
    )
    pooled = f" In the row {ALL!r} every query has the same weight." if ALL in {each.name for each in compared} else ""
    note = (
        f"{MEASURES[measure]} The last columns are shares of queries below a value. The chart shows these shares for "
        f"all values: a curve further to the left has less overlap.{pooled}"
    )
    chart = Curves(dict(_curves(compared, measure)), measure, "share of queries below")
    name = f"overlap-by-{measure.lower().replace(' ', '-')}"
    return Table(columns, rows, f"Side by side: {measure}", note, name, chart)


def _figures(each: ComparedSet, measure: str, thresholds: Sequence[float]) -> list[Value]:
    known = _known(each, measure)
    if not len(known):
        return [None] * (4 + len(thresholds))
    top = None if measure == COSINE else 1.0
    shares = [mean_interval((known < threshold).astype(np.float64)) for threshold in thresholds]
    return [mean_interval(known, top), *np.quantile(known, [0.25, 0.5, 0.75]).tolist(), *shares]


def _known(each: ComparedSet, measure: str) -> Floats:
    values = each.values.get(measure, np.array([]))
    return values[~np.isnan(values)]


def _curves(compared: Sequence[ComparedSet], measure: str) -> Iterator[tuple[str, list[tuple[float, Estimate]]]]:
    """Yield the share of queries below each value. If there are too many datasets, they are one curve."""
    drawn = [each for each in compared if len(_known(each, measure))]
    own = [each for each in drawn if not each.is_reference]
    references = [each for each in drawn if each.is_reference]
    parts = [each for each in own if each.name != ALL]
    own = parts if len(parts) + len(references) <= MAX_CURVES else own[-1:]
    for each in [*own, *references][:MAX_CURVES]:
        known = _known(each, measure)
        points = [step / STEPS for step in range(STEPS + 1)]
        name = f"{each.name} (reference)" if each.is_reference else each.name
        yield name, [(x, Estimate(float((known < x).mean()))) for x in points]


def context_lead(references: Sequence[ComparedSet]) -> str:
    """Return the means of the references in one sentence."""
    shown = [f"{_known(each, WEIGHTED).mean():.0%} in {each.name}" for each in references]
    return f" For comparison, relevant documents contain {', '.join(shown)}."


def context_notes(model: str) -> Iterator[str]:
    """Yield the origin of each reference, and why its cosines are missing."""
    for each in REFERENCES:
        other = f" Its cosines are by {each.model}, so they are left out." if model and each.model != model else ""
        yield f"{each.title}: {each.version}. {each.origin}.{other}"
