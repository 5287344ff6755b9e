"""Results: one record for each system and dataset of an evaluation, with tables, averages and errors."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

from r2med.data.dataset_cards import BENCHMARK, cards, groups, home_group
from r2med.data.overlays import overlay_files
from r2med.evaluation.comparison.comparison import Comparison, comparison
from r2med.evaluation.measure.measures import AVERAGE, HEADLINE_MEASURE, recorded_measure
from r2med.evaluation.records.collection import checked
from r2med.evaluation.records.record import Record
from r2med.evaluation.records.stored_records import StoredRecord
from r2med.evaluation.records.used_labels import published_name
from r2med.foundation.core.cost import Cost, total
from r2med.foundation.core.errors import UserError, unknown
from r2med.foundation.pages.cells import Column, Value, shown_dollars
from r2med.foundation.pages.page import Table
from r2med.foundation.text.plurals import counted

if TYPE_CHECKING:
    import pandas

MEASURE = str(HEADLINE_MEASURE)
UNKNOWN, ONE_RUN, DETERMINISTIC = "unknown", "one run", "deterministic"


@dataclass(frozen=True)
class Cell:
    """One system on one dataset: the records of its repeats, and the error that prevented one."""

    system: str
    dataset: str
    records: tuple[Record, ...] = ()
    """The record of each repeat, in order. A system that does not vary has one."""
    reused: int = 0
    """Number of records that existed already."""
    error: str = ""

    @property
    def record(self) -> Record | None:
        """The record of the first repeat; None if there is none."""
        return self.records[0] if self.records else None

    @property
    def means(self) -> dict[str, float]:
        """Measure -> mean over the repeats."""
        if len(self.records) < 2:
            return dict(self.records[0].mean) if self.records else {}
        return {name: fmean(record.mean[name] for record in self.records) for name in self.records[0].mean}

    @property
    def cost(self) -> Cost:
        """The cost of one run: the mean over the repeats."""
        costs = total(record.cost for record in self.records)
        return costs if len(self.records) < 2 else costs.times(1 / len(self.records))

    @property
    def seconds_per_query(self) -> float | None:
        """The mean seconds of a query: the mean over the repeats, if known."""
        seconds = [record.seconds_per_query for record in self.records]
        known = [value for value in seconds if value is not None]
        return fmean(known) if known and len(known) == len(seconds) else None

    @property
    def reason(self) -> str:
        """The error without the dataset's name and commits, so that one failure of the hub is one reason, not eight."""
        return re.sub(r"\b[0-9a-f]{40}\b", "", self.error.replace(self.dataset.split("/")[-1], ""))

    def summary(self) -> dict[str, Any]:
        """Return the means and the cost, ready for JSON. Unknown values are None."""
        record = self.record
        if record is None:
            return {"system": self.system, "dataset": self.dataset, "error": self.error}
        cost = self.cost
        return {
            "system": record.display_name,
            "dataset": record.dataset.name,
            "key": record.key,
            "mean": self.means,
            "runs": len(self.records),
            "varies": record.varies,
            "failures": sum(each.failures + each.unordered for each in self.records),
            "unranked": sum(each.unranked for each in self.records),
            "llm_tokens": cost.llm_tokens if record.cost_is_known else None,
            "cost_usd": cost.dollars if not cost.unpriced else None,
            "encoder_seconds": cost.encoder_seconds,
            "seconds_per_query": self.seconds_per_query,
        }


Row = Sequence[Cell]


@dataclass(frozen=True, repr=False)
class Results:
    """A table of cells with one row per system and one column per dataset."""

    rows: tuple[tuple[Cell, ...], ...]
    """A row for each system, with a cell for each dataset."""
    measure: str = MEASURE
    """The measure of tables, orders and comparisons, unless another one is named."""
    repeats: int = 1
    """Number of runs of a system that varies, as asked for."""

    def __iter__(self) -> Iterator[Cell]:
        return (cell for row in self.rows for cell in row)

    @property
    def records(self) -> list[Record]:
        """All records, row by row, with all repeats."""
        return [record for cell in self for record in cell.records]

    @property
    def systems(self) -> list[str]:
        """The name of the system in each row."""
        return [row[0].system for row in self.rows]

    @property
    def datasets(self) -> list[str]:
        """The name of the dataset in each column."""
        return [cell.dataset for cell in self.rows[0]] if self.rows else []

    @property
    def averages(self) -> list[str]:
        """The labels of the averages: one for datasets of one group, none for a single dataset, else each group."""
        homes = list(dict.fromkeys(home_group(_published(column)) for column in zip(*self.rows, strict=True)))
        if len(homes) > 1:
            return homes
        return [AVERAGE] if len(self.datasets) > 1 else []

    @property
    def errors(self) -> dict[str, list[Cell]]:
        """Each distinct error with its cells. The text is that of the first dataset with this error."""
        errors: dict[str, list[Cell]] = {}
        for cell in self:
            if cell.error:
                errors.setdefault(cell.reason, []).append(cell)
        return {cells[0].error: cells for cells in errors.values()}

    @property
    def complete(self) -> bool:
        """True if every cell has a record, no budget ran out, and no stage failed for all queries."""
        return not self.errors and not any(_gave_up(record) for record in self.records)

    def showing(self, measure: str) -> Results:
        """Return the same results with another measure of tables, orders and comparisons."""
        return replace(self, measure=recorded_measure(measure))

    def best(self, measure: str | None = None) -> str:
        """Return the system with the best average.

        Raises UserError if no system has a record on every dataset, or if the datasets belong to several groups.
        """
        if AVERAGE not in (labels := self.averages) and len(self.datasets) > 1:
            raise UserError(
                f"the datasets belong to {len(labels)} groups, which are not averaged together "
                f"({', '.join(labels)}): run one group, or sort by a dataset"
            )
        measure = measure or self.measure
        averages = {row[0].system: means[AVERAGE] for row in self.rows if (means := row_means(row, measure))}
        if not averages:
            raise UserError("no system has a record on every dataset: see results.errors")
        return max(averages, key=lambda system: averages[system])

    def compare(self, baseline: str = "", measure: str | None = None) -> Comparison:
        """Test the differences between the systems for significance. Without a baseline, compare every pair."""
        kept = (StoredRecord(record, Path(_where(record))) for record in self.records)
        return comparison(checked(kept), recorded_measure(measure or self.measure), baseline)

    def sorted(self, by: str = "score", measure: str | None = None) -> Results:
        """Return the rows sorted by `score` or a dataset (best first), by a cost (lowest first), or by `name`.

        Rows without a value come last. Raises UserError if there is no such column.
        """
        check_order(by, self.datasets)
        figure = self._figure(by, recorded_measure(measure or self.measure))
        figures = [figure(row) for row in self.rows]
        order = sorted(range(len(self.rows)), key=lambda number: (figures[number] is None, figures[number]))
        return replace(self, rows=tuple(self.rows[number] for number in order))

    def _figure(self, by: str, measure: str) -> Callable[[Row], Any]:
        """Return the sort key of rows. The smallest comes first."""
        if by in self.datasets:
            column = self.datasets.index(by)
            return lambda row: _negative(row[column].means.get(measure))
        return lambda row: _ORDERS[by](row, measure)

    def table(self, measure: str | None = None, sort: str = "") -> Table:
        """Return a table of scores × 100 with seconds per query and dollars, for printing or a notebook."""
        name = recorded_measure(measure or self.measure)
        results = self.sorted(sort, name) if sort else self
        averaged = self.averages
        rows: list[list[Value]] = []
        for row in results.rows:
            scores = [cell.means.get(name) for cell in row]
            scores += [row_means(row, name).get(label) for label in averaged]
            took = (seconds_cell(row), dollars_cell(row_cost(row)))
            runs = [runs_cell(row)] if self.shows_runs else []
            rows.append([row[0].system, *map(points_cell, scores), *runs, *took])
        scored = [Column(head, "score") for head in (*self.datasets, *averaged)]
        costs = (Column("s / query", "seconds"), Column("dollars", "dollars"))
        runs_head = [Column("runs")] if self.shows_runs else []
        return Table((Column("system"), *scored, *runs_head, *costs), rows, f"{name} × 100")

    @property
    def shows_runs(self) -> bool:
        """True if tables say how often each system was run: repeats were asked for, or a system varies."""
        return self.repeats > 1 or any(record.varies for record in self.records)

    def to_pandas(self) -> pandas.DataFrame:
        """Return a DataFrame with one row per system and dataset, and columns for measures and costs."""
        try:
            import pandas
        except ImportError:
            raise UserError("to_pandas needs pandas: pip install pandas (results.table() needs nothing)") from None
        rows = [dict(cell.summary()) for cell in self]
        return pandas.DataFrame([row | row.pop("mean", {}) for row in rows])

    def __repr__(self) -> str:
        failed = sum(map(len, self.errors.values()))
        why = f", {failed} failed: .errors says why" if failed else ""
        cells = f"{counted(len(self.rows), 'system')} × {counted(len(self.datasets), 'dataset')}"
        return f"Results({cells}, {counted(len(self.records), 'record')}{why})"

    def _repr_html_(self) -> str:
        return self.table()._repr_html_()


def check_order(by: str, datasets: Sequence[str]) -> None:
    """Raise UserError if rows cannot be sorted by this name. It is called before the evaluation starts."""
    if by not in (*_ORDERS, *datasets):
        raise unknown("order", by, [*_ORDERS, *datasets])


def _published(column: Sequence[Cell]) -> str:
    """Return the name of the dataset of a column, without overlays."""
    record = next((cell.record for cell in column if cell.record), None)
    return published_name(record.dataset) if record else overlay_files(column[0].dataset)[0]


def row_means(row: Row, measure: str) -> dict[str, float]:
    """Return label -> unweighted mean over datasets; empty if a value is missing, as it could not be compared.

    The mean of one group of datasets has the label `AVERAGE`. Of several groups, each has a mean under its name, and
    there is none over all of them. The datasets of the benchmark, or of its demo, are also averaged by task.
    """
    scored = [(cell.record, cell.means[measure]) for cell in row if cell.record and measure in cell.means]
    if not scored or len(scored) < len(row):
        return {}
    by_group: dict[str, list[tuple[str, float]]] = {}
    for record, value in scored:
        by_group.setdefault(home_group(published_name(record.dataset)), []).append((record.dataset.name, value))
    means = {
        AVERAGE if len(by_group) == 1 else group: _mean(value for _, value in members)
        for group, members in by_group.items()
    }
    by_task = (_benchmark_means(members, alone=len(by_group) == 1) for members in by_group.values())
    return means | next(filter(None, by_task), {})


def _benchmark_means(members: Sequence[tuple[str, float]], alone: bool) -> dict[str, float]:
    """Return the means by task of (dataset, value); and without Biology, if the row is the whole benchmark alone."""
    known = [(card, value) for name, value in members if (card := cards().get(name.removeprefix("demo/"))) is not None]
    if not any(BENCHMARK in card.groups for card, _ in known):
        return {}
    tasks = list(dict.fromkeys(card.task for card, _ in known if card.task))
    means = {task: _mean(value for card, value in known if card.task == task) for task in tasks if len(tasks) > 1}
    if alone and {name for name, _ in members} == set(groups()[BENCHMARK]):
        apart = [card.name for card, _ in known if card.also_averaged_without]
        means[f"without {', '.join(apart)}"] = _mean(value for card, value in known if card.name not in apart)
    return means


def _mean(values: Iterable[float]) -> float:
    numbers = list(values)
    return sum(numbers) / len(numbers)


def row_seconds(row: Row) -> float | None:
    """Return the mean seconds of a query on the slowest dataset.

    None if there is no record, or if the cost of a record is not known.
    """
    seconds = [cell.seconds_per_query for cell in row if cell.record]
    known = [value for value in seconds if value is not None]
    return max(known) if known and len(known) == len(seconds) else None


def row_tokens(row: Row) -> int | None:
    """Return the number of LLM tokens on all datasets; None if the cost of a record is not known."""
    return row_cost(row).llm_tokens if all(cell.record.cost_is_known for cell in row if cell.record) else None


def row_cost(row: Row) -> Cost:
    """Return the cost of one run of a system on all datasets."""
    return total(cell.cost for cell in row)


_ORDERS: Mapping[str, Callable[[Row, str], Any]] = {
    "score": lambda row, measure: _negative(row_means(row, measure).get(AVERAGE)),
    "seconds": lambda row, measure: row_seconds(row),
    "dollars": lambda row, measure: None if (cost := row_cost(row)).unpriced else cost.dollars,
    "tokens": lambda row, measure: row_tokens(row),
    "name": lambda row, measure: row[0].system,
}
"""Name of an order -> sort key of a row. The smallest comes first. Rows can also be sorted by a dataset."""


def _negative(score: float | None) -> float | None:
    """Return a sort key: the smallest is the best score."""
    return None if score is None else -score


def points_cell(score: float | None) -> float | None:
    """Return a score in points, the score × 100."""
    return None if score is None else 100 * score


def runs_cell(row: Row) -> str:
    """Return how often a system was run, in words. It differs between datasets only after an error."""
    if not any(record.varies for cell in row for record in cell.records):
        return DETERMINISTIC if any(cell.record for cell in row) else ""
    counts = {len(cell.records) for cell in row}
    return ONE_RUN if counts == {1} else f"{min(counts)} to {max(counts)}" if len(counts) > 1 else str(*counts)


def seconds_cell(row: Row) -> float | str | None:
    """Return the seconds per query of a row; `unknown` if the row has records but the seconds are not known."""
    value = row_seconds(row)
    return UNKNOWN if value is None and any(cell.record for cell in row) else value


def dollars_cell(cost: Cost) -> float | str:
    """Return the known dollars. They are a lower bound if some calls have no price."""
    if not cost.unpriced:
        return cost.dollars
    return f"≥ {shown_dollars(cost.dollars)}" if cost.dollars else UNKNOWN


def _where(record: Record) -> str:
    """Return what a record is about, for messages."""
    return f"{record.display_name} on {record.dataset.name}" + (f", repeat {record.repeat}" if record.repeat else "")


def _gave_up(record: Record) -> bool:
    return any(
        "budget" in stage.failure_kinds or stage.failures >= stage.attempts(record.dataset.queries)
        for stage in record.stages
    )
