"""`r2med export`: records in the forms of other tools."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from r2med.cli import options as flags

export = typer.Typer(help="Write records in the form of another tool.", no_args_is_help=True)


@export.callback()
def _tools() -> None:
    """Write records in the form of another tool."""


@export.command()
def mteb(
    records: flags.ComparedSystems = None,
    out: Annotated[Path, typer.Option("--out", "-o", help="Where the folder `results` of MTEB is.")] = Path("mteb"),
    results: flags.Results = Path("results"),
    max_failures: flags.MaxFailures = 0.1,
) -> None:
    """Write records as MTEB's cache of results has them: results/ORG__MODEL/REVISION/TASK.json."""
    from r2med.bridges.mteb_results import export_results
    from r2med.core.spec import joined_words
    from r2med.text.terminal_text import printable

    flags.check_writable(out)
    for file in export_results(joined_words(records or []), out, results, max_failures):
        print(printable(str(file)))


@export.command()
def runs(
    records: flags.ComparedSystems = None,
    out: Annotated[Path, typer.Option("--out", "-o", help="The folder of the run files.")] = Path("runs"),
    results: flags.Results = Path("results"),
    header: Annotated[
        bool, typer.Option("--header", help="Begin each run with its ir_metadata, which trec_eval 9 cannot read.")
    ] = False,
    max_failures: flags.MaxFailures = 0.1,
) -> None:
    """Write the runs of records as TREC files of six columns that trec_eval reads: DATASET/SYSTEM-KEY.trec."""
    from r2med.core.spec import joined_words
    from r2med.evaluation.run_export import export_runs
    from r2med.text.terminal_text import printable

    flags.check_writable(out)
    for file in export_runs(joined_words(records or []), out, results, header, max_failures):
        print(printable(str(file)))
