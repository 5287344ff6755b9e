"""Tables a person enjoys: systems down, datasets across, the best in bold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from r2med.cli.labels import labelled
from r2med.data.dataset_cards import cards, groups
from r2med.measure.groups import group_means
from r2med.results import Record
from r2med.results.batch import Cell, Results

Rows = Sequence[Sequence[Cell]]

FAILED = {
    "expand": ("query", "queries", "got no generated text, searched without one"),
    "rerank": ("call", "calls", "failed, the order left as it was"),
}


def run_report(results: Results, measure: str, out: Path, demo: bool) -> None:
    """Print what `r2med run` found: a row per system, a column per dataset, means, what it took, where records are."""
    cells = results.rows
    console = Console()
    console.print()
    console.print(Text(f"{measure} × 100", style="bold"), Text(_described(cells), style="dim"))
    names = [row[0].system for row in cells]
    values = [[cell.record.mean[measure] if cell.record else None for cell in row] for row in cells]
    heads = [_short(cell.dataset) for cell in cells[0]]
    means = [_means(row, measure) for row in cells]
    if len(heads) > 1:
        values = [[*line, mean.get("average")] for line, mean in zip(values, means, strict=True)]
        heads.append("Avg")
    names, told = labelled(names, heads, console.width)
    for line in told:
        console.print(Text(line))
    console.print(_table("system", heads, names, values))
    extra = list(dict.fromkeys(label for mean in means for label in mean if label != "average"))
    if extra:
        lines = [[mean.get(label) for label in extra] for mean in means]
        console.print()
        console.print(_table("average by task", extra, names, lines))
    if any(_has_cost(cell.record) for row in cells for cell in row if cell.record):
        console.print()
        console.print(_costs(cells, names))
    console.print()
    _closing(console, cells, out, demo)


def _table(corner: str, heads: Sequence[str], names: Sequence[str], values: Sequence[Sequence[float | None]]) -> Table:
    table = _plain(corner, heads)
    best = [max((value for value in column if value is not None), default=None) for column in zip(*values, strict=True)]
    for name, line in zip(names, values, strict=True):
        cells = [
            Text("–", style="dim")
            if value is None
            else Text(f"{100 * value:.2f}", style="bold" if value == top and len(values) > 1 else "")
            for value, top in zip(line, best, strict=True)
        ]
        table.add_row(Text(name), *cells)
    return table


def _plain(corner: str, heads: Sequence[str]) -> Table:
    table = Table(box=SIMPLE_HEAD, padding=0, pad_edge=False, show_edge=False)
    table.add_column(corner, overflow="fold")
    for head in heads:
        table.add_column(Text(head), justify="right")  # a name may look like markup
    return table


def _has_cost(record: Record) -> bool:
    return bool(record.cost.llm_tokens or record.cost.encoder_seconds or record.cost.dollars)


def _costs(cells: Rows, names: Sequence[str]) -> Table:
    """Return what each system took over all datasets: quality has its price, and it belongs beside it."""
    table = _plain("what it took", ["LLM tokens", "dollars", "encoder s", "s a query", "failed"])
    for name, row in zip(names, cells, strict=True):
        records = [cell.record for cell in row if cell.record]
        queries = sum(record.dataset.queries for record in records)
        seconds = sum(record.seconds_per_query * record.dataset.queries for record in records)
        values = [
            f"{sum(record.cost.llm_tokens for record in records):,}",
            _dollars(records),
            f"{sum(record.cost.encoder_seconds for record in records):.1f}",
            f"{seconds / queries:.3f}" if queries else "–",
            f"{sum(record.failures + record.unordered for record in records):,}",
        ]
        table.add_row(Text(name), *map(Text, values))
    return table


def _dollars(records: Sequence[Record]) -> str:
    """Return what a system cost; a question mark after it where an LLM's card does not say its price."""
    unknown = any(record.cost.unpriced for record in records)
    return f"{sum(record.cost.dollars for record in records):.2f}{'?' if unknown else ''}"


def _means(row: Sequence[Cell], measure: str) -> dict[str, float]:
    """Return the averages; none where a dataset is missing, since an average over others would look like one."""
    records = [cell.record for cell in row if cell.record]
    if len(records) < len(row):
        return {}
    names = [record.dataset.name for record in records]
    # Two folders may bear one name: each counts.
    keys = [name if names.count(name) == 1 else f"{name} #{place}" for place, name in enumerate(names)]
    values = {key: record.mean[measure] for key, record in zip(keys, records, strict=True)}
    known = {key: cards().get(name.split("/")[-1]) for key, name in zip(keys, names, strict=True)}
    means = group_means(values, known)
    if set(names) != set(groups()["R2MED"]):  # the average without Biology is a habit of the real benchmark
        means = {label: value for label, value in means.items() if not label.startswith("without ")}
    return means


def _closing(console: Console, cells: Rows, out: Path, demo: bool) -> None:
    every = [cell for row in cells for cell in row]
    records = [cell.record for cell in every if cell.record]
    for line in _failures(records):
        console.print(Text(line, style="yellow"), soft_wrap=True)
    for line in _errors(every):
        console.print(Text(line, style="red"), soft_wrap=True)
    reused = sum(cell.reused for cell in every)
    told = f", {reused} of them reused (--fresh redoes)" if reused else ""
    # Not wrapped: a path that is broken over two lines cannot be copied.
    line = f"{_count(len(records), 'record')} with per-query scores and runs in {out}/{told}."
    console.print(Text(line), soft_wrap=True)
    if demo:
        console.print(
            "The demo is small and written to show one thing: the words of a clinical question mislead, and a text "
            "that reasons first (here a hand-written one, no model's) finds the evidence. "
            "Its figures mean nothing beyond that."
        )
        console.print(Text("Next, the real benchmark (extra: hub): r2med run bm25 --data R2MED"))


def _failures(records: Sequence[Record]) -> list[str]:
    """Return a line for each stage that had failures, over all datasets; a stage that systems share counts once."""
    found: dict[tuple[str, str, str], tuple[int, str]] = {}
    for record in records:
        before = ""
        for stage in record.stages:
            before += f" {stage.name}"  # what a reranker saw depends on all before it
            if stage.failures:
                found[record.dataset.name, before, stage.name] = (stage.failures, stage.stage)
    totals: Counter[tuple[str, str]] = Counter()
    for (_, _, name), (failures, kind) in found.items():
        totals[name, kind] += failures
    return [
        f"{name}: {_count(failures, *FAILED[kind][:2])} {FAILED[kind][2]}." for (name, kind), failures in totals.items()
    ]


def _errors(cells: Sequence[Cell]) -> list[str]:
    """Return a line for each distinct error: a model that is not here is missing in many systems on many datasets."""
    by_error: dict[str, list[Cell]] = {}
    for cell in cells:
        if not cell.record:
            by_error.setdefault(cell.error, []).append(cell)
    lines = []
    for error, of in by_error.items():
        systems, datasets = list(dict.fromkeys(c.system for c in of)), list(dict.fromkeys(c.dataset for c in of))
        who = systems[0] if len(systems) == 1 else f"{len(systems)} systems, such as {systems[0]}"
        where = datasets[0] if len(datasets) == 1 else _count(len(datasets), "dataset")
        lines.append(f"not evaluated: {who}, on {where}: {error}")
    return lines


def _described(cells: Rows) -> str:
    complete = next((row for row in cells if all(cell.record for cell in row)), cells[0])
    records = [cell.record for cell in complete if cell.record]
    queries = sum(record.dataset.judged_queries for record in records)
    documents = sum(record.dataset.documents for record in records)
    sizes = _count(len(records), "dataset"), _count(queries, "query", "queries"), _count(documents, "document")
    return f"· {', '.join(sizes)}"


def _count(number: int, one: str, many: str = "") -> str:
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def _short(name: str) -> str:
    card = cards().get(name.split("/")[-1])
    return card.short if card and card.short else name.split("/")[-1]
