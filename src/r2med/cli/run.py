"""`r2med run`: many systems on many datasets, a record each, one table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from r2med.cli import options as flags

if TYPE_CHECKING:
    from r2med.data import Dataset
    from r2med.expand import Expansion
    from r2med.results import Record
    from r2med.store import Store
    from r2med.system import System

DEMO_SYSTEMS = ("bm25", "hyde(author) → bm25")


def run(
    systems: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[SYSTEM]...",
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
    fresh: Annotated[bool, typer.Option("--fresh", help="Redo everything instead of reusing what is valid.")] = False,
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
        list[str] | None, typer.Option(metavar="METHOD", help="Expand queries first: hyde, query2doc, lamer, rm3, …")
    ] = None,
    llm: flags.LLMs = None,
    base_url: flags.BaseURL = "",
    recorded: Annotated[bool, typer.Option("--recorded", help="Use recorded generations; no LLM is asked.")] = False,
    generations: flags.Generations = None,
    samples: flags.Samples = 1,
    prompts: flags.Prompts = None,
    concurrency: flags.Concurrency = 16,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print calls, tokens, cost and three prompts; ask and evaluate nothing.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the means as JSON instead of tables.")] = False,
) -> None:
    """Evaluate systems on datasets. Without arguments: BM25 with and without expansion on the bundled demo."""
    import json

    from r2med.cli.plan import show_plan
    from r2med.cli.tables import run_report
    from r2med.data import names
    from r2med.errors import UserError
    from r2med.measure import DEFAULT, Measure
    from r2med.store import default_store
    from r2med.system import System

    if k < 1:
        raise UserError(f"k must be at least 1, not {k}")
    shown = str(Measure.parse(measure))
    if shown not in map(str, DEFAULT):
        raise UserError(f"records do not hold {shown}: choose one of {', '.join(map(str, DEFAULT))}")
    options = flags.make_options(model_path, device, dtype, backend, trust_remote_code, memory, budget)
    expansion = flags.make_expansion(base_url, concurrency, budget, recorded, generations, prompts)
    specs = [*(systems or []), *(f"py:{name}" for name in model or [])] or list(DEMO_SYSTEMS)
    specs = flags.expanded(specs, expand, llm, samples)
    store = default_store().starting_over() if fresh else default_store()
    shared: dict[str, Expansion] = {}
    every = [System.parse(spec, options, expansion, store, shared) for spec in specs]
    parsed = list({system.name: system for system in every}.values())
    words = [word for entry in data or ["demo"] for word in ([entry] if Path(entry).exists() else entry.split(","))]
    datasets = list(dict.fromkeys(name for word in words for name in names(word.strip())))
    if dry_run:
        show_plan(parsed, datasets, store)
        return
    check_writable(out)
    records, reused = _evaluate_all(parsed, datasets, out, k, store, fresh)
    if as_json:
        print(json.dumps([_summary(record) for row in records for record in row], indent=1))
        return
    run_report(records, shown, out, reused, demo=not systems and not data)


def _evaluate_all(
    systems: list[System], datasets: list[str], out: Path, k: int, store: Store, fresh: bool
) -> tuple[list[list[Record]], int]:
    """Return a row of records per system, and how many were read back."""
    from r2med.cli.progress import steps
    from r2med.data import load
    from r2med.results import evaluate
    from r2med.results.evaluation import is_recorded

    opened: dict[str, Dataset] = {}
    rows: list[list[Record]] = []
    reused = 0
    with steps(len(datasets) * len(systems)) as step:
        for system in systems:  # not datasets first: a model is then loaded once, however many systems there are
            rows.append([])
            for name in datasets:
                dataset = opened[name] = opened.get(name) or load(name, store)
                step(f"{dataset.name} · {system.name}")
                reused += not fresh and is_recorded(system, dataset, out, k, store)
                rows[-1].append(evaluate(system, dataset, out, k, store, fresh=fresh))
    return rows, reused


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


def _summary(record: Record) -> dict[str, object]:
    return {"system": record.system, "dataset": record.dataset.name, "key": record.key, "mean": record.mean}
