"""`r2med data`: which datasets there are, fetching them, whether they are sound, how large they are."""

from __future__ import annotations

from typing import Annotated, Any

import typer

data = typer.Typer(help="List, fetch, check and measure datasets.", no_args_is_help=True)

Words = Annotated[list[str], typer.Argument(metavar="DATASET", help="Names, groups or folders.", show_default=False)]


def _table(*heads: str) -> Any:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for head in heads:
        table.add_column(head, justify="right" if head.startswith(("#", "Avg", "Q-", "D-")) else "left")
    return table


def _names(words: list[str]) -> list[str]:
    from r2med.data import names

    return list(dict.fromkeys(name for word in words for name in names(word)))


@data.command("list")
def list_() -> None:
    """Show every dataset and group by name."""
    from rich.console import Console

    from r2med.data.dataset_cards import cards, groups

    table = _table("dataset", "task", "scenario", "#Q", "#D", "licence")
    for card in cards().values():
        counts = (f"{card.counts.queries:,}", f"{card.counts.documents:,}") if card.counts else ("", "")
        table.add_row(card.name, card.task, card.scenario, *counts, card.licence)
    console = Console()
    console.print(table)
    for group, members in groups().items():
        console.print(f"group [bold]{group}[/bold]: {', '.join(members)}", highlight=False)


@data.command()
def fetch(datasets: Words) -> None:
    """Download datasets and prepare their corpora, so that later runs need no network."""
    from r2med.data import load

    for name in _names(datasets):
        dataset = load(name)
        print(f"{dataset.name}: {len(dataset.queries):,} queries, {len(dataset.corpus):,} documents ready")


@data.command()
def check(datasets: Words) -> None:
    """Report all problems of datasets at once, with file and line."""
    from r2med.cli import printable
    from r2med.data.check import check as find

    total = 0
    for name in _names(datasets):
        found = find(name)
        for line in found.lines():
            print(printable(line))
        for notice in found.notices:
            print(f"note: {printable(notice)}")
        print(f"{name}: {f'{len(found):,} problems' if len(found) else 'sound'}")
        total += len(found)
    if total:
        raise typer.Exit(2)


@data.command()
def stats(datasets: Words) -> None:
    """Print the sizes of datasets; lengths are means, in words and characters."""
    from rich.console import Console

    from r2med.data import load
    from r2med.data.stats import stats as measure

    table = _table("Dataset", "#Q", "#D", "Avg. Pos", "Q-Len", "D-Len", "D-Chars", "D-Max")
    for name in _names(datasets):
        s = measure(load(name))
        table.add_row(
            s.name,
            f"{s.queries:,}",
            f"{s.documents:,}",
            f"{s.mean_positives:.2f}",
            f"{s.query_words:.1f}",
            f"{s.document_words:.1f}",
            f"{s.document_characters:,.0f}",
            f"{s.longest_document:,}",
        )
    Console().print(table)
    Console().print("Q-Len and D-Len: mean words. D-Chars, D-Max: mean and most characters.", style="dim")
