"""`r2med nuggets`: take the reference answers of a dataset apart into the facts that an answer must contain."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from r2med.cli import completion
from r2med.cli import options as flags

if TYPE_CHECKING:
    from r2med.foundation.runtime.runtime import Runtime


@flags.with_runtime(
    *("base_url", "llm_backend", "concurrency", "ask_again", "budget", "offline", "model_paths"), *flags.TRACE
)
def nuggets(
    data: Annotated[
        str,
        typer.Option(
            metavar="NAME", help="The dataset, by its name or its folder.", autocompletion=completion.datasets
        ),
    ],
    llm: Annotated[
        str,
        typer.Option(metavar="NAME", help="The LLM that writes the nuggets.", autocompletion=completion.llms),
    ],
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="The file to write.")] = Path(
        "nuggets.jsonl"
    ),
    dry_run: Annotated[
        bool,
        typer.Option(
            "--plan",
            callback=flags.begin_plan,
            help="Print the calls, their cost and three prompts. No LLM is asked.",
        ),
    ] = False,
    *,
    runtime: Runtime,
) -> None:
    """Take reference answers apart into nuggets: the facts that an answer must contain. People can review them."""
    import shlex

    from r2med.assessment.answers.nugget_making import plan_nuggets
    from r2med.cli.plan_output import show_previews
    from r2med.cli.progress import steps
    from r2med.data.loading import load
    from r2med.foundation.core.errors import UserError
    from r2med.foundation.text.plurals import counted
    from r2med.foundation.text.terminal_text import printable
    from r2med.models.llm.costs import listed_kinds

    if out.suffix != ".jsonl":
        raise UserError(f"{out} does not end in .jsonl: nuggets are JSON lines, such as {out.stem}.jsonl")
    dataset = load(data, runtime.store)
    plan = plan_nuggets(dataset, llm, runtime)
    if dry_run:
        show_previews({plan.llm: plan.preview()}, runtime)
        return
    flags.check_writable(out.parent)
    with runtime.network(), steps(1) as step:
        step(f"{dataset.name} · nuggets · {plan.llm}")
        made = plan.make()
    made.nuggets.write(out)
    vital = sum(nugget.vital for nugget in made.nuggets)
    questions = counted(len(made.nuggets.by_query), "question")
    print(printable(f"{counted(len(made.nuggets), 'nugget')} for {questions} in {out}, {vital:,} of them vital"))
    if made.failures:
        kinds = listed_kinds(made.kinds)
        print(printable(f"{counted(len(made.failures), 'question')} without nuggets ({kinds}): run it again to retry"))
    review = f"r2med review --nuggets {shlex.quote(str(out))} --data {shlex.quote(data)}"
    print(printable(f"people check them with {review}"))
