"""Tables a person enjoys: systems down, datasets across, the best in bold."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from r2med.data.cards import cards, groups
from r2med.measure.groups import group_means
from r2med.results import Record


def run_report(records: Sequence[Sequence[Record]], measure: str, out: Path, reused: int, demo: bool) -> None:
    """Print what `r2med run` found: a row per system, a column per dataset, means, and where the records are."""
    console = Console()
    datasets = [record.dataset.name for record in records[0]]
    means = [_means(row, measure) for row in records]
    console.print()
    console.print(Text(f"{measure} × 100", style="bold"), Text(_described(records), style="dim"))
    values = [[record.mean[measure] for record in row] for row in records]
    heads = [_short(name) for name in datasets]
    if len(datasets) > 1:
        values = [[*line, mean["average"]] for line, mean in zip(values, means, strict=True)]
        heads.append("Avg")
    console.print(_table("system", heads, [row[0].system for row in records], values))
    extra = [label for label in means[0] if label != "average"]
    if extra:
        lines = [[mean[label] for label in extra] for mean in means]
        console.print()
        console.print(_table("average by task", extra, [row[0].system for row in records], lines))
    console.print()
    _closing(console, records, out, reused, demo)


def _table(corner: str, heads: Sequence[str], names: Sequence[str], values: Sequence[Sequence[float]]) -> Table:
    table = Table(box=SIMPLE_HEAD, padding=0, pad_edge=False, show_edge=False)
    table.add_column(corner, overflow="fold")
    for head in heads:
        table.add_column(Text(head), justify="right")  # a name may look like markup
    best = [max(column) for column in zip(*values, strict=True)]
    for name, line in zip(names, values, strict=True):
        cells = [
            Text(f"{100 * value:.2f}", style="bold" if value == top and len(values) > 1 else "")
            for value, top in zip(line, best, strict=True)
        ]
        table.add_row(Text(name), *cells)
    return table


def _means(row: Sequence[Record], measure: str) -> dict[str, float]:
    names = [record.dataset.name for record in row]
    # Two folders may bear one name: each counts.
    keys = [name if names.count(name) == 1 else f"{name} #{place}" for place, name in enumerate(names)]
    values = {key: record.mean[measure] for key, record in zip(keys, row, strict=True)}
    known = {key: cards().get(name.split("/")[-1]) for key, name in zip(keys, names, strict=True)}
    means = group_means(values, known)
    if set(names) != set(groups()["R2MED"]):  # the average without Biology is a habit of the real benchmark
        means = {label: value for label, value in means.items() if not label.startswith("without ")}
    return means


def _closing(console: Console, records: Sequence[Sequence[Record]], out: Path, reused: int, demo: bool) -> None:
    total = sum(map(len, records))
    failures = sum(record.failures for row in records for record in row)
    if failures:
        console.print(f"{failures} queries had no generated text and were searched as they are.", style="yellow")
    told = f", {reused} of them reused (--fresh redoes)" if reused else ""
    # Not wrapped: a path that is broken over two lines cannot be copied.
    line = f"{_count(total, 'record')} with per-query scores and runs in {out}/{told}."
    console.print(Text(line), soft_wrap=True)
    if demo:
        console.print(
            "The demo is small and written to show one thing: the words of a clinical question mislead, and a text "
            "that reasons first (here a hand-written one, no model's) finds the evidence. "
            "Its figures mean nothing beyond that."
        )
        console.print(Text("Next, the real benchmark (extra: hub): r2med run bm25 --data R2MED"))


def _described(records: Sequence[Sequence[Record]]) -> str:
    queries = sum(record.dataset.judged_queries for record in records[0])
    documents = sum(record.dataset.documents for record in records[0])
    sizes = _count(len(records[0]), "dataset"), _count(queries, "query", "queries"), _count(documents, "document")
    return f"· {', '.join(sizes)}"


def _count(number: int, one: str, many: str = "") -> str:
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def _short(name: str) -> str:
    card = cards().get(name.split("/")[-1])
    return card.short if card and card.short else name.split("/")[-1]
