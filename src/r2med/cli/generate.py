"""`r2med generate`: only make generations, in the layout of the benchmark's own."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from r2med.cli import options as flags


def generate(
    method: Annotated[str, typer.Argument(help="hyde, query2doc or lamer.")],
    llm: Annotated[str, typer.Option(help="The LLM that writes (r2med llms list), or any with --base-url.")],
    data: Annotated[list[str] | None, typer.Option(help="Datasets, groups or folders.")] = None,
    out: Annotated[Path, typer.Option(help="Where the folders DATASET/METHOD/LLM go.")] = Path("generations"),
    base_url: flags.BaseURL = "",
    samples: flags.Samples = 1,
    rounds: Annotated[int, typer.Option(help="Rounds of refinement.")] = 0,
    prompts: flags.Prompts = None,
    concurrency: flags.Concurrency = 16,
    budget: flags.Budget = None,
) -> None:
    """Write an LLM's texts for every query; `r2med run --generations DIR` searches with them, without an LLM."""
    from r2med.cli.progress import steps
    from r2med.cli.run import check_writable
    from r2med.data import load, names
    from r2med.errors import UserError
    from r2med.expand.folder import write_generations
    from r2med.expand.generate import GENERATED
    from r2med.expand.registry import build
    from r2med.spec import Call
    from r2med.store import default_store

    if method not in GENERATED:
        raise UserError(f"{method} asks no LLM: {', '.join(GENERATED)} do")
    store = default_store()
    chosen = flags.make_expansion(base_url, concurrency, budget, False, None, prompts)
    settings = tuple((k, str(v)) for k, v, plain in (("samples", samples, 1), ("rounds", rounds, 0)) if v != plain)
    expander = build(Call(method, (llm,), settings), chosen, store)
    if not hasattr(expander, "llm") or isinstance(expander.llm, str):
        from r2med.models.llm_cards import llm_card

        llm_card(llm)  # raises: no such LLM
    words = list(dict.fromkeys(name for word in data or ["demo"] for name in names(word)))
    check_writable(out)
    with steps(len(words)) as step:
        for word in words:
            dataset = load(word, store)
            step(f"{dataset.name} · {expander.name}")
            expansion = expander.expand(dataset, store)
            path = write_generations(expansion, dataset, out, method, llm)
            made = len(expansion.queries) - expansion.failures
            why = ", ".join(f"{count} {kind}" for kind, count in expansion.failure_kinds.items())
            print(f"{path}: {made} of {len(expansion.queries)} queries{f' ({why})' if why else ''}", flush=True)
