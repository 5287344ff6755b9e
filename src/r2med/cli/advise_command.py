"""`r2med advise`: recommend a pipeline for the user's own data."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from r2med.cli import completion
from r2med.cli import options as flags
from r2med.cli.formats import Format, show_page
from r2med.foundation.core.notices import Notice

if TYPE_CHECKING:
    from r2med.evaluation.advice.advice import Advice, Rung
    from r2med.foundation.pages.cells import Marked
    from r2med.foundation.pages.page import Page
    from r2med.foundation.runtime.runtime import Runtime

UNKNOWN = "unknown"


@flags.with_runtime(*flags.WEIGHTS, *flags.ASKING, *flags.TRACE)
def advise(
    dataset: Annotated[
        str, typer.Argument(help="A dataset or a folder with judged questions.", autocompletion=completion.datasets)
    ],
    llm: flags.LLMs = None,
    model: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="A dense model to try; may be repeated. Default: those on this machine.",
            show_default=False,
            rich_help_panel=flags.MODELS,
        ),
    ] = None,
    rerank: flags.Rerankers = None,
    give_up: Annotated[
        float | None,
        typer.Option(
            metavar="POINTS",
            min=0,
            help="Points of nDCG@10 that you would give up for a cheaper or faster pipeline. "
            "Needs 100 judged questions. Default: none.",
            show_default=False,
        ),
    ] = None,
    out: Annotated[
        Path,
        typer.Option("--out", "-o", help="Folder for the advice, which the board shows.", rich_help_panel=flags.OUTPUT),
    ] = Path("results"),
    form: Format = "text",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.", rich_help_panel=flags.OUTPUT)] = False,
    *,
    runtime: Runtime,
) -> None:
    """Try the pipelines that can run here, cheap ones first, and recommend one of them."""
    from contextlib import ExitStack
    from dataclasses import asdict

    from r2med.cli.progress import steps
    from r2med.data import load
    from r2med.evaluation.advice import ladder
    from r2med.evaluation.advice.advice import SUFFIX
    from r2med.evaluation.running.evaluation import slug
    from r2med.foundation.store.files import refuse_other_case

    flags.check_writable(out)
    loaded = load(dataset, runtime.store)
    path = out / f"{slug(loaded.name)}{SUFFIX}"
    refuse_other_case(path, out)
    with ExitStack() as stack:
        made = ladder.advise(
            loaded,
            runtime,
            llms=llm or [],
            models=model,
            rerankers=rerank,
            give_up=give_up,
            announce=lambda total: stack.enter_context(steps(total)),
        )
    made.write(path)
    show_page(_page(made, path), form, as_json, asdict(made))


def _page(advice: Advice, path: Path) -> Page:
    from r2med.foundation.pages.cells import Column
    from r2med.foundation.pages.page import Note, Page, Section, Table

    columns = (
        Column("Pipeline"),
        Column("nDCG@10", "score"),
        Column("expected loss", "score", 1),
        Column("adjusted p", "p"),
        Column("p50 s", "seconds", missing=UNKNOWN),
        Column("p95 s", "seconds", missing=UNKNOWN),
        Column("$ / 1,000", "dollars", missing=UNKNOWN),
    )
    table = Table(columns, [_row(rung, advice) for rung in advice.rungs])
    lines = (*advice.verdict(), f"Use it: {advice.serve}", f"The ladder as a picture: r2med board {path.parent}")
    notes = [Note(line, whole=True) for line in _notes(advice)]
    verdict = [Note(line, whole=True) for line in lines]
    return Page(f"Advice for {advice.dataset}", [Section("", [table, *notes]), Section("", verdict)], kind="advice")


def _row(rung: Rung, advice: Advice) -> list[Marked]:
    from r2med.foundation.pages.cells import Marked
    from r2med.foundation.pages.estimate import Estimate

    loss = Estimate(rung.behind, rung.behind_low, rung.behind_high) if rung.behind else None
    p = None if rung.note or not rung.behind else rung.p
    values = (rung.system, Estimate(rung.value, rung.low, rung.high), loss, p, rung.p50, rung.p95, rung.dollars)
    return [Marked(value, bold=rung.system == advice.best) for value in values]


def _notes(advice: Advice) -> list[str]:
    """Return the notes below the table."""
    tuned = [rung for rung in advice.rungs if rung.tuned > 1]
    lines = [
        f"{rung.system}: {rung.note}, after {rung.questions} of {advice.questions}"
        for rung in advice.rungs
        if rung.note
    ]
    lines += [
        f"{rung.system}: {rung.unranked:,} {'passage was' if rung.unranked == 1 else 'passages were'} shown to the "
        "reranker and not ranked"
        for rung in advice.rungs
        if rung.unranked
    ]
    if tuned:
        tried = ", ".join(f"{rung.tuned} settings of {rung.group}" for rung in tuned)
        lines.append(
            f"Tried: {tried}. A question's score comes from settings chosen on other questions; the settings shown are "
            "those that all questions together prefer."
        )
    if len(advice.rungs) > 1:
        lines.append("p is adjusted for the number of comparisons with the best (Holm).")
    return [*lines, *(Notice("left out: ", line) for line in advice.left_out)]
