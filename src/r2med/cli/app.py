"""The application: all commands under their names, in the panels of the help page."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

import typer

from r2med.cli.advise_command import show_advice
from r2med.cli.analyse_command import show_analysis
from r2med.cli.answer_command import show_answers
from r2med.cli.board_command import show_board
from r2med.cli.build_command import show_build_calls, show_built, show_example_plan
from r2med.cli.catalogue_command import show_lines, show_listing, show_name, show_nothing
from r2med.cli.compare_command import show_comparison
from r2med.cli.data_command import show_example, show_exported, show_fetched, show_problems, show_training
from r2med.cli.data_import_command import confirm_import, show_import
from r2med.cli.doctor_command import show_diagnosis
from r2med.cli.generate_command import show_texts
from r2med.cli.generated import generated
from r2med.cli.help_pages import Application
from r2med.cli.label_command import show_audit, show_judged, show_nuggets
from r2med.cli.lock_command import show_lock
from r2med.cli.plan_view import show_plan
from r2med.cli.records_command import records
from r2med.cli.reproduce_command import show_expected, show_reproductions
from r2med.cli.run_command import show_results
from r2med.cli.score_command import show_scores
from r2med.cli.search_command import show_found
from r2med.cli.share_command import show_entry, show_pack, show_unpacked, show_verifications
from r2med.cli.why_command import show_story
from r2med.foundation.text.terminal_text import printable
from r2med.public.answer_functions import analyse, answer, reproduce
from r2med.public.build_functions import example_build, run_build, show_build
from r2med.public.catalogue_functions import list_, show
from r2med.public.compare_functions import compare, score
from r2med.public.data_functions import check_data, example_data, export_data, fetch_data, import_data, training_data
from r2med.public.label_functions import advise, audit, judge, nuggets
from r2med.public.look_functions import board, search, serve, why
from r2med.public.machine_functions import clear_cache, doctor, list_cache
from r2med.public.review_functions import export_review, import_review, serve_review, show_review
from r2med.public.run_functions import generate, lock, run
from r2med.public.share_functions import pack, submit, unpack, verify

app = Application(
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

  r2med run                                          evaluate BM25 on the bundled demo, in seconds and offline
  r2med data import notes.csv questions.csv -o mine  make a dataset of your own tables
  r2med advise mine                                  which pipeline to use on it, and the command that serves it
  r2med run bm25 → bge-reranker@100 --plan           what a larger run would do, fetch and cost; nothing is done yet

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


data = Application(help="Import, fetch, check and export datasets, and write training sets.", no_args_is_help=True)
data.command("import")(generated(import_data, show_import, confirm=confirm_import))
data.command("example")(generated(example_data, show_example))
data.command("fetch")(generated(fetch_data, show_fetched))
data.command("check")(generated(check_data, show_problems))
data.command("export")(generated(export_data, show_exported))
data.command("training")(generated(training_data, show_training))

build = Application(help="Build a benchmark from a plan, and look at its steps and items.", no_args_is_help=True)
build.command("run")(generated(run_build, show_built, show_build_calls))
build.command("show")(generated(show_build, show_listing))
build.command("example")(generated(example_build, show_example_plan))

review = Application(
    help="People review passages, labels of judges and texts of LLMs: the page, files, agreement.", no_args_is_help=True
)
review.command("serve")(generated(serve_review, show_nothing))
review.command("export")(generated(export_review, show_lines))
review.command("import")(generated(import_review, show_lines))
review.command("show")(generated(show_review, show_listing))

cache = Application(help="List and clear the artefacts that are kept for later runs.", no_args_is_help=True)
cache.command("list")(generated(list_cache, show_listing))
cache.command("clear")(generated(clear_cache, show_listing))

PANELS: Mapping[str, Mapping[str, Callable[..., None] | typer.Typer]] = {
    "Measure systems": {
        "run": generated(run, show_results, show_plan),
        "compare": generated(compare, show_comparison),
        "board": generated(board, show_board),
        "why": generated(why, show_story),
        "analyse": generated(analyse, show_analysis, show_plan),
        "generate": generated(generate, show_texts, show_plan),
        "answer": generated(answer, show_answers, show_plan),
        "score": generated(score, show_scores),
        "records": records,
        "lock": generated(lock, show_lock),
        "reproduce": generated(reproduce, show_reproductions, show_expected),
    },
    "Search your own data": {
        "data": data,
        "advise": generated(advise, show_advice),
        "search": generated(search, show_found),
        "serve": generated(serve, show_nothing),
    },
    "Build and check a benchmark": {
        "build": build,
        "review": review,
        "audit": generated(audit, show_audit),
        "judge": generated(judge, show_judged, show_plan),
        "nuggets": generated(nuggets, show_nuggets, show_plan),
    },
    "Publish results": {
        "submit": generated(submit, show_entry),
        "verify": generated(verify, show_verifications),
        "pack": generated(pack, show_pack),
        "unpack": generated(unpack, show_unpacked),
    },
    "Look things up": {
        "list": generated(list_, show_listing),
        "show": generated(show, show_name),
        "doctor": generated(doctor, show_diagnosis),
        "cache": cache,
    },
}
"""The panels of the help page in the order of use, and the commands in each: of a researcher, a team, an author."""

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
