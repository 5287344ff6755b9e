"""`r2med data`: import, list, fetch, check, measure and export datasets."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from r2med.cli import completion
from r2med.cli import options as flags
from r2med.cli.data_import_command import import_
from r2med.cli.formats import Format, show_page
from r2med.foundation.text.plurals import counted
from r2med.foundation.text.terminal_text import printable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from r2med.data.problems import Problems
    from r2med.foundation.pages.finding import Finding
    from r2med.foundation.pages.page import Page, Section

data = typer.Typer(help="Import, list, fetch, check, measure and export datasets.", no_args_is_help=True)

data.command("import")(import_)

Words = Annotated[
    list[str],
    typer.Argument(
        metavar="DATASET", help="Names, groups or folders.", show_default=False, autocompletion=completion.datasets
    ),
]


def _names(words: list[str]) -> list[str]:
    from r2med.data import names

    return list(dict.fromkeys(name for word in words for name in names(word)))


@data.command()
def example(
    out: Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="Where to write.")] = Path(),
) -> None:
    """Write example data: the tables notes.csv and questions.csv, and the dataset folder example."""
    from r2med.data.example_data import FOLDER, NOTES, QUESTIONS, example_data

    dataset = example_data(out)
    notes, questions, folder = (shlex.quote(str(out / name)) for name in (NOTES, QUESTIONS, FOLDER))
    sizes = f"{counted(len(dataset.corpus), 'text')}, {counted(len(dataset.queries), 'question')}"
    print(printable(f"{notes} and {questions}: {sizes}. Import them: r2med data import {notes} {questions} -o mine"))
    print(printable(f"{folder}: the same as a dataset. Try it: r2med advise {folder}"))


@data.command("list")
def list_(form: Format = "text", as_json: flags.AsJSON = False) -> None:
    """Show every dataset and group by name."""
    from r2med.cli.list_command import list_datasets

    list_datasets(form, as_json)


@data.command()
def fetch(datasets: Words) -> None:
    """Download datasets and prepare their corpora, so that later runs need no network."""
    from r2med.data import load

    for name in _names(datasets):
        dataset = load(name)
        sizes = f"{counted(len(dataset.queries), 'query', 'queries')}, {counted(len(dataset.corpus), 'document')}"
        print(printable(f"{dataset.name}: {sizes} ready"))


@data.command()
def check(datasets: Words, form: Format = "text", as_json: flags.AsJSON = False) -> None:
    """Report all problems of datasets at once, with file and line."""
    from r2med.data.check import check as find
    from r2med.foundation.pages.page import Page

    found: dict[str, Problems] = {}
    in_lines = form == "text" and not as_json
    for name in _names(datasets):
        found[name] = find(name)
        if in_lines:  # at once: the next dataset may take long
            show_page(Page(name, [_problem_lines(name, found[name])]), form)
    if not in_lines:
        findings = {name: problems.findings() for name, problems in found.items()}
        value = [
            {"dataset": name, "findings": [finding.model_dump(mode="json") for finding in each]}
            for name, each in findings.items()
        ]
        show_page(_finding_table(findings), form, as_json, value)
    if any(map(len, found.values())):
        raise typer.Exit(2)


def _problem_lines(name: str, problems: Problems) -> Section:
    from r2med.foundation.pages.page import Note, Section

    verdict = counted(len(problems), "problem") if len(problems) else "sound"
    lines = (*problems.lines(), *(f"note: {notice}" for notice in problems.notices), f"{name}: {verdict}")
    return Section("", [Note(line, whole=True) for line in lines])


def _finding_table(found: Mapping[str, Sequence[Finding]]) -> Page:
    from r2med.foundation.pages.finding import VERDICT_WORDS
    from r2med.foundation.pages.page import Table, table_page

    rows = [
        (name, each.id, VERDICT_WORDS[each.verdict], each.sentence) for name, all_ in found.items() for each in all_
    ]
    return table_page("Checks of datasets", Table.of(("dataset", "check", "verdict", "finding"), rows))


@data.command()
def stats(datasets: Words, form: Format = "text", as_json: flags.AsJSON = False) -> None:
    """Print the sizes of datasets. Lengths are means, in words and characters."""
    from dataclasses import asdict

    from r2med.data import load
    from r2med.data.stats import stats as measure
    from r2med.foundation.pages.cells import Column
    from r2med.foundation.pages.page import Note, Table, table_page

    sizes = [measure(load(name)) for name in _names(datasets)]
    rows = [
        (
            size.name,
            size.queries,
            size.documents,
            size.mean_positives,
            size.query_words,
            size.document_words,
            size.document_characters,
            size.longest_document,
        )
        for size in sizes
    ]
    columns = (
        Column("Dataset"),
        Column("#Q", "integer"),
        Column("#D", "integer"),
        Column("Avg. Pos", "number"),
        Column("Q-Len", "number", 1),
        Column("D-Len", "number", 1),
        Column("D-Chars", "integer"),
        Column("D-Max", "integer"),
    )
    note = Note("Q-Len and D-Len: mean words. D-Chars, D-Max: mean and most characters.", "quiet")
    page = table_page("Sizes of datasets", Table(columns, rows), notes=[note])
    show_page(page, form, as_json, [asdict(size) for size in sizes])


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
    from r2med.data import load
    from r2med.publication.bridges.data_export import export_data

    export_data(load(dataset), form, out)
    print(printable(f"{out} is written: r2med data check {shlex.quote(str(out))}"))


@data.command()
def overlays(
    files: Annotated[
        list[Path] | None,
        typer.Argument(metavar="FILE|FOLDER", help="Overlays. Default: those in overlays/.", show_default=False),
    ] = None,
    compare: Annotated[bool, typer.Option("--compare", help="Compare the labels of two overlays.")] = False,
    remove: Annotated[bool, typer.Option("--remove", help="Delete these overlays. Datasets never change.")] = False,
    form: Format = "text",
    as_json: flags.AsJSON = False,
) -> None:
    """List overlays, which add labels to datasets; compare two of them, or delete them."""
    from r2med.assessment.judgements import overlay_files
    from r2med.foundation.core.errors import UserError

    if remove and not files:
        raise UserError("name the overlays to delete: r2med data overlays FILE --remove")
    paths = overlay_files.overlay_paths(files or [Path("overlays")])
    if compare:
        page, value = overlay_files.comparison_page(paths)
        show_page(page, form, as_json, value)
    elif remove:
        overlay_files.remove_overlays(paths)
        print(printable(f"{counted(len(paths), 'overlay')} deleted: scores without --overlay are as before"))
    else:
        rows = list(overlay_files.overlay_rows(paths))
        show_page(overlay_files.overlays_page(rows), form, as_json, rows)
