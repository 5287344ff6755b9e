"""`r2med run`: many systems on many datasets, a record each, one table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from r2med.cli import options as flags

if TYPE_CHECKING:
    from r2med.results.batch import Cell

DEMO_SYSTEMS = ("bm25", "hyde(author) → bm25")


def run(
    systems: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="SYSTEM",
            help="What to evaluate, e.g. bm25 or 'hyde(author) → bm25'. Default: the demo's two.",
            show_default=False,
        ),
    ] = None,
    data: Annotated[
        list[str] | None,
        typer.Option(help="A dataset, a group (R2MED, demo, …) or a folder; several with commas or repeated."),
    ] = None,
    out: Annotated[Path, typer.Option(help="Where records and runs go.")] = Path("results"),
    k: Annotated[int, typer.Option(help="Documents retrieved for each query.")] = 1000,
    measure: Annotated[str, typer.Option(help="The measure of the table; records hold them all.")] = "nDCG@10",
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Redo everything but what LLMs answered: that was paid for.")
    ] = False,
    model: Annotated[
        list[str] | None,
        typer.Option(metavar="MODULE:NAME", help="A model of your own with encode_queries and encode_corpus."),
    ] = None,
    model_path: flags.ModelPaths = None,
    device: flags.Device = "auto",
    dtype: flags.DType = "auto",
    backend: flags.Backend = "torch",
    trust_remote_code: flags.TrustRemoteCode = False,
    memory: flags.Memory = "2G",
    budget: flags.Budget = None,
    expand: Annotated[
        list[str] | None,
        typer.Option(metavar="METHOD", help="Expand queries first: hyde, query2doc, lamer, rm3, …; may be repeated."),
    ] = None,
    rerank: flags.Rerankers = None,
    depth: flags.Depth = 100,
    candidates: flags.Candidates = None,
    suite: Annotated[
        str, typer.Option(metavar="NAME|FILE", help="Many systems at once: paper, rerank, records or a TOML file.")
    ] = "",
    llm: flags.LLMs = None,
    base_url: flags.BaseURL = "",
    llm_backend: flags.LLMBackend = "",
    recorded: Annotated[bool, typer.Option("--recorded", help="Use recorded generations; no LLM is asked.")] = False,
    generations: flags.Generations = None,
    samples: flags.Samples = 1,
    prompts: flags.Prompts = None,
    concurrency: flags.Concurrency = 16,
    dry_run: flags.DryRun = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the means as JSON instead of tables.")] = False,
) -> None:
    """Evaluate systems on datasets. Without arguments: BM25 with and without expansion on the bundled demo."""
    import json

    from r2med.cli.plan import show_plan
    from r2med.cli.progress import steps
    from r2med.cli.tables import run_report
    from r2med.errors import UserError
    from r2med.measure import DEFAULT, Measure
    from r2med.results.batch import Batch
    from r2med.store import default_store
    from r2med.system import System
    from r2med.system.suites import suite as read_suite

    if k < 1:
        raise UserError(f"k must be at least 1, not {k}")
    shown = str(Measure.parse(measure))
    if shown not in map(str, DEFAULT):
        raise UserError(f"records do not hold {shown}: choose one of {', '.join(map(str, DEFAULT))}")
    of_suite = read_suite(suite) if suite else None
    about_llms = {
        "--recorded": recorded,
        "--generations": generations,
        "--prompts": prompts,
        "--base-url": base_url,
        "--llm-backend": llm_backend,
    }
    if of_suite:
        systems, data = [*(systems or []), *of_suite.specs], data or list(of_suite.data)
        llm, recorded = llm or ([of_suite.llm] if of_suite.llm else None), recorded or of_suite.recorded
    specs = [*(systems or []), *(f"py:{name}" for name in model or [])]
    if candidates is not None:
        specs += rerank or []
    else:
        specs = flags.reranked(specs or list(DEMO_SYSTEMS), rerank)
    specs, used = flags.with_llms(specs, llm)
    specs = flags.expanded(specs, expand, llm, samples, llms_used=used)
    store = default_store().fresh() if fresh else default_store()
    setup = flags.make_setup(
        model_path=model_path,
        memory=memory,
        budget=budget,
        device=device,
        dtype=dtype,
        backend=backend,
        trust_remote_code=trust_remote_code,
        base_url=base_url,
        concurrency=concurrency,
        llm_backend=llm_backend,
        prompts=prompts,
        recorded=recorded or generations is not None,
        generations=generations,
        depth=depth,
        candidates=candidates,
        store=store,
    )
    parsed = list({system.name: system for system in (System.parse(spec, setup) for spec in specs)}.values())
    if not parsed:
        raise UserError("--candidates needs a reranker: r2med run bge-reranker --candidates FILE")
    flags.check_used(parsed, about_llms)
    datasets = flags.datasets(data)
    if dry_run:
        show_plan(parsed, datasets, store)
        return
    check_writable(out)
    with steps(len(datasets) * len(parsed)) as step:
        cells = Batch(out, k, store, fresh, keep_going=bool(of_suite), announce=step).evaluate(parsed, datasets)
    if as_json:
        print(json.dumps([_summary(cell) for row in cells for cell in row], indent=1))
    else:
        run_report(cells, shown, out, demo=not systems and not data)
    if any(cell.record is None for row in cells for cell in row):
        raise typer.Exit(1)


def check_writable(out: Path) -> None:
    """Raise before the work is done, not after it."""
    import os
    import tempfile

    from r2med.errors import UserError

    try:
        out.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=out):
            pass
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else str(error)
        raise UserError(f"cannot write results to {out} ({reason}): choose another folder with --out") from None


def _summary(cell: Cell) -> dict[str, object]:
    record = cell.record
    if record is None:
        return {"system": cell.system, "dataset": cell.dataset, "error": cell.error}
    took = {
        "llm_tokens": record.llm_tokens,
        "cost_usd": record.cost_usd,
        "encoder_seconds": record.encoder_seconds,
        "seconds_per_query": record.seconds_per_query,
    }
    where = {"system": record.system, "dataset": record.dataset.name, "key": record.key}
    return {**where, "mean": record.mean, "failures": record.failures + record.unordered, **took}
