"""`r2med verify`: whether the scores of an entry are those of its runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from r2med.cli import options as flags


def verify(
    entries: Annotated[list[Path], typer.Argument(metavar="ENTRY", help="Files of r2med submit.", show_default=False)],
    runs: Annotated[Path, typer.Option(help="A folder with their run files, at any depth.")] = Path("results"),
    data: Annotated[
        list[str] | None, typer.Option(help="Folders of datasets that have no card; may be repeated.")
    ] = None,
    as_json: flags.AsJSON = False,
) -> None:
    """Compute the scores of entries again from their runs, and refuse what does not match."""
    from r2med.cli.console import print_json
    from r2med.leaderboard.verification import verify as check
    from r2med.text.terminal_text import printable

    checked = check(entries, runs, data or [])
    if as_json:
        print_json([{**vars(each), "entry": str(each.entry)} for each in checked])
    else:
        for each in checked:
            print(printable(str(each)))
    if any(each.fault for each in checked):
        raise typer.Exit(1)
