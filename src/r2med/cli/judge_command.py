"""`r2med judge`: let LLMs label the documents that systems return and that have no label."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from r2med.cli import completion
from r2med.cli import options as flags
from r2med.cli.formats import Format, show_page

if TYPE_CHECKING:
    from r2med.foundation.runtime.runtime import Runtime


@flags.with_runtime(
    *("base_url", "llm_backend", "concurrency", "ask_again", "budget", "offline", "model_paths"), *flags.TRACE
)
def judge(
    systems: flags.ComparedSystems = None,
    data: flags.ComparedData = None,
    results: flags.Results = Path("results"),
    llm: Annotated[
        list[str] | None,
        typer.Option(
            "--llm",
            metavar="NAME",
            help="A judge. May be repeated: the judges then form a committee.",
            autocompletion=completion.llms,
            show_default=False,
        ),
    ] = None,
    depth: Annotated[int, typer.Option(min=1, help="Ranks of each system whose documents are labelled.")] = 10,
    rubric: Annotated[
        str,
        typer.Option(
            metavar="NAME|FILE",
            help="What to label: relevance, mimic (arguments for another answer), or a TOML file of your own.",
        ),
    ] = "relevance",
    untested: Annotated[
        bool, typer.Option("--untested", help="Go on if the labels give too few controls to test a judge.")
    ] = False,
    accept: Annotated[
        bool, typer.Option("--accept", help="Write the overlay, with a mark, if a judge fails controls in the pool.")
    ] = False,
    prompt: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="A prompt of your own instead of ours.", show_default=False),
    ] = None,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="The overlay to write.")] = Path(
        "overlays/judged.jsonl"
    ),
    max_failures: flags.MaxFailures = 0.1,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--plan",
            callback=flags.begin_plan,
            help="Print the calls, their cost and three prompts. No LLM is asked.",
        ),
    ] = False,
    form: Format = "text",
    as_json: flags.AsJSON = False,
    *,
    runtime: Runtime,
) -> None:
    """Label the documents that systems return and that have no label, in an overlay. The dataset is not changed."""
    from r2med.assessment.judgements.committee import plan_judging
    from r2med.assessment.judgements.judge_page import judge_json, judge_page
    from r2med.cli.plan_output import show_previews
    from r2med.cli.progress import steps
    from r2med.evaluation.records.collection import collect
    from r2med.evaluation.records.relabelled import recorded_datasets
    from r2med.foundation.core.errors import UserError
    from r2med.foundation.core.spec import joined_words

    if out.suffix != ".jsonl":
        raise UserError(f"{out} does not end in .jsonl: an overlay is a file of JSON lines, such as {out.stem}.jsonl")
    collection = collect(joined_words(systems or []), results, max_failures)
    datasets = list(recorded_datasets(collection, flags.comma_separated(data), runtime.store).values())
    plan = plan_judging(
        collection, datasets, llm or [], runtime, rubric=rubric, depth=depth, prompt=prompt, untested=untested
    )
    if dry_run:
        show_previews(plan.preview(), runtime)
        return
    flags.check_writable(out.parent)
    with runtime.network(), steps(2 * len(plan.llms)) as step:
        judged = plan.ask(step)
    written = str(out) if accept or not judged.fault else ""
    if written:
        judged.overlay.write(out)
    show_page(judge_page(judged, written), form, as_json, judge_json(judged, written))
    if not written:
        raise UserError(
            f"{judged.fault}: no overlay was written; the answers are kept, and r2med judge --accept writes them marked"
        )
