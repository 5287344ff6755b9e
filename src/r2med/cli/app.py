"""The application: every verb of the command line under its name."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import typer

from r2med.cli.advise_command import advise
from r2med.cli.analyse_command import analyse
from r2med.cli.board import board
from r2med.cli.build_command import build
from r2med.cli.cache import cache
from r2med.cli.cite import cite
from r2med.cli.compare_command import compare
from r2med.cli.data import data
from r2med.cli.doctor_command import doctor
from r2med.cli.export_command import export
from r2med.cli.generate_command import generate
from r2med.cli.import_command import imports
from r2med.cli.llms import llms
from r2med.cli.models import models
from r2med.cli.prompts import prompts
from r2med.cli.report_command import report
from r2med.cli.reproduce_command import reproduce
from r2med.cli.review_command import review
from r2med.cli.run_command import run
from r2med.cli.score import score
from r2med.cli.search_command import search
from r2med.cli.serve import serve
from r2med.cli.stage_help import stages
from r2med.cli.submit_command import submit
from r2med.cli.verify_command import verify
from r2med.cli.why import why

app = typer.Typer(
    help="How well does a retrieval system reason about medicine? Run, compare and inspect R2MED and sets like it.",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        from r2med import __version__

        print(f"r2med {__version__}")
        raise typer.Exit


GREETING = """\
r2med {version} tells how well a retrieval system reasons about medicine. To begin with:

  r2med run                                      evaluate BM25 on the bundled demo, in seconds and offline
  r2med import notes.csv questions.csv -o mine   make a dataset of your own tables
  r2med advise mine                              which pipeline to use on it, and the command that serves it
  r2med run bm25 → bge-reranker@100 --plan       what a larger run would do, fetch and cost; nothing is done yet

r2med --help shows every command, r2med --install-completion completes them with the tab key."""


@app.callback(invoke_without_command=True)
def _root(
    ctx: typer.Context,
    version: bool = typer.Option(False, "--version", callback=_version, is_eager=True, help="Print the version."),
) -> None:
    if ctx.invoked_subcommand is None:
        from r2med import __version__
        from r2med.text.terminal_text import printable

        for line in GREETING.format(version=__version__).split("\n"):
            print(printable(line))


app.command()(run)
app.command()(advise)
app.command()(score)
app.command()(board)
app.command()(compare)
app.command()(analyse)
app.command()(reproduce)
app.command()(submit)
app.command()(verify)
app.command()(cite)
app.command()(doctor)
app.command()(report)
app.command()(generate)
app.command()(search)
app.command()(why)
app.command()(serve)
app.command()(review)
app.add_typer(imports, name="import")
app.add_typer(export, name="export")
app.add_typer(build, name="build")
app.add_typer(data, name="data")
app.add_typer(models, name="models")
app.add_typer(llms, name="llms")
app.add_typer(prompts, name="prompts")
app.add_typer(stages, name="stages")
app.add_typer(cache, name="cache")


@functools.cache
def command() -> Callable[..., Any]:
    """Return the whole command line as one callable; made of its declarations once, since that takes a while."""
    return typer.main.get_command(app)
