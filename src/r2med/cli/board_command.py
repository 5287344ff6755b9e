"""`r2med board`: a site of leaderboard and explorer that opens from disk."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from r2med.cli import options as flags


def board(
    sources: Annotated[
        list[str] | None,
        typer.Argument(metavar="RECORDS", help="Folders or files of records. Default: results/.", show_default=False),
    ] = None,
    out: Annotated[Path, typer.Option("-o", "--out", help="The folder of the site.")] = Path("board"),
    data: Annotated[
        list[str] | None,
        typer.Option(help="Where a dataset of your own lies, for its texts; may be repeated.", show_default=False),
    ] = None,
    entries: Annotated[
        Path | None, typer.Option(help="A folder of entries that r2med submit made.", show_default=False)
    ] = None,
    without_texts: Annotated[
        bool, typer.Option("--without-texts", help="Leave out all texts of documents, queries and LLMs.")
    ] = False,
    max_failures: flags.MaxFailures = 0.1,
    serve: Annotated[
        bool, typer.Option("--serve", help="Show it on loopback, and refresh when records change.")
    ] = False,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port of --serve. 0 picks a free one.")] = 8080,
) -> None:
    """Make a site of records: leaderboard, pages of systems, explorer. It opens from disk, with the network off."""
    from functools import partial

    from r2med.site.site import board as make_board
    from r2med.text.terminal_text import printable

    make = partial(make_board, sources or (), out, data or (), entries, max_failures, not without_texts)
    if not serve:
        print(printable(f"The board: {make()}"))
        return
    from r2med.site.live_preview import Preview

    with flags.needing_server("r2med board --serve"):
        from r2med.server.http_server import bind
        from r2med.server.preview_app import serve_preview

    watched = [*map(Path, sources or ([] if entries else ["results"])), *([entries] if entries else [])]
    listener = bind("127.0.0.1", port, None)
    preview = Preview(make, out, watched)
    listener.listen()  # a person who reads the line may come at once
    print(f"{listener.url}/ · Ctrl-C stops", flush=True)
    serve_preview(preview, listener)
