"""`r2med data`: which datasets there are, fetching them, whether they are sound, how large they are."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from r2med.cli import completion
from r2med.cli import options as flags

data = typer.Typer(help="List, fetch, check and measure datasets.", no_args_is_help=True)

Words = Annotated[
    list[str],
    typer.Argument(
        metavar="DATASET", help="Names, groups or folders.", show_default=False, autocompletion=completion.datasets
    ),
]


def _names(words: list[str]) -> list[str]:
    from r2med.data import names

    return list(dict.fromkeys(name for word in words for name in names(word)))


@data.command("list")
def list_(as_json: flags.AsJSON = False) -> None:
    """Show every dataset and group by name."""
    from r2med.cli.console import console, plain, print_json, table
    from r2med.data.dataset_cards import cards, groups

    if as_json:
        datasets = [card.model_dump(mode="json", exclude_defaults=True) for card in cards().values()]
        print_json({"datasets": datasets, "groups": groups()})
        return
    rows = []
    for card in cards().values():
        counts = (f"{card.counts.queries:,}", f"{card.counts.documents:,}") if card.counts else ("", "")
        rows.append((card.name, card.task, card.scenario, *counts, card.licence))
    output = console()
    output.print(table(("dataset", "task", "scenario", "#Q", "#D", "licence"), rows, numbers=("#Q", "#D")))
    output.print()
    for group, members in groups().items():
        output.print(plain("group ") + plain(group, "bold") + plain(f": {', '.join(members)}"))


@data.command()
def fetch(datasets: Words) -> None:
    """Download datasets and prepare their corpora, so that later runs need no network."""
    from r2med.data import load
    from r2med.text.terminal_text import printable

    for name in _names(datasets):
        dataset = load(name)
        print(f"{printable(dataset.name)}: {len(dataset.queries):,} queries, {len(dataset.corpus):,} documents ready")


@data.command()
def check(datasets: Words) -> None:
    """Report all problems of datasets at once, with file and line."""
    from r2med.data.check import check as find
    from r2med.text.terminal_text import printable

    total = 0
    for name in _names(datasets):
        problems = find(name)
        for line in problems.lines():
            print(printable(line))
        for notice in problems.notices:
            print(f"note: {printable(notice)}")
        count = f"{len(problems):,} problem{'s' if len(problems) > 1 else ''}"
        print(f"{printable(name)}: {count if len(problems) else 'sound'}")
        total += len(problems)
    if total:
        raise typer.Exit(2)


@data.command()
def stats(datasets: Words, as_json: flags.AsJSON = False) -> None:
    """Print the sizes of datasets; lengths are means, in words and characters."""
    from dataclasses import asdict

    from r2med.cli.console import console, plain, print_json
    from r2med.cli.figures import Figures
    from r2med.data import load
    from r2med.data.stats import stats as measure

    sizes = [measure(load(name)) for name in _names(datasets)]
    if as_json:
        print_json([asdict(size) for size in sizes])
        return
    rows = [
        (
            f"{size.queries:,}",
            f"{size.documents:,}",
            f"{size.mean_positives:.2f}",
            f"{size.query_words:.1f}",
            f"{size.document_words:.1f}",
            f"{size.document_characters:,.0f}",
            f"{size.longest_document:,}",
        )
        for size in sizes
    ]
    heads = ("#Q", "#D", "Avg. Pos", "Q-Len", "D-Len", "D-Chars", "D-Max")
    output = console()
    figures = Figures("Dataset", heads, [list(map(plain, row)) for row in rows])
    figures.print(output, [size.name for size in sizes])
    output.print(plain("Q-Len and D-Len: mean words. D-Chars, D-Max: mean and most characters.", "dim"))


@data.command()
def export(
    dataset: Annotated[
        str,
        typer.Argument(help="A name or a folder.", show_default=False, autocompletion=completion.datasets),
    ],
    out: Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="The new folder.", show_default=False)],
    form: Annotated[str, typer.Option("--format", help="beir, mteb, trec, hub or croissant.")] = "beir",
) -> None:
    """Write a dataset in the layout of another tool."""
    from r2med.bridges.data_export import export_data
    from r2med.data import load
    from r2med.text.terminal_text import printable

    export_data(load(dataset), form, out)
    print(printable(f"{out} is written: r2med data check {shlex.quote(str(out))}"))
