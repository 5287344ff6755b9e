"""`r2med submit`: write records as one checked file for a leaderboard."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from r2med.cli import options as flags
from r2med.foundation.core.spec import joined_words
from r2med.foundation.text.plurals import counted
from r2med.foundation.text.terminal_text import printable


def submit(
    records: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="SYSTEM|RECORD|FOLDER",
            help="Names of systems, record files or folders of them. Default: all of --results.",
            show_default=False,
        ),
    ] = None,
    out: Annotated[Path, typer.Option("--out", "-o", help="File of the entry.")] = Path("entry.json"),
    results: flags.Results = Path("results"),
    max_failures: flags.MaxFailures = 0.1,
) -> None:
    """Write records as one entry: systems, settings, scores and hashes of runs; no texts, no paths, no keys."""
    from r2med.publication.leaderboard.submission import submit as write

    flags.check_writable(out.parent)
    entry = write(joined_words(records or []), out, results, max_failures)
    names = [*(record.system for record in entry.records), *(record.system for record in entry.answers)]
    systems = dict.fromkeys(names)
    answers = f" and {counted(len(entry.answers), 'answer record')}" if entry.answers else ""
    print(printable(f"{out}: {counted(len(entry.records), 'record')}{answers} of {', '.join(systems)}"))
    runs = next((each for each in records or () if Path(each).is_dir()), results)
    print(printable(f"check it with: r2med verify {out} --runs {runs}"))
