"""`r2med answer`: let LLMs answer the questions of datasets from the results of systems."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from r2med.cli import completion
from r2med.cli import options as flags
from r2med.cli.formats import Format, show_page
from r2med.evaluation.records.answer_words import CONDITIONS, AnswerForm
from r2med.foundation.core.errors import UserError
from r2med.foundation.core.spec import joined_words

if TYPE_CHECKING:
    from r2med.foundation.runtime.runtime import Runtime


@flags.with_runtime(*flags.WEIGHTS, *flags.ASKING, "engine", "recorded", "generations", *flags.TRACE)
def answer(
    systems: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="SYSTEM",
            help="Systems whose results are read: bm25, 'hyde(author) → bm25', ….",
            show_default=False,
            autocompletion=completion.systems,
        ),
    ] = None,
    readers: Annotated[
        list[str] | None,
        typer.Option(
            "--reader",
            metavar="LLM",
            help="An LLM that reads and answers. May be repeated.",
            autocompletion=completion.llms,
            show_default=False,
        ),
    ] = None,
    data: flags.Data = None,
    judge: Annotated[
        str,
        typer.Option(
            metavar="LLM",
            help="An LLM that judges open answers. Without it, only an answer that is the reference is decided.",
            autocompletion=completion.llms,
            show_default=False,
        ),
    ] = "",
    passages: Annotated[int, typer.Option(min=1, help="Number of passages that a reader reads.")] = 5,
    conditions: Annotated[
        list[str] | None,
        typer.Option(
            "--condition",
            metavar="NAME",
            help=f"What is read: {flags.choices(CONDITIONS)}. May be repeated. Default: all of them.",
            show_default=False,
        ),
    ] = None,
    answer_form: Annotated[
        AnswerForm | None,
        typer.Option(
            "--form",
            help="Ask for an answer in the reader's own words, or for one of several options. "
            "Default: as the card of the dataset says.",
            show_default=False,
        ),
    ] = None,
    nuggets: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="The facts that answers must contain, for the judge. Default: nuggets.jsonl of the dataset.",
            show_default=False,
        ),
    ] = None,
    queries: Annotated[int, typer.Option(min=0, help="Only the first questions of each dataset. 0: all.")] = 0,
    untested: Annotated[
        bool, typer.Option("--untested", help="Go on if the answers give too few controls to test the judge.")
    ] = False,
    accept: Annotated[
        bool,
        typer.Option("--accept", help="Write records, with a mark, if the judge fails controls among the answers."),
    ] = False,
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for records.", rich_help_panel=flags.OUTPUT)] = Path(
        "results"
    ),
    dry_run: Annotated[
        bool,
        typer.Option(
            "--plan",
            callback=flags.begin_plan,
            help="Print the calls of readers and judge, their cost and three prompts. Nothing is asked or searched.",
            rich_help_panel=flags.OUTPUT,
        ),
    ] = False,
    form: Format = "text",
    as_json: flags.AsJSON = False,
    *,
    runtime: Runtime,
) -> None:
    """Let LLMs answer questions from the results of systems, and record every answer with what was read."""
    from r2med.assessment.answers.answer_page import answer_json, answer_page
    from r2med.assessment.answers.answering import plan_answers
    from r2med.cli.plan_output import show_previews
    from r2med.cli.progress import steps

    plan = plan_answers(
        joined_words(systems or []),
        readers or [],
        flags.dataset_names(data),
        runtime,
        judge=judge,
        passages=passages,
        conditions=flags.comma_separated(conditions) or CONDITIONS,
        form=answer_form,
        nuggets=nuggets or "",
        queries=queries,
        untested=untested,
        accept=accept,
    )
    if dry_run:
        show_previews(plan.preview(out), runtime)
        return
    flags.check_writable(out)
    with steps(plan.steps) as step:
        answered = plan.answer(out, step)
    if not answered.records and answered.errors:
        raise UserError(answered.errors[0])
    show_page(answer_page(answered, str(out)), form, as_json, answer_json(answered))
    if answered.errors:
        raise typer.Exit(1)
