"""The application: every verb of the command line under its name."""

from __future__ import annotations

import typer

from r2med.cli.cache import cache
from r2med.cli.data import data
from r2med.cli.generate_command import generate
from r2med.cli.llms import llms
from r2med.cli.models import models
from r2med.cli.run_command import run
from r2med.cli.score import score
from r2med.cli.serve import serve
from r2med.cli.stage_help import stages

app = typer.Typer(
    help="How well does a retrieval system reason about medicine? Run, compare and inspect R2MED and sets like it.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        from r2med import __version__

        print(f"r2med {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: bool = typer.Option(False, "--version", callback=_version, is_eager=True, help="Print the version."),
) -> None:
    pass


app.command()(run)
app.command()(score)
app.command()(generate)
app.command()(serve)
app.add_typer(data, name="data")
app.add_typer(models, name="models")
app.add_typer(llms, name="llms")
app.add_typer(stages, name="stages")
app.add_typer(cache, name="cache")
