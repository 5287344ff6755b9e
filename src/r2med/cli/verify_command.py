"""`r2med verify`: check that the scores of an entry are those of its runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from r2med.cli import options as flags
from r2med.cli.formats import Format, show_page


def verify(
    entries: Annotated[
        list[Path],
        typer.Argument(metavar="ENTRY", help="Files of r2med submit, or folders of them.", show_default=False),
    ],
    runs: Annotated[
        Path, typer.Option(help="A folder with their run files, files of answers and locks, at any depth.")
    ] = Path("results"),
    data: Annotated[
        list[str] | None, typer.Option(help="Folders of datasets that have no card; may be repeated.")
    ] = None,
    verdicts: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Write the results to this file, which r2med board reads.", show_default=False
        ),
    ] = None,
    form: Format = "text",
    as_json: flags.AsJSON = False,
) -> None:
    """Compute the scores of entries again from their runs and answers, and refuse what does not match."""
    from r2med.foundation.pages.page import Note, Page, Section, Table
    from r2med.publication.leaderboard.verification import verify as check

    checked = check(entries, runs, data or [], verdicts=verdicts)
    heads = ("entry", "system", "dataset", "verdict")
    table = Table.of(heads, [(str(each.entry), each.system, each.dataset, each.verdict) for each in checked])
    lines = [Note(str(each), whole=True) for each in checked]
    value = [{**vars(each), "entry": str(each.entry)} for each in checked]
    page = Page("Entries checked against their runs", [Section("", lines if form == "text" else [table])])
    show_page(page, form, as_json, value)
    if any(each.fault for each in checked):
        raise typer.Exit(1)
