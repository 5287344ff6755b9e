"""`r2med generate`: let an LLM write texts for queries, in the layout of the benchmark's own generations."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from r2med.cli import completion
from r2med.cli import options as flags
from r2med.foundation.text.plurals import counted
from r2med.foundation.text.terminal_text import printable

if TYPE_CHECKING:
    from r2med.evaluation.running.text_generation import GeneratedTexts
    from r2med.foundation.runtime.runtime import Runtime

INCOMPLETE = 1
"""Exit code if the texts of a dataset were not written."""


@flags.with_runtime(*flags.WEIGHTS, *flags.ASKING, *flags.TRACE)
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
            help="The LLM that writes, if the method does not name it: one of r2med list llms, or any with --base-url.",
            autocompletion=completion.llms,
            rich_help_panel=flags.LLMS,
            show_default=False,
        ),
    ] = "",
    data: flags.Data = None,
    out: Annotated[
        Path,
        typer.Option("--out", "-o", help="Folder for the folders DATASET/METHOD/LLM.", rich_help_panel=flags.OUTPUT),
    ] = Path("generations"),
    samples: flags.Samples = 1,
    rounds: Annotated[int, typer.Option(help="Rounds of refinement.", rich_help_panel=flags.WHAT)] = 0,
    overwrite: Annotated[
        bool,
        typer.Option(
            "--overwrite",
            help="Replace files even if they have more texts than the new ones.",
            rich_help_panel=flags.OUTPUT,
        ),
    ] = False,
    dry_run: flags.DryRun = False,
    *,
    runtime: Runtime,
) -> None:
    """Write an LLM's texts for every query; `r2med run --generations DIR` searches with them, without an LLM."""
    from r2med.cli.plan_output import show_stages
    from r2med.cli.progress import steps
    from r2med.evaluation.running.text_generation import plan_generation

    plan = plan_generation(method, flags.dataset_names(data), llm, runtime, samples, rounds)
    if dry_run:
        show_stages(plan.asking, plan.datasets, runtime)
        return
    flags.check_writable(out)
    with steps(len(plan.datasets)) as step:
        made = plan.write(out, overwrite, step, _print)
    if any(texts.problem for texts in made):
        raise typer.Exit(INCOMPLETE)


def _print(texts: GeneratedTexts) -> None:
    import sys

    from r2med.foundation.runtime.typed_notices import as_typed

    if texts.file is None:
        print(f"r2med: {printable(as_typed(texts.problem))}", file=sys.stderr, flush=True)
    else:
        of_all = f"{texts.answered:,} of {counted(texts.queries, 'query', 'queries')}"
        print(f"{printable(str(texts.file))}: {of_all}", flush=True)
