"""Results of an evaluation: a row for each system with its record on each dataset, and the reasons for missing ones."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from r2med.data.dataset_cards import BENCHMARK, cards, groups, home_group, short_name
from r2med.data.overlays import overlay_files
from r2med.evaluation.comparison.comparison import Comparison, comparison
from r2med.evaluation.measure.measures import AVERAGE, HEADLINE_MEASURE, recorded_measure
from r2med.evaluation.records.collection import checked
from r2med.evaluation.records.record import Record
from r2med.evaluation.records.stored_records import StoredRecord
from r2med.evaluation.records.used_labels import published_name
from r2med.foundation.core.cost import Cost, total
from r2med.foundation.core.errors import UserError, unknown
from r2med.foundation.pages.cells import Column, Marked, Value, shown_dollars
from r2med.foundation.pages.page import Table
from r2med.foundation.text.plurals import counted

if TYPE_CHECKING:
    import pandas

MEASURE = str(HEADLINE_MEASURE)
UNKNOWN, ONE_RUN, DETERMINISTIC = "unknown", "one run", "deterministic"
_COMMIT = re.compile(r"\b[0-9a-f]{40}\b")


@dataclass(frozen=True)
class SystemResults:
    """One system on each dataset of an evaluation: a row of its table."""

    system: str
    """The name in tables."""
    cells: tuple[StoredRecord | None, ...]
    """The record on each dataset, with the records of later repeats. None for a dataset without a record."""
    errors: tuple[str, ...]
    """For each dataset why it was not evaluated, or not in all repeats; empty if it was."""

    @property
    def stored(self) -> list[StoredRecord]:
        """The record on each dataset that has one."""
        return [cell for cell in self.cells if cell]

    @property
    def records(self) -> list[Record]:
        """The records of all repeats on all datasets."""
        return [stored.record for cell in self.stored for stored in cell.repeats]

    def scores(self, measure: str = MEASURE) -> list[float | None]:
        """Return the mean score over the repeats on each dataset. None for a dataset without a record."""
        return [cell.means.get(measure) if cell else None for cell in self.cells]

    @property
    def cost(self) -> Cost:
        """The cost of one run on all datasets."""
        return total(cell.cost for cell in self.stored)

    @property
    def tokens(self) -> int | None:
        """The number of LLM tokens of one run on all datasets; None if the cost of a record is not known."""
        return self.cost.llm_tokens if all(cell.record.cost_is_known for cell in self.stored) else None

    @property
    def seconds_per_query(self) -> float | None:
        """The mean seconds of a query on the slowest dataset; None if they are not known on each dataset."""
        seconds = [cell.seconds_per_query for cell in self.stored]
        known = [value for value in seconds if value is not None]
        return max(known) if known and len(known) == len(seconds) else None

    @property
    def shown_dollars(self) -> float | str:
        """The known dollars. They are a lower bound if some calls have no price."""
        cost = self.cost
        if not cost.unpriced:
            return cost.dollars
        return f"≥ {shown_dollars(cost.dollars)}" if cost.dollars else UNKNOWN

    @property
    def shown_seconds(self) -> float | str | None:
        """The seconds per query; `unknown` if there are records but the seconds are not known."""
        seconds = self.seconds_per_query
        return UNKNOWN if seconds is None and self.stored else seconds

    @property
    def shown_runs(self) -> str:
        """How often the system was run, in words. It differs between datasets only after an error."""
        if not any(record.varies for record in self.records):
            return DETERMINISTIC if self.stored else ""
        counts = {len(cell.repeats) if cell else 0 for cell in self.cells}
        return ONE_RUN if counts == {1} else f"{min(counts)} to {max(counts)}" if len(counts) > 1 else str(*counts)


@dataclass(frozen=True, repr=False)
class Results:
    """A table of records with a row for each system and a column for each dataset."""

    datasets: tuple[str, ...]
    """The name of the dataset in each column."""
    rows: tuple[SystemResults, ...]
    """A row for each system."""
    measure: str = MEASURE
    """The measure of tables, orders and comparisons, unless another one is named."""
    repeats: int = 1
    """Number of runs of a system that varies, as asked for."""

    @property
    def records(self) -> list[Record]:
        """All records, row by row, with all repeats."""
        return [record for row in self.rows for record in row.records]

    @property
    def reused(self) -> int:
        """Number of records that existed already."""
        return sum(stored.reused for row in self.rows for cell in row.stored for stored in cell.repeats)

    @property
    def systems(self) -> list[str]:
        """The name of the system in each row."""
        return [row.system for row in self.rows]

    @property
    def errors(self) -> dict[str, list[tuple[str, str]]]:
        """Each distinct error with the systems and datasets that have it. The text is that of the first of them.

        Errors that differ only in the name of the dataset and in commits are one: the hub fails once, not eight times.
        """
        by_reason: dict[str, tuple[str, list[tuple[str, str]]]] = {}
        for row in self.rows:
            for dataset, error in zip(self.datasets, row.errors, strict=True):
                if error:
                    reason = _COMMIT.sub("", error.replace(dataset.split("/")[-1], ""))
                    by_reason.setdefault(reason, (error, []))[1].append((row.system, dataset))
        return dict(by_reason.values())

    @property
    def complete(self) -> bool:
        """True if no record is missing, no budget ran out, and no stage failed for all queries."""
        return not self.errors and not any(_gave_up(record) for record in self.records)

    @property
    def averages(self) -> dict[str, list[int]]:
        """The label of each average over datasets, with the numbers of their columns.

        Datasets of one group have one average. Of several groups, each has an average under its name, and there is
        none over all of them.
        """
        by_group = self.columns_by_group
        return by_group if len(by_group) > 1 else {AVERAGE: list(range(len(self.datasets)))}

    @property
    def columns_by_group(self) -> dict[str, list[int]]:
        """The name of each group of datasets, with the numbers of their columns."""
        columns: dict[str, list[int]] = {}
        for number, dataset in enumerate(self.datasets):
            stored = next(filter(None, (row.cells[number] for row in self.rows)), None)
            published = published_name(stored.record.dataset) if stored else overlay_files(dataset)[0]
            columns.setdefault(home_group(published), []).append(number)
        return columns

    def best(self, measure: str | None = None) -> str:
        """Return the system with the best average.

        Raises UserError if no system has a record on every dataset, or if the datasets belong to several groups.
        """
        if AVERAGE not in (labels := self.averages):
            raise UserError(
                f"the datasets belong to {len(labels)} groups, which are not averaged together "
                f"({', '.join(labels)}): run one group, or sort by a dataset"
            )
        best = self.sorted("score", measure).rows[0]
        if None in best.scores(measure or self.measure):
            raise UserError("no system has a record on every dataset: see results.errors")
        return best.system

    def compare(self, baseline: str = "", measure: str | None = None) -> Comparison:
        """Test the differences between the systems for significance. Without a baseline, compare every pair."""
        records = checked(stored for row in self.rows for stored in row.stored)
        return comparison(records, recorded_measure(measure or self.measure), baseline)

    def sorted(self, by: str = "score", measure: str | None = None) -> Results:
        """Return the rows sorted by `score` or a dataset (best first), by a cost (lowest first), or by `name`.

        Rows without a value come last. Raises UserError if there is no such column.
        """
        check_order(by, self.datasets)
        values = self._sort_values(by, recorded_measure(measure or self.measure))
        order = sorted(range(len(self.rows)), key=lambda number: (values[number] is None, values[number]))
        return replace(self, rows=tuple(self.rows[number] for number in order))

    def _sort_values(self, by: str, measure: str) -> list[Any]:
        """Return for each row the value that it is sorted by. The smallest comes first."""
        if by not in (*self.datasets, "score"):
            return [_COSTS[by](row) for row in self.rows]
        scores = [row.scores(measure) for row in self.rows]
        if by in self.datasets:
            values = [row[self.datasets.index(by)] for row in scores]
        else:
            values = [average(row, self.averages.get(AVERAGE, ())) for row in scores]
        return [None if value is None else -value for value in values]

    def table(self, measure: str | None = None, sort: str = "") -> Table:
        """Return a table of scores × 100 with seconds per query and dollars, for printing or a notebook."""
        name = recorded_measure(measure or self.measure)
        results = replace(self.sorted(sort, name) if sort else self, measure=name)
        scores = score_table(results)
        rows = [
            [*cells, row.shown_seconds, row.shown_dollars] for cells, row in zip(scores.rows, results.rows, strict=True)
        ]
        costs = (Column("s / query", "seconds"), Column("dollars", "dollars"))
        return Table((*scores.columns, *costs), rows, f"{name} × 100")

    def summaries(self) -> list[dict[str, Any]]:
        """Return for each system and dataset the means and the cost, or the error, ready for JSON."""
        return [
            _summary(cell) if cell else {"system": row.system, "dataset": dataset, "error": error}
            for row in self.rows
            for dataset, cell, error in zip(self.datasets, row.cells, row.errors, strict=True)
        ]

    def to_pandas(self) -> pandas.DataFrame:
        """Return a DataFrame with one row per system and dataset, and columns for measures and costs."""
        try:
            import pandas
        except ImportError:
            raise UserError("to_pandas needs pandas: pip install pandas (results.table() needs nothing)") from None
        return pandas.DataFrame([summary | summary.pop("mean", {}) for summary in self.summaries()])

    def __repr__(self) -> str:
        failed = sum(map(len, self.errors.values()))
        why = f", {failed} failed: .errors says why" if failed else ""
        size = f"{counted(len(self.rows), 'system')} × {counted(len(self.datasets), 'dataset')}"
        return f"Results({size}, {counted(len(self.records), 'record')}{why})"

    def _repr_html_(self) -> str:
        return self.table()._repr_html_()


_COSTS: Mapping[str, Callable[[SystemResults], Any]] = {
    "seconds": lambda row: row.seconds_per_query,
    "dollars": lambda row: None if row.cost.unpriced else row.cost.dollars,
    "tokens": lambda row: row.tokens,
    "name": lambda row: row.system,
}
"""Name of an order -> what rows are sorted by. They can also be sorted by score or by a dataset."""


def check_order(by: str, datasets: Sequence[str]) -> None:
    """Raise UserError if rows cannot be sorted by this name. It is called before the evaluation starts."""
    orders = ("score", *_COSTS)
    if by not in (*orders, *datasets):
        raise unknown("order", by, [*orders, *datasets])


def _summary(stored: StoredRecord) -> dict[str, Any]:
    """Return the means and the cost of a system on a dataset. Unknown values are None."""
    record, cost = stored.record, stored.cost
    records = [repeat.record for repeat in stored.repeats]
    return {
        "system": record.display_name,
        "dataset": record.dataset.name,
        "key": record.key,
        "mean": stored.means,
        "runs": len(records),
        "varies": record.varies,
        "failures": sum(repeat.failures + repeat.unordered for repeat in records),
        "unranked": sum(repeat.unranked for repeat in records),
        "llm_tokens": cost.llm_tokens if record.cost_is_known else None,
        "cost_usd": cost.dollars if not cost.unpriced else None,
        "encoder_seconds": cost.encoder_seconds,
        "seconds_per_query": stored.seconds_per_query,
    }


def _gave_up(record: Record) -> bool:
    """Return True if the budget ran out, or if a stage failed for all queries."""
    return any(
        "budget" in stage.failure_kinds or stage.failures >= stage.attempts(record.dataset.queries)
        for stage in record.stages
    )


def average(scores: Sequence[float | None], columns: Sequence[int]) -> float | None:
    """Return the unweighted mean over some columns of a row.

    None if any score of the row is missing: systems are compared on the same datasets.
    """
    if not columns or None in scores:
        return None
    return sum(scores[column] or 0.0 for column in columns) / len(columns)


def averages_by_task(results: Results) -> dict[str, list[int]]:
    """Return task -> the columns of its datasets, for those of the benchmark or of its demo.

    A table of the whole benchmark also has an average without the datasets that the paper leaves out.
    """
    for columns in results.columns_by_group.values():
        cards_of = {column: cards().get(results.datasets[column].removeprefix("demo/")) for column in columns}
        described = {column: card for column, card in cards_of.items() if card is not None}
        if not any(BENCHMARK in card.groups for card in described.values()):
            continue
        by_task: dict[str, list[int]] = {}
        for column, card in described.items():
            by_task.setdefault(card.task, []).append(column)
        averages = by_task if len(by_task) > 1 else {}
        if set(results.datasets) == set(groups()[BENCHMARK]):
            apart = [card.name for card in described.values() if card.also_averaged_without]
            averages[f"without {', '.join(apart)}"] = [
                column for column, card in described.items() if card.name not in apart
            ]
        return averages
    return {}


def score_table(results: Results) -> Table:
    """Return the score of each system on each dataset, and the averages. The best of each column is bold."""
    averages = results.averages if len(results.datasets) > 1 else {}
    heads = [short_name(name) for name in results.datasets]
    heads += ["Avg" if label == AVERAGE else f"Avg {label}" for label in averages]
    scores = {}
    for row in results.rows:
        of_datasets = row.scores(results.measure)
        scores[row.system] = [*of_datasets, *(average(of_datasets, columns) for columns in averages.values())]
    table = points_table("system", heads, scores)
    if results.repeats == 1 and not any(record.varies for record in results.records):
        return table
    with_runs = [[*cells, row.shown_runs] for cells, row in zip(table.rows, results.rows, strict=True)]
    return Table([*table.columns, Column("runs")], with_runs)


def points_table(corner: str, heads: Sequence[str], scores: Mapping[str, Sequence[float | None]]) -> Table:
    """Return a table of scores × 100, of system -> its scores. The best score of each column is bold."""
    columns = zip(*scores.values(), strict=True)
    best = [max((score for score in column if score is not None), default=None) for column in columns]
    rows: list[list[Value | Marked]] = []
    for system, row in scores.items():
        is_best = [score == top and len(scores) > 1 for score, top in zip(row, best, strict=True)]
        rows.append([system, *(Marked(points(score), bold) for score, bold in zip(row, is_best, strict=True))])
    return Table([Column(corner), *(Column(head, "score") for head in heads)], rows)


def points(score: float | None) -> float | None:
    """Return a score in points, the score × 100."""
    return None if score is None else 100 * score
