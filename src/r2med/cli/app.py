"""The application: all commands under their names, in the panels of the help page."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

import typer

from r2med.cli.advise_command import advise
from r2med.cli.analyse_command import analyse
from r2med.cli.answer_command import answer
from r2med.cli.audit_command import audit
from r2med.cli.board_command import show_board
from r2med.cli.build_command import build
from r2med.cli.cache_command import cache
from r2med.cli.cite_command import cite
from r2med.cli.compare_command import show_comparison
from r2med.cli.data_command import data
from r2med.cli.doctor_command import doctor
from r2med.cli.generate_command import show_generation_plan, show_texts
from r2med.cli.generated import generated
from r2med.cli.judge_command import judge
from r2med.cli.list_command import list_
from r2med.cli.lock_command import show_lock
from r2med.cli.models_command import models
from r2med.cli.nuggets_command import nuggets
from r2med.cli.pack_command import pack, unpack
from r2med.cli.plan_output import show_plan
from r2med.cli.prompts_command import prompts
from r2med.cli.records_command import records
from r2med.cli.reproduce_command import reproduce
from r2med.cli.review_command import review
from r2med.cli.run_command import show_results
from r2med.cli.score_command import show_scores
from r2med.cli.search_command import show_found
from r2med.cli.show_command import show
from r2med.cli.submit_command import submit
from r2med.cli.verify_command import verify
from r2med.cli.why_command import show_story
from r2med.foundation.text.terminal_text import printable
from r2med.public.compare_functions import compare, score
from r2med.public.look_functions import board, search, serve, why
from r2med.public.run_functions import generate, lock, run

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
r2med {version} measures how well a retrieval system reasons about medicine. To start:

  r2med run                                      evaluate BM25 on the bundled demo, in seconds and offline
  r2med data import notes.csv asked.csv -o mine  make a dataset of your own tables
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

        for line in GREETING.format(version=__version__).split("\n"):
            print(printable(line))


PANELS: Mapping[str, Mapping[str, Callable[..., None] | typer.Typer]] = {
    "Evaluate": {
        "run": generated(run, show_results, show_plan),
        "generate": generated(generate, show_texts, show_generation_plan),
        "lock": generated(lock, show_lock),
        "compare": generated(compare, show_comparison),
        "score": generated(score, show_scores),
        "answer": answer,
        "analyse": analyse,
        "reproduce": reproduce,
        "why": generated(why, show_story),
        "records": records,
    },
    "Look": {
        "board": generated(board, show_board),
        "search": generated(search, show_found),
        "serve": generated(serve, lambda nothing: None),
    },
    "Own data": {"data": data, "advise": advise},
    "Labels": {"audit": audit, "judge": judge, "nuggets": nuggets},
    "Build": {"build": build, "review": review},
    "Leaderboard": {"submit": submit, "verify": verify},
    "Share": {"pack": pack, "unpack": unpack},
    "Catalogue": {"list": list_, "show": show, "models": models, "prompts": prompts},
    "Machine": {"cache": cache, "doctor": doctor, "cite": cite},
}
"""The panels of the help page, and the commands in each."""

for _panel, _commands in PANELS.items():
    for _name, _command in _commands.items():
        if isinstance(_command, typer.Typer):
            app.add_typer(_command, name=_name, rich_help_panel=_panel)
        else:
            app.command(_name, rich_help_panel=_panel)(_command)


@functools.cache
def command() -> Callable[..., Any]:
    """Return the whole command line as one callable. It is made once, because that takes time."""
    return typer.main.get_command(app)
