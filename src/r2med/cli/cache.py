"""`r2med cache`: what is kept on this machine, whether it is still what was written, and removing it."""

from __future__ import annotations

from typing import Annotated

import typer

from r2med.cli import completion
from r2med.cli import options as flags

cache = typer.Typer(help="List, check and clear what is kept for later runs.", no_args_is_help=True)

DAMAGED = 1
"""The exit code where something was damaged."""


@cache.command("list")
def list_(as_json: flags.AsJSON = False) -> None:
    """Show what is kept, by kind, dataset and model, and the answers of each LLM."""
    from r2med.cli.console import console, plain, print_json, table
    from r2med.llm.journal import answers_by_model
    from r2med.store import default_store
    from r2med.store.holdings import holdings

    store = default_store()
    held, answers = holdings(store), {model: len(keys) for model, keys in answers_by_model(store).items()}
    if as_json:
        kept = [{"kind": h.kind, "dataset": h.dataset, "model": h.model, "bytes": h.size} for h in held]
        print_json({"folder": str(store.root), "kept": kept, "answers": answers})
        return
    rows = [(h.kind, h.dataset, h.model, f"{len(h.paths):,}", _bytes(h.size)) for h in held]
    rows += [("answers", "", model, f"{count:,}", "") for model, count in answers.items()]
    output = console()
    output.print(table(("kind", "dataset", "model", "number", "size"), rows, numbers=("number", "size")))
    output.print(plain(f"{_bytes(sum(h.size for h in held))} in {store.root}"), soft_wrap=True)


@cache.command()
def clear(
    dataset: Annotated[
        str, typer.Option(help="What was made of this dataset.", autocompletion=completion.datasets)
    ] = "",
    model: Annotated[
        str, typer.Option(help="Vectors and scores of this model.", autocompletion=completion.models)
    ] = "",
    llm: Annotated[
        str, typer.Option(help="The answers of this LLM: they are paid for again.", autocompletion=completion.llms)
    ] = "",
    everything: Annotated[
        bool, typer.Option("--all", help="Everything but answers of LLMs and embedding APIs.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Remove it; without this flag it is only counted.")] = False,
) -> None:
    """Remove what is kept of a dataset, a model or an LLM; it is made or asked for again when it is needed."""
    from r2med.cli.terminal_text import printable
    from r2med.errors import UserError, unknown
    from r2med.llm.journal import answers_by_model, forget_answers
    from r2med.store import default_store
    from r2med.store.holdings import clear as remove
    from r2med.store.holdings import holdings

    if not (dataset or model or llm or everything):
        raise UserError(
            "say what to clear: --dataset NAME, --model NAME, --llm NAME or --all; r2med cache list shows it"
        )
    store = default_store()
    answers = answers_by_model(store)
    if llm and llm not in answers:
        raise unknown("answers of", llm, answers)
    held = [holding for holding in holdings(store) if holding.is_about(dataset, model)]
    named = dataset or model
    wanted = [holding for holding in held if named or (everything and holding.kind != "api")]
    if yes:
        for holding in wanted:
            remove(store, holding)
        if llm:
            forget_answers(store, answers[llm])
    files = f"{sum(len(h.paths) for h in wanted):,} artefacts ({_bytes(sum(h.size for h in wanted))})"
    asked = f" and {len(answers[llm]):,} answers of {llm}" if llm else ""
    print(printable(f"{files}{asked} {'removed' if yes else 'would be removed: add --yes to do it'}"))


@cache.command()
def verify() -> None:
    """Read every file of the store again, byte by byte, and remove what is damaged; it is made again when needed."""
    from r2med.cli.progress import steps
    from r2med.cli.terminal_text import printable
    from r2med.engine.reporting import Reporter
    from r2med.store import default_store
    from r2med.store.artefacts import MANIFEST
    from r2med.store.verify import verify_store

    store = default_store()
    total = sum(1 for pattern in (f"*/*/{MANIFEST}", "**/*.sqlite") for _ in store.root.glob(pattern))
    sound = size = 0
    damaged = []
    with steps(1) as step:
        step(f"checking {store.root}")
        reporter = Reporter("artefacts", total)
        for verified in verify_store(store, mend=True):
            reporter.advance(1)
            size += verified.size
            if verified.fault:
                damaged.append(verified)
            else:
                sound += 1
    for verified in damaged:
        print(printable(f"damaged: {verified.path}: {verified.fault} ({_MENDED[verified.kind == 'rows']})"))
    print(printable(f"{store.root}: {sound:,} artefacts are sound, {len(damaged):,} damaged; {_bytes(size)}"))
    if damaged:
        raise typer.Exit(DAMAGED)


_MENDED = {
    False: "it was removed, and is made again when it is next needed",
    True: "what can be read of it is kept, the rest is made again when it is next needed",
}
"""What becomes of a damaged artefact, and of a damaged table of rows."""


def _bytes(number: float) -> str:
    for unit in ("bytes", "kB", "MB", "GB"):
        if number < 1000:
            return f"{number:.3g} {unit}"
        number /= 1000
    return f"{number:.3g} TB"
