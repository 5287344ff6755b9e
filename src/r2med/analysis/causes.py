"""Properties of queries that may make them hard, and the scores of systems with and without each property."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from r2med.analysis.estimates import mean_interval
from r2med.data.dataset import Dataset, Query
from r2med.evaluation.measure.intervals import group_difference_intervals
from r2med.evaluation.measure.scores import Floats
from r2med.evaluation.measure.significance import Integers
from r2med.foundation.pages.cells import Column, Value, signed
from r2med.foundation.pages.estimate import Estimate
from r2med.foundation.pages.page import Dots, Table
from r2med.foundation.text.plurals import counted

MAX_CHART_SYSTEMS = 6
UNKNOWN = -1
"""Slice of a query whose property is not known."""


@dataclass(frozen=True)
class ScoredQueries:
    """The queries of all datasets that have a relevant document, and the points of each system."""

    datasets: Sequence[Dataset]
    queries: Sequence[tuple[Dataset, Query]]
    systems: Sequence[str]
    points: Floats
    """Systems × queries; NaN if a system was not run."""
    best: int = 0
    """Index of the system whose scores are compared between slices."""

    @property
    def has_scores(self) -> bool:
        """True if there is a score of the compared system."""
        return bool(len(self.systems)) and not bool(np.isnan(self.points[self.best]).all())


@dataclass(frozen=True)
class Cause:
    """A property of queries: its slices, and the two of them that are compared."""

    name: str
    labels: Sequence[str]
    slices: Integers
    """Index of the label of each query; `UNKNOWN` if its property is not known."""
    hard: int
    """Index of the slice that is expected to be harder."""
    easy: int
    finding: str
    """What the property says about the dataset, in plain sentences."""
    values: Mapping[str, Sequence[Value]] = field(default_factory=dict)
    """Head of a column -> the property of each query."""

    def part(self, label: int, points: Floats) -> Floats:
        """Return the known points of the queries of one slice."""
        return np.asarray(points[(self.slices == label) & ~np.isnan(points)])

    def difference(self, points: Floats) -> Estimate | None:
        """Return the mean of the hard slice minus that of the easy one; None if one is empty or both are one."""
        if self.hard == self.easy:
            return None
        return group_difference(self.part(self.hard, points), self.part(self.easy, points))


def group_difference(first: Floats, second: Floats) -> Estimate | None:
    """Return the difference between the mean points of two groups of queries, with its interval."""
    if not len(first) or not len(second):
        return None
    low, high = group_difference_intervals(first[None], second[None])[:, 0].tolist()
    bounds = (None, None) if np.isnan(low) else (low, high)
    return Estimate(float(first.mean() - second.mean()), *bounds)


def cause_table(cause: Cause, scored: ScoredQueries) -> Table:
    """Return the slices of a property with their shares of the queries and the score of every system."""
    known = cause.slices[cause.slices != UNKNOWN]
    rows: list[list[Value]] = []
    chart: list[tuple[str, Mapping[str, Estimate | None]]] = []
    for number, label in enumerate(cause.labels):
        count = int((known == number).sum())
        scores = [mean_interval(cause.part(number, points), 100.0) for points in scored.points]
        rows.append([label, count, mean_interval((known == number).astype(np.float64)), *scores])
        if count:
            chart.append((label, dict(zip(scored.systems, scores, strict=True))))
    if left := int((cause.slices == UNKNOWN).sum()):
        rows.append(["not known", left, None, *(None for _ in scored.systems)])
    columns = (
        Column("slice"),
        Column("queries", "integer"),
        Column("share", "share", 0),
        *(Column(system, "score", 1) for system in scored.systems),
    )
    drawn = Dots(chart, "points") if scored.has_scores and len(scored.systems) <= MAX_CHART_SYSTEMS else None
    title = f"By {cause.name}"
    return Table(columns, rows, title, name=f"difficulty-{cause.name.replace(' ', '-')}", chart=drawn)


def comparison_row(cause: Cause, scored: ScoredQueries) -> list[Value]:
    """Return the compared slices with their scores by the compared system, and the difference."""
    points = scored.points[scored.best]
    sides: list[Value] = []
    for label in (cause.hard, cause.easy):
        part = cause.part(label, points)
        sides += [cause.labels[label], len(part), mean_interval(part, 100.0)]
    return [cause.name, *sides, cause.difference(points)]


def compared(cause: Cause, scored: ScoredQueries) -> str:
    """Return the difference between the compared slices in one sentence; empty without scores."""
    difference = cause.difference(scored.points[scored.best]) if scored.has_scores else None
    if difference is None:
        return ""
    _, hard, queries, score, easy, others, other_score, _ = comparison_row(cause, scored)
    if not isinstance(score, Estimate) or not isinstance(other_score, Estimate):
        return ""
    groups = (
        f"{score.value:.1f} points on {counted(int(str(queries)), 'query', 'queries')} ({hard}) and "
        f"{other_score.value:.1f} on {int(str(others)):,} ({easy})"
    )
    return f" {scored.systems[scored.best]} scores {groups}: {difference_text(difference)}."


def difference_text(difference: Estimate) -> str:
    """Return a difference in points with its interval as text."""
    known = "too few queries for an interval"
    if difference.low is not None:
        known = f"95 % interval {' to '.join(signed(bound, 1) for bound in difference.bounds)}"
    return f"{signed(difference.value, 1)} points ({known})"
