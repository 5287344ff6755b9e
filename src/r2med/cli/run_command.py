"""`r2med run`: many systems on many datasets, a record each, one table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from r2med.cli import completion
from r2med.cli import options as flags

if TYPE_CHECKING:
    from r2med.results.batch import Cell, Plan

DEMO_SYSTEMS = ("bm25", "hyde(author) → bm25")


def run(
    systems: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="SYSTEM",
            help="What to evaluate, e.g. bm25 or 'hyde(author) → bm25'. Default: the demo's two.",
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
            help="Many systems at once: paper, rerank, records or a TOML file.",
            autocompletion=completion.suites,
            rich_help_panel=flags.WHAT,
        ),
    ] = "",
    model: Annotated[
        list[str] | None,
        typer.Option(
            metavar="MODULE:NAME",
            help="A model of your own with encode_queries and encode_corpus.",
            rich_help_panel=flags.WHAT,
        ),
    ] = None,
    depth: flags.Depth = 100,
    samples: flags.Samples = 1,
    k: Annotated[int, typer.Option(help="Documents retrieved for each query.", rich_help_panel=flags.WHAT)] = 1000,
    data: flags.Data = None,
    candidates: flags.Candidates = None,
    recorded: flags.Recorded = False,
    generations: flags.Generations = None,
    device: flags.Device = "auto",
    dtype: flags.DType = "auto",
    backend: flags.Backend = "torch",
    model_path: flags.ModelPaths = None,
    memory: flags.Memory = "2G",
    batch_tokens: flags.BatchTokens = 0,
    trust_remote_code: flags.TrustRemoteCode = False,
    llm: flags.LLMs = None,
    base_url: flags.BaseURL = None,
    llm_backend: flags.LLMBackend = "",
    budget: flags.Budget = None,
    prompts: flags.Prompts = "",
    concurrency: flags.Concurrency = 16,
    deadline: flags.Deadline = 900.0,
    idle: flags.Idle = 180.0,
    ask_again: flags.AskAgain = False,
    out: Annotated[Path, typer.Option(help="Where records and runs go.", rich_help_panel=flags.OUTPUT)] = Path(
        "results"
    ),
    measure: Annotated[
        str, typer.Option(help="The measure of the table; records hold them all.", rich_help_panel=flags.OUTPUT)
    ] = "nDCG@10",
    fresh: Annotated[
        bool,
        typer.Option(
            "--fresh",
            help="Redo everything but what LLMs answered: that was paid for.",
            rich_help_panel=flags.OUTPUT,
        ),
    ] = False,
    dry_run: flags.DryRun = False,
    as_json: Annotated[
        bool,
        typer.Option("--json", help="Print the means as JSON instead of tables.", rich_help_panel=flags.OUTPUT),
    ] = False,
) -> None:
    """Evaluate systems on datasets. Without arguments: BM25 with and without expansion on the bundled demo."""
    import json

    from r2med.cli.plan import show_plan
    from r2med.cli.progress import steps
    from r2med.cli.tables import run_report
    from r2med.errors import UserError
    from r2med.results.batch import plan_run
    from r2med.spec import joined_words
    from r2med.store import default_store

    if k < 1:
        raise UserError(f"k must be at least 1, not {k}")
    shown = _checked_measure(measure)
    store = default_store().fresh() if fresh else default_store()
    setup = flags.make_setup(
        model_path=model_path,
        memory=memory,
        budget=budget,
        device=device,
        dtype=dtype,
        backend=backend,
        trust_remote_code=trust_remote_code,
        tokens_per_batch=batch_tokens,
        base_url=base_url,
        llm_backend=llm_backend,
        concurrency=concurrency,
        deadline=deadline,
        idle=idle,
        ask_again=ask_again,
        prompts=prompts,
        recorded=recorded,
        generations=generations,
        depth=depth,
        candidates=candidates,
        store=store,
    )
    specs = [*joined_words(systems or []), *(f"py:{name}" for name in model or [])]
    if not specs and not suite and candidates is None:
        specs = list(DEMO_SYSTEMS)
    names = [] if suite and not data else flags.dataset_names(data)
    plan = plan_run(
        specs,
        names,
        expand=expand or [],
        rerank=rerank or [],
        llms=llm or [],
        samples=samples,
        suite=suite,
        setup=setup,
    )
    about_texts = {
        "--recorded": recorded,
        "--generations": generations,
        "--prompts": prompts,
        "--base-url": base_url,
        "--llm-backend": llm_backend,
    }
    _check_used(plan, [flag for flag, given in about_texts.items() if given])
    if dry_run:
        show_plan(plan)
        return
    flags.check_writable(out)
    with steps(len(plan.data) * len(plan.systems)) as step:
        results = plan.evaluate(out, k, fresh, announce=step)
    if as_json:
        print(json.dumps([_summary(cell) for cell in results], indent=1))
    elif not results.records and len(results.errors) == 1:
        raise UserError(next(iter(results.errors)))
    else:
        run_report(results, shown, out, demo=not systems and not data)
    if not results.complete:
        raise typer.Exit(1)


def _checked_measure(measure: str) -> str:
    from r2med.errors import UserError
    from r2med.measure import DEFAULT, Measure

    shown = str(Measure.parse(measure))
    if shown not in map(str, DEFAULT):
        raise UserError(f"records do not hold {shown}: choose one of {', '.join(map(str, DEFAULT))}")
    return shown


def _check_used(plan: Plan, given: list[str]) -> None:
    """Raise UserError for flags about texts and LLMs where no system has a stage that they could change."""
    from r2med.errors import UserError

    if given and not any(system.expander or system.rerankers for system in plan.systems):
        raise UserError(f"{given[0]} is about texts of an LLM, and no system uses any: add --expand hyde --llm NAME")


def _summary(cell: Cell) -> dict[str, object]:
    record = cell.record
    if record is None:
        return {"system": cell.system, "dataset": cell.dataset, "error": cell.error}
    cost = record.cost
    return {
        "system": record.system,
        "dataset": record.dataset.name,
        "key": record.key,
        "mean": record.mean,
        "failures": record.failures + record.unordered,
        "llm_tokens": cost.llm_tokens,
        "cost_usd": cost.dollars if not cost.unpriced else None,
        "encoder_seconds": cost.encoder_seconds,
        "seconds_per_query": record.seconds_per_query,
    }
