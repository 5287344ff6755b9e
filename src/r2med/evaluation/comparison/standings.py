"""The scores of systems with their intervals: over all datasets, on each of them, and on slices of their queries.

Scores are points (measure × 100), and means over the runs of a system.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from r2med.evaluation.measure import HEADLINE_MEASURE, significance
from r2med.evaluation.measure.intervals import mean_intervals
from r2med.evaluation.measure.run_variance import RunSpread, SingleRuns, run_spread
from r2med.evaluation.measure.scores import Floats
from r2med.evaluation.measure.significance import Values
from r2med.evaluation.measure.slices import Slice, SliceFacts, slices
from r2med.evaluation.records.record_facts import QueryFacts
from r2med.evaluation.records.stored_records import RecordCollection
from r2med.foundation.pages.cells import Estimate
from r2med.foundation.text.plurals import counted

MEASURE = str(HEADLINE_MEASURE)


@dataclass(frozen=True)
class Standing:
    """The scores of a system on each of its datasets, and over all datasets."""

    system: str
    mean: Estimate | None
    """None if a dataset is missing, because its average could not be compared with others."""
    datasets: Mapping[str, Estimate]
    runs: int = 1
    """Number of runs on every dataset. Scores are means over them."""
    varies: bool = False
    """True if another run can give other scores; False for a deterministic system."""

    @property
    def run_words(self) -> str:
        """The number of runs in words."""
        return run_words(self.runs, self.varies)


def run_words(runs: int, varies: bool) -> str:
    """Return in words how often a system was run: `deterministic`, `one run`, `5 runs`."""
    if not varies:
        return "deterministic"
    return "one run" if runs == 1 else counted(runs, "run")


def intervals(collection: RecordCollection, measure: str = MEASURE) -> dict[str, Standing]:
    """Return the scores of each system with their intervals."""
    values, single = points(collection, measure), single_runs(collection, measure)
    return {standing.system: standing for standing in standings(collection.systems, values, single)}


def points(collection: RecordCollection, measure: str = MEASURE) -> dict[str, Floats]:
    """Return dataset -> systems × queries in points, means over runs; NaN if a system was not run."""
    return {dataset: 100 * rows for dataset, (_, rows) in collection.values(measure).items()}


def single_runs(
    collection: RecordCollection, measure: str = MEASURE, datasets: Sequence[str] | None = None
) -> SingleRuns:
    """Return the points of single runs, on some datasets or on all."""
    runs = collection.runs(measure)
    tables = {name: [100 * each for each in runs[name][1]] for name in (runs if datasets is None else datasets)}
    return SingleRuns(tables, tuple(map(collection.varies, collection.systems)))


def standings(names: Sequence[str], values: Values, single: SingleRuns) -> Iterator[Standing]:
    """Yield the scores of each system, from values of systems × queries and those of single runs."""
    by_dataset = {
        dataset: with_intervals({dataset: rows}, spread=run_spread(single.on(dataset)))
        for dataset, rows in values.items()
    }
    overall = with_intervals(values, spread=run_spread(single))
    for number, system in enumerate(names):
        mine = {dataset: each for dataset, column in by_dataset.items() if (each := column[number])}
        runs = min((len(tables[number]) for tables in single.tables.values() if len(tables[number])), default=0)
        yield Standing(system, overall[number], mine, runs, single.varies[number])


def with_intervals(values: Values, top: float | None = 100.0, spread: RunSpread | None = None) -> list[Estimate | None]:
    """Return the mean of each row with its interval; None if a value is missing. `mean_intervals` explains the rest."""
    rows = np.array([significance.means(values), *mean_intervals(values, top, spread)]).T.tolist()
    return [None if np.isnan(value) else Estimate(value, *map(known_number, bounds)) for value, *bounds in rows]


def slice_figures(
    collection: RecordCollection, kind: str, measure: str = MEASURE
) -> Iterator[tuple[Slice, list[Estimate | None]]]:
    """Yield each slice of a kind with the score of every system; None for a system that lacks some of the queries."""
    known = collection.values(measure)
    values = {dataset: 100 * rows for dataset, (_, rows) in known.items()}
    single = single_runs(collection, measure)
    for each in slices(kind, slice_facts(collection, {dataset: ids for dataset, (ids, _) in known.items()})):
        yield each, with_intervals(each.cut(values), spread=run_spread(each.cut_runs(single)))


def slice_facts(collection: RecordCollection, queries: Mapping[str, Sequence[str]]) -> dict[str, SliceFacts]:
    """Return the facts about some queries of each dataset that define slices."""
    facts = {}
    for dataset, ids in queries.items():
        record = next(cell.record for system in collection.systems if (cell := collection.cell(system, dataset)))
        known = [record.queries.get(query, QueryFacts(words=0, positives=0)) for query in ids]
        facts[dataset] = SliceFacts(
            task=record.dataset.task,
            scenario=record.dataset.scenario,
            words=np.array([query.words for query in known]),
            positives=np.array([query.positives for query in known]),
            body_systems=tuple(query.body_system for query in known),
        )
    return facts


def known_number(number: float) -> float | None:
    """Return a number; None for NaN."""
    return None if np.isnan(number) else float(number)
