"""Show accuracy as a range where answers are undecided: from all of them wrong to all of them right."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from r2med.evaluation.comparison.comparison import Comparison
from r2med.evaluation.comparison.standings import single_runs, with_intervals
from r2med.evaluation.measure.run_variance import RunSpread, run_spread
from r2med.evaluation.measure.scores import Floats
from r2med.evaluation.measure.significance import Values
from r2med.evaluation.records.answer_collection import MAIN_MEASURE, UNDECIDED
from r2med.evaluation.records.stored_records import RecordCollection
from r2med.foundation.core.notices import Command, Notice
from r2med.foundation.pages.estimate import Estimate

UNDECIDED_NOTE = Notice(
    "Where answers are undecided, accuracy is a range: from all of them wrong to all of them right. Its "
    "interval reaches from the lower bound of the one to the upper bound of the other. A judge decides: ",
    Command("answer", judge="LLM"),
    ".",
)


def with_ranges(
    values: Values, undecided: Values, top: float = 100.0, spread: RunSpread | None = None
) -> list[Estimate | None]:
    """Return the mean of each row as a range. `undecided` has the value that each undecided answer could add."""
    lower = with_intervals(values, top, spread)
    upper = with_intervals({dataset: rows + undecided[dataset] for dataset, rows in values.items()}, top, spread)
    return [
        replace(low, high=high.high, most=high.value) if low and high and high.value > low.value else low
        for low, high in zip(lower, upper, strict=True)
    ]


def accuracies(rows: Sequence[Mapping[str, float]]) -> tuple[list[float], list[float]]:
    """Return the accuracy of each question that has one, and what its undecided answer could add."""
    known = [row for row in rows if MAIN_MEASURE in row]
    return [row[MAIN_MEASURE] for row in known], [row.get(UNDECIDED, 0.0) for row in known]


def ranged(compared: Comparison, collection: RecordCollection) -> Comparison:
    """Return a comparison of accuracy whose scores are ranges. Its tests are those of the lower ends."""
    undecided = {
        dataset: 100 * np.array([_undecided(collection, each.system, dataset, ids) for each in compared.systems])
        for dataset, ids in compared.queries.items()
    }
    if not any(rows.any() for rows in undecided.values()):
        return compared
    order = np.array([collection.systems.index(each.system) for each in compared.systems])
    single = single_runs(collection, MAIN_MEASURE, list(compared.queries))
    known = collection.values(MAIN_MEASURE)
    values = {dataset: 100 * known[dataset][1][order] for dataset in compared.queries}
    by_dataset = {
        name: with_ranges({name: rows}, {name: undecided[name]}, spread=run_spread(single.on(name)).of(order))
        for name, rows in values.items()
    }
    overall = with_ranges(values, undecided, spread=run_spread(single).of(order))
    standings = tuple(
        replace(
            each,
            mean=overall[number],
            datasets={name: mean for name, column in by_dataset.items() if (mean := column[number])},
        )
        for number, each in enumerate(compared.systems)
    )
    notice = "accuracy is a range where answers are undecided, and systems are ranked and tested by its lower end"
    return replace(compared, systems=standings, notices=(*compared.notices, notice))


def _undecided(collection: RecordCollection, system: str, dataset: str, ids: Sequence[str]) -> Floats:
    """Return what the undecided answers of each query could add, as a mean over repeats."""
    repeats = [each.record.per_query for each in collection.repeats(system, dataset)]
    rows = [[values[query].get(UNDECIDED, 0.0) for query in ids] for values in repeats]
    return np.mean(rows, axis=0) if rows else np.zeros(len(ids))
