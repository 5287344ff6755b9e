"""`r2med board`: a site of leaderboard and explorer that opens from disk."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from r2med.cli import options as flags
from r2med.foundation.text.terminal_text import printable


def board(
    sources: Annotated[
        list[str] | None,
        typer.Argument(metavar="RECORDS", help="Folders or files of records. Default: results/.", show_default=False),
    ] = None,
    out: Annotated[Path, typer.Option("-o", "--out", help="The folder of the site.")] = Path("board"),
    data: Annotated[
        list[str] | None,
        typer.Option(help="Folder of a dataset of your own, for its texts. May be repeated.", show_default=False),
    ] = None,
    entries: Annotated[
        Path | None, typer.Option(help="Folder with entries written by r2med submit.", show_default=False)
    ] = None,
    verdicts: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="The file that r2med verify --verdicts wrote. Entries that it does not call right are marked and "
            "ranked last.",
            show_default=False,
        ),
    ] = None,
    overlay: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE",
            help="Also show scores with the labels of this overlay, and estimates if people labelled a random part. "
            "May be repeated: later labels replace earlier ones.",
            show_default=False,
        ),
    ] = None,
    without_texts: Annotated[
        bool, typer.Option("--without-texts", help="Leave out all texts of documents, queries and LLMs.")
    ] = False,
    max_failures: flags.MaxFailures = 0.1,
    serve: Annotated[
        bool, typer.Option("--serve", help="Serve the board on this machine and refresh it when records change.")
    ] = False,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port of --serve. 0 picks a free one.")] = 8080,
) -> None:
    """Make a site from records: leaderboard, system pages and explorer. It opens from disk without a network."""
    from r2med.publication.site.site import board as make_board
    from r2med.server.serving import serve_board

    of_board = (sources or (), out, data or (), entries, max_failures, not without_texts)
    if serve:
        serve_board(*of_board, port, overlays=overlay or (), verdicts=verdicts)
    else:
        print(printable(f"The board: {make_board(*of_board, overlay or (), verdicts)}"))
