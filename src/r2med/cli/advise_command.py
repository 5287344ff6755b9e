"""`r2med advise`: which pipeline to use on one's own data."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from r2med.cli import completion
from r2med.cli import options as flags

if TYPE_CHECKING:
    from r2med.advice.advice import Advice, Rung
    from r2med.runtime.setup import Setup


@flags.with_setup(*flags.WEIGHTS, *flags.ASKING)
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
        typer.Option("--out", "-o", help="Where the advice is kept, for the board.", rich_help_panel=flags.OUTPUT),
    ] = Path("results"),
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.", rich_help_panel=flags.OUTPUT)] = False,
    *,
    setup: Setup,
) -> None:
    """Try the pipelines that can run here, the cheap ones first, and say which one to use."""
    from contextlib import ExitStack
    from dataclasses import asdict

    from r2med.advice import ladder
    from r2med.advice.advice import SUFFIX
    from r2med.cli.console import print_json
    from r2med.cli.progress import steps
    from r2med.data import load
    from r2med.evaluation.evaluation import slug

    flags.check_writable(out)
    loaded = load(dataset, setup.store)
    with ExitStack() as stack:
        made = ladder.advise(
            loaded,
            setup,
            llms=llm or [],
            models=model,
            rerankers=rerank,
            give_up=give_up,
            announce=lambda total: stack.enter_context(steps(total)),
        )
    path = out / f"{slug(loaded.name)}{SUFFIX}"
    made.write(path)
    if as_json:
        print_json(asdict(made))
    else:
        _show(made, path)


def _show(advice: Advice, path: Path) -> None:
    from r2med.cli.console import console, plain
    from r2med.cli.figures import Figures, labelled

    output = console()
    names = [rung.system for rung in advice.rungs]
    heads = ("nDCG@10", "95 % interval", "expected loss", "p", "p50 s", "p95 s", "$ / 1,000")
    rows = [[plain(cell, "bold" if rung.system == advice.best else "") for cell in _row(rung)] for rung in advice.rungs]
    figures = Figures("Pipeline", heads, rows)
    labels, legend = labelled(names, figures.room(names, output.width))
    for line in legend:
        output.print(plain(line), soft_wrap=True)
    figures.print(output, labels)
    for line in (
        *_notes(advice),
        "",
        *advice.verdict(),
        f"Use it: {advice.serve}",
        f"The ladder as a picture: r2med board {path.parent}",
    ):
        output.print(plain(line), soft_wrap=True)


def _row(rung: Rung) -> tuple[str, ...]:
    from r2med.advice.advice import loss
    from r2med.evaluation.results import UNKNOWN, shown_seconds

    return (
        f"{rung.value:.2f}",
        "–" if rung.low is None or rung.high is None else f"{rung.low:.1f} to {rung.high:.1f}",
        loss(rung).replace(" points", "") if rung.behind else "–",
        "–" if rung.note or not rung.behind else f"{rung.p:.3f}",
        UNKNOWN if rung.p50 is None else shown_seconds(rung.p50),
        UNKNOWN if rung.p95 is None else shown_seconds(rung.p95),
        UNKNOWN if rung.dollars is None else f"{rung.dollars:.2f}",
    )


def _notes(advice: Advice) -> list[str]:
    """Return what the table does not say by itself."""
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
    return [*lines, *(f"left out: {line}" for line in advice.left_out)]
