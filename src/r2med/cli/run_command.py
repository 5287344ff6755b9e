"""`r2med run`: evaluate systems on datasets, write a record for each pair, and print one table."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from r2med.cli import completion
from r2med.cli import options as flags
from r2med.cli.formats import Format, show_page
from r2med.foundation.core.errors import UserError
from r2med.foundation.core.spec import joined_words
from r2med.foundation.text.terminal_text import printable

if TYPE_CHECKING:
    from r2med.evaluation.running.batch import RunPlan
    from r2med.foundation.runtime.runtime import Runtime

DEMO_SYSTEMS = ("bm25", "hyde(author) → bm25")


@flags.with_runtime(
    *flags.WEIGHTS, *flags.ASKING, "engine", "depth", "recorded", "generations", "candidates", *flags.TRACE
)
def run(
    systems: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="SYSTEM",
            help="What to evaluate: bm25, 'hyde(author) → bm25', py:MODULE:NAME for a model of your own, …. "
            "Default: the two systems of the demo.",
            show_default=False,
            autocompletion=completion.systems,
        ),
    ] = None,
    expand: flags.Expansions = None,
    rerank: flags.Rerankers = None,
    suite: Annotated[
        str,
        typer.Option(
            metavar="NAME|FILE",
            help="Many systems at once: paper, rerank, records, top or a TOML file.",
            autocompletion=completion.suites,
            rich_help_panel=flags.WHAT,
        ),
    ] = "",
    samples: flags.Samples = 1,
    k: flags.TopK = 1000,
    data: flags.Data = None,
    llm: flags.LLMs = None,
    out: Annotated[
        Path, typer.Option("--out", "-o", help="Folder for records and runs.", rich_help_panel=flags.OUTPUT)
    ] = Path("results"),
    measure: Annotated[
        str, typer.Option(help="The measure of the table. Records hold all measures.", rich_help_panel=flags.OUTPUT)
    ] = "nDCG@10",
    sort: Annotated[
        str,
        typer.Option(
            metavar="COLUMN",
            help="Order the rows by score, p50, p95, dollars, tokens, name or a dataset. Default: as typed.",
            show_default=False,
            rich_help_panel=flags.OUTPUT,
        ),
    ] = "",
    fresh: Annotated[
        bool,
        typer.Option(
            "--fresh",
            help="Compute everything again, except what was paid for: answers of LLMs, embedding APIs and rerank APIs.",
            rich_help_panel=flags.OUTPUT,
        ),
    ] = False,
    lock: flags.Lock = None,
    dry_run: flags.DryRun = False,
    form: Format = "text",
    as_json: Annotated[
        bool,
        typer.Option("--json", help="Print the means as JSON instead of tables.", rich_help_panel=flags.OUTPUT),
    ] = False,
    *,
    runtime: Runtime,
) -> None:
    """Evaluate systems on datasets. Without arguments: BM25 with and without expansion on the bundled demo."""
    from r2med.cli.plan_output import show_plan
    from r2med.cli.progress import steps
    from r2med.evaluation.measure.measures import recorded_measure
    from r2med.evaluation.running.batch import plan_run
    from r2med.evaluation.running.results import check_order
    from r2med.evaluation.running.run_page import failure_lines, run_page

    if k < 1:
        raise UserError(f"k must be at least 1, not {k}")
    shown = _locked_measure(lock, measure) if lock else recorded_measure(measure)
    runtime = runtime.fresh() if fresh else runtime
    setup = runtime.setup
    specs = joined_words(systems or [])
    if not specs and not suite and not lock and setup.candidates is None:
        specs = list(DEMO_SYSTEMS)
    names = [] if (suite or lock) and not data else flags.dataset_names(data)
    plan = plan_run(
        specs,
        names,
        expand=expand or [],
        rerank=rerank or [],
        llms=llm or [],
        samples=samples,
        suite=suite,
        lock=lock or "",
        setup=runtime,
    )
    about_texts = {
        "--generations": setup.generations,
        "--recorded": setup.recorded,
        "--prompts": setup.prompts,
        "--base-url": setup.base_url,
        "--llm-backend": setup.llm_backend,
    }
    _check_used(plan, [flag for flag, given in about_texts.items() if given])
    if sort:
        check_order(sort, plan.dataset_names)
    if dry_run:
        show_plan(plan)
        return
    flags.check_writable(out)
    with steps(len(plan.data) * len(plan.systems)) as step:
        results = plan.evaluate(out, k, fresh, announce=step)
    results = results.sorted(sort, shown) if sort else results
    has_json = as_json or form == "json"
    if not has_json and not results.records and len(results.errors) == 1:
        raise UserError(next(iter(results.errors)))
    if form == "text" and not as_json:
        print()
    page = run_page(results, shown, out, demo=not systems and not data and not lock)
    show_page(page, form, as_json, [cell.summary() for cell in results])
    for line in failure_lines(results.records) if has_json or form == "csv" else ():
        print(printable(line), file=sys.stderr)  # where the exit code is 0 and no page shows it
    if not results.complete:
        raise typer.Exit(1)


def _locked_measure(lock: Path, measure: str) -> str:
    """Return the measure of a lock. Raises UserError if another one was asked for."""
    from r2med.evaluation.measure.measures import HEADLINE_MEASURE, recorded_measure
    from r2med.evaluation.records.lock_file import Lock

    decided = Lock.read(lock).measure
    if recorded_measure(measure) not in (str(HEADLINE_MEASURE), decided):
        raise UserError(f"{lock}: its measure is {decided}, not {measure}; a lock allows nothing else")
    return decided


def _check_used(plan: RunPlan, given: list[str]) -> None:
    """Raise UserError for a flag about texts or LLMs if no system has a stage that uses it."""
    if given and all(system.only_searches for system in plan.systems):
        raise UserError(f"{given[0]} is about texts of an LLM, and no system uses any: add --expand hyde --llm NAME")
