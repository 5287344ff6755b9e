"""`r2med generate`: only make generations, in the layout of the benchmark's own."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from r2med.cli import completion
from r2med.cli import options as flags

if TYPE_CHECKING:
    from r2med.core.spec import Call
    from r2med.data import Dataset
    from r2med.expand.expansion import Expander
    from r2med.runtime.runtime import Runtime
    from r2med.store import Store

INCOMPLETE = 1
"""The exit code where the texts of a dataset were not written."""


@flags.with_runtime(*flags.WEIGHTS, *flags.ASKING)
def generate(
    method: Annotated[
        str,
        typer.Argument(
            help="hyde, query2doc, lamer or an agent; the LLM and settings in parentheses: 'hyde(o3-mini, rounds=2)'."
        ),
    ],
    llm: Annotated[
        str,
        typer.Option(
            help="The LLM that writes, if the method does not name it (r2med list llms), or any with --base-url.",
            autocompletion=completion.llms,
            rich_help_panel=flags.LLMS,
            show_default=False,
        ),
    ] = "",
    data: flags.Data = None,
    out: Annotated[
        Path,
        typer.Option("--out", "-o", help="Where the folders DATASET/METHOD/LLM go.", rich_help_panel=flags.OUTPUT),
    ] = Path("generations"),
    samples: flags.Samples = 1,
    rounds: Annotated[int, typer.Option(help="Rounds of refinement.", rich_help_panel=flags.WHAT)] = 0,
    overwrite: Annotated[
        bool,
        typer.Option(
            "--overwrite",
            help="Replace files even if they have more texts than there are now.",
            rich_help_panel=flags.OUTPUT,
        ),
    ] = False,
    dry_run: flags.DryRun = False,
    *,
    runtime: Runtime,
) -> None:
    """Write an LLM's texts for every query; `r2med run --generations DIR` searches with them, without an LLM."""
    from r2med.cli.plan import show_stages
    from r2med.core.stages import stage
    from r2med.data import load
    from r2med.expand.expansion import AskingStage, check
    from r2med.llm.llm_cards import resolve_llm

    store = runtime.store
    call = _call(method, llm, {"samples": (samples, 1), "rounds": (rounds, 0)})
    resolve_llm(call.arguments[0], runtime.setup)
    expander: Expander = stage(call, "expand").open(runtime)
    datasets = [load(word, store) for word in flags.dataset_names(data)]
    _check_names(datasets)
    check([expander], datasets)
    if dry_run:
        show_stages({str(call): expander} if isinstance(expander, AskingStage) else {}, datasets, runtime)
        return
    flags.check_writable(out)
    if not _write_all(call, expander, datasets, out, overwrite, store):
        raise typer.Exit(INCOMPLETE)


def _call(method: str, llm: str, given: dict[str, tuple[int, int]]) -> Call:
    """Return the one expansion that is wanted; `given` are flags that are settings too, each with its default."""
    from r2med.core import stages
    from r2med.core.errors import UserError, nearest
    from r2med.core.spec import Call, parse_stage
    from r2med.system.composing import llm_names

    asking = [name for name in stages.names("expand") if stages.stage_class(name, "expand").needs == "llm"]
    call, *others = parse_stage(method)
    if others or call.name not in asking:
        raise UserError(f"{method} asks no LLM for texts{nearest(call.name, asking)}: {', '.join(asking)} do")
    if len(call.arguments) > 1 or call.depth is not None:
        raise UserError(f"{call}: it names one LLM, and settings are written KEY=VALUE")
    named = call.arguments[0] if call.arguments else llm
    if not named:
        raise UserError(f"{call} names no LLM: r2med generate '{call.name}(o3-mini)', or --llm NAME (r2med list llms)")
    if llm and named != llm:
        raise UserError(f"{call} and --llm {llm} name two LLMs: the texts of one LLM are generated at a time")
    llm = named
    if "query" in dict(call.settings):
        raise UserError(f"{call}: query says how texts are searched: give it to r2med run, which searches them")
    if len(llm_names([llm])) > 1:
        raise UserError(f"--llm {llm}: the texts of one LLM are generated at a time")
    flagged = [(key, str(value)) for key, (value, plain) in given.items() if value != plain]
    return Call(call.name, (llm,), (*flagged, *call.settings))


def _check_names(datasets: list[Dataset]) -> None:
    """Raise UserError if two datasets would be written into one folder."""
    from collections import Counter

    from r2med.core.errors import UserError

    for name, count in Counter(dataset.name for dataset in datasets).items():
        if count > 1:
            raise UserError(f"{count} datasets are named {name}, and so would be their folders: generate one at a time")


def _write_all(
    call: Call, expander: Expander, datasets: list[Dataset], out: Path, overwrite: bool, store: Store
) -> bool:
    """Write the texts of each dataset; return whether all of them were written."""
    import logging
    import sys

    from r2med.cli.progress import steps
    from r2med.expand.generations import NotWrittenError, write_generations
    from r2med.text.terminal_text import printable

    whole = True
    with steps(len(datasets)) as step:
        for dataset in datasets:
            step(f"{dataset.name} · {call}")
            expansion = expander.expand(dataset, store)
            for notice in expansion.notices:
                logging.getLogger("r2med").info("%s", notice)
            made, all_of_them = len(expansion.queries) - expansion.failures, len(expansion.queries)
            try:
                path = write_generations(expansion, dataset, out, call.name, call.arguments[0], overwrite=overwrite)
                print(f"{printable(str(path))}: {made} of {all_of_them} queries", flush=True)
                whole &= "budget" not in expansion.failure_kinds
            except NotWrittenError as reason:
                whole = False
                print(f"r2med: {printable(str(reason))}", file=sys.stderr, flush=True)
    return whole
