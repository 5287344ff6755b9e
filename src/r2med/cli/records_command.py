"""`r2med records`: export records to formats of other tools, and import them from there."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from r2med.cli import completion
from r2med.cli import options as flags
from r2med.foundation.core.errors import UserError, unknown
from r2med.foundation.core.spec import joined_words
from r2med.foundation.text.terminal_text import printable

records = typer.Typer(help="Write records in the format of another tool, or read them from it.", no_args_is_help=True)

FORMATS = ("runs", "mteb")


@records.command("import")
def import_(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="MTEB's TASK_predictions.json.", show_default=False)],
    data: Annotated[
        str,
        typer.Option(
            help="A dataset or a folder. Default: the dataset of the task.", autocompletion=completion.datasets
        ),
    ] = "",
    out: Annotated[Path, typer.Option("--out", "-o", help="The folder of the records.")] = Path("results"),
) -> None:
    """Score predictions of MTEB and store them as a record with its run."""
    from r2med.publication.bridges.mteb_predictions import import_predictions

    record = import_predictions(file, data, out)
    print(printable(f"{record.system} on {record.dataset.name}: nDCG@10 {100 * record.mean['nDCG@10']:.2f}"))
    print(printable(f"compare it with others: r2med compare --results {out}"))


@records.command()
def export(
    systems: flags.ComparedSystems = None,
    form: Annotated[
        str,
        typer.Option(
            "--format",
            metavar="NAME",
            help="runs: TREC files that trec_eval reads (DATASET/SYSTEM-KEY.trec). "
            "mteb: MTEB's cache of results (results/ORG__MODEL/REVISION/TASK.json).",
        ),
    ] = "runs",
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="The folder to write. Default: the name of the format.", show_default=False),
    ] = None,
    results: flags.Results = Path("results"),
    header: Annotated[
        bool, typer.Option("--header", help="Begin each run with its ir_metadata, which trec_eval 9 cannot read.")
    ] = False,
    max_failures: flags.MaxFailures = 0.1,
) -> None:
    """Write records in the format of another tool: run files for trec_eval, or results for MTEB."""
    from r2med.evaluation.running.run_export import export_runs
    from r2med.publication.bridges.mteb_results import export_results

    if form not in FORMATS:
        raise unknown("format", form, FORMATS)
    if header and form != "runs":
        raise UserError("--header is for run files: use it with --format runs")
    folder = out or Path(form)
    flags.check_writable(folder)
    names = joined_words(systems or [])
    if form == "runs":
        files = export_runs(names, folder, results, header, max_failures)
    else:
        files = export_results(names, folder, results, max_failures)
    for file in files:
        print(printable(str(file)))
