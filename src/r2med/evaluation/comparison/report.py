"""Write the report of a comparison for a paper: tables in three formats, and figures as SVG and PNG."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from r2med.data.dataset_cards import short_name
from r2med.evaluation.comparison import charts
from r2med.evaluation.comparison.answer_worth import worth_tables
from r2med.evaluation.comparison.budget_choice import CostName
from r2med.evaluation.comparison.comparing import ComparedRecords, compared_runs
from r2med.evaluation.comparison.comparison import Comparison, comparison
from r2med.evaluation.comparison.corrected_scores import estimates_table
from r2med.evaluation.comparison.cost_line import CostPoints, near_line
from r2med.evaluation.comparison.report_tables import pair_table, score_table
from r2med.evaluation.measure.slices import UNKNOWN_LABEL
from r2med.evaluation.records.answer_collection import AnswerCollection
from r2med.evaluation.records.query_costs import query_cost
from r2med.evaluation.records.stored_records import RecordCollection
from r2med.foundation.core.errors import UserError, unknown
from r2med.foundation.core.installation import install_extra
from r2med.foundation.core.notices import Setting
from r2med.foundation.core.spec import named_system
from r2med.foundation.pages.csv_text import table_csv
from r2med.foundation.pages.estimate import Estimate
from r2med.foundation.pages.latex import table_latex
from r2med.foundation.pages.markdown import table_markdown
from r2med.foundation.pages.page import Table
from r2med.foundation.store.files import write_atomically
from r2med.systems.system.families import families

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SHOWN = 40
"""Number of systems in a figure. It shows the best ones, and tables show all."""

NEEDS = {
    "cost-p95": "the cost of the systems is not known",
    "cost-dollars": "no system has a price above 0",
    "cost-tokens": "no system asks an LLM",
    "body-systems": "the queries have no body systems",
}
"""Figure -> the reason why it may be missing."""

WRITERS = {"md": table_markdown, "tex": table_latex, "csv": table_csv}
"""Suffix of a table's file -> function that writes the table."""


@dataclass(frozen=True)
class Report:
    """The files of a report, and notices about missing figures and left-out data."""

    files: tuple[Path, ...]
    """The files that were written."""
    notices: tuple[str, ...]
    """Remarks about missing figures and data, one sentence each."""


def write_report(records: ComparedRecords, out: Path, between: Sequence[str], resamples: int) -> Report:
    """Write the tables of a comparison and, with the extra `report`, its figures.

    `between` are the two systems of the figure on body systems. By default they are the baseline, or else the second
    best system, and the best system. A report about answers has tables of what retrieval is worth to them.
    """
    compared, collection, answers = records.comparison, records.collection, records.answers
    costs_are_known = answers is None or all(each.record.reader_costs for each in answers)
    tables = _tables(compared, answers)
    before, after = _between(compared, between)
    figures: dict[str, Callable[[], Figure]] = {
        **_score_figures(compared),
        **(_cost_figures(collection, compared) if costs_are_known and not compared.lower_is_better else {}),
        **_gain_figures(collection, before, after, compared, resamples),
    }
    content: dict[str, bytes] = {}
    for name, table in tables.items():
        content |= {f"{name}.{suffix}": write(table).encode() for suffix, write in WRITERS.items()}
    without_figures = [] if charts.can_draw() else [f"there are no figures: for these, {install_extra('report')}"]
    for name, draw in figures.items() if not without_figures else ():
        content |= {f"{name}.{suffix}": body for suffix, body in charts.rendered(draw).items()}
    notices = without_figures or list(_missing_figures(figures, compared, costs_are_known))
    if len(compared.systems) > SHOWN and not without_figures:
        notices.append(f"figures show the best {SHOWN} of {len(compared.systems)} systems; tables show all")
    return Report(tuple(_write(out, content)), tuple(notices))


def _tables(compared: Comparison, answers: AnswerCollection | None) -> dict[str, Table]:
    tables = {} if answers is None else {table.name: table for table in worth_tables(answers, compared.measure)}
    if compared.estimates is not None:
        tables["estimates"] = estimates_table(compared.estimates)
    return tables | {"table": score_table(compared), "pairs": pair_table(compared)}


def _missing_figures(figures: Collection[str], compared: Comparison, costs_are_known: bool) -> Iterator[str]:
    """Yield a remark for each figure that the records do not allow."""
    for name, why in NEEDS.items():
        if name in figures:
            continue
        if name.startswith("cost") and not costs_are_known:
            why = "a record holds the cost of all conditions together"
        elif compared.lower_is_better:
            why = f"with {compared.measure}, lower is better"
        yield f"no figure {name}: {why}"


def _write(folder: Path, content: Mapping[str, bytes]) -> Iterator[Path]:
    try:
        for name, body in content.items():
            write_atomically(folder / name, body)
            yield folder / name
    except OSError as error:
        raise UserError(
            f"cannot write the report to {folder} ({error.strerror}): choose another with ", Setting("compare", out=...)
        ) from None


def _between(compared: Comparison, names: Sequence[str]) -> tuple[str, str]:
    """Return the two systems that a figure compares: the one before a change and the one after it."""
    known = [standing.system for standing in compared.ranked]
    names = [named_system(name, known) for name in names]
    for name in names:
        if name not in known:
            raise unknown("system", name, known)
    others = [name for name in known if name != compared.baseline]
    return (names[0], names[1]) if names else (compared.baseline or others[1], others[0])


def _score_figures(compared: Comparison) -> dict[str, Callable[[], Figure]]:
    shown = compared.ranked[:SHOWN]
    means = {standing.system: standing.mean for standing in shown if standing.mean}
    values = np.array([[standing.datasets[name].value for name in compared.datasets] for standing in shown])
    heads = list(map(short_name, compared.datasets))
    return {
        "bars": partial(charts.bars, means, compared.measure, compared.baseline, compared.lower_is_better),
        "heat-map": partial(charts.heat_map, list(means), heads, values, compared.measure),
    }


COST_TITLES: Mapping[CostName, tuple[str, float]] = {
    "dollars": ("dollars for 1,000 queries", 1000),
    "tokens": ("LLM tokens a query", 1),
    "p95": ("p95 seconds a query", 1),
}
"""Cost of a query -> the title of its axis, and the factor of its values."""


def _cost_figures(collection: RecordCollection, compared: Comparison) -> dict[str, Callable[[], Figure]]:
    """Return the figures of quality against dollars, tokens and seconds, if these are known and not all 0."""
    shown = {standing.system: standing.mean for standing in compared.ranked[:SHOWN] if standing.mean}
    costs = {system: query_cost(compared_runs(collection, compared, system)) for system in shown}
    figures: dict[str, Callable[[], Figure]] = {}
    for name, (title, factor) in COST_TITLES.items():
        spent = {system: getattr(cost, name) for system, cost in costs.items()}
        placed = {s: (factor * spent[s], mean.value) for s, mean in shown.items() if spent[s] is not None}
        if any(amount for amount, _ in placed.values()):
            means = {system: shown[system] for system in placed}
            near = partial(near_line, placed, compared.against)
            figures[f"cost-{name}"] = partial(_cost_figure, placed, title, compared.measure, means, near)
    return figures


def _cost_figure(
    placed: CostPoints, title: str, measure: str, means: Mapping[str, Estimate], near: Callable[[], Collection[str]]
) -> Figure:
    return charts.quality_cost(placed, title, measure, means, families(placed), near())


def _gain_figures(
    collection: RecordCollection, before: str, after: str, whole: Comparison, resamples: int
) -> dict[str, Callable[[], Figure]]:
    """Return the figure of two systems: the gain on each body system."""
    if whole.lower_is_better:
        return {}
    pair = RecordCollection({key: kept for key, kept in collection.cells.items() if key[0] in (before, after)})
    compared = comparison(pair, whole.measure, before, ["body-system"], resamples, data=whole.datasets)
    rows = [(f"{each.label} ({each.queries:,})", each) for each in compared.slices if each.label != UNKNOWN_LABEL]
    if not rows:
        return {}
    rows.sort(key=lambda row: -row[1].difference)
    title = f"Gain by body system, {whole.measure} × 100"
    return {"body-systems": partial(charts.gains, rows, title, before, after)}
