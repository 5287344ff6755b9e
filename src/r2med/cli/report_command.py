"""`r2med report`: write the table of a paper and its figures."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from r2med.cli import options as flags
from r2med.foundation.core.spec import joined_words
from r2med.foundation.text.plurals import counted


def report(
    systems: flags.ComparedSystems = None,
    results: flags.Results = Path("results"),
    data: flags.ComparedData = None,
    overlay: flags.Overlays = None,
    estimate: Annotated[
        bool,
        typer.Option(
            "--estimate", help="With --overlay: also write a table of the scores that people's labels would give."
        ),
    ] = False,
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for tables and figures.")] = Path("report"),
    measure: flags.ComparedMeasure = "",
    baseline: flags.Baseline = "",
    between: Annotated[
        tuple[str, str] | None,
        typer.Option(
            metavar="A B",
            help="The systems of the figure body-systems. Default: the best, and the baseline or the second best.",
            show_default=False,
        ),
    ] = None,
    answers: flags.Answers = False,
    condition: flags.AnswerCondition = "retrieved",
    max_failures: flags.MaxFailures = 0.1,
    resamples: flags.Resamples = 10_000,
) -> None:
    """Write the table of a paper (Markdown, LaTeX, CSV) and its figures (SVG, PNG)."""
    from r2med.cli.console import console, plain
    from r2med.evaluation.comparison.report import report as write
    from r2med.foundation.runtime.typed_notices import as_typed

    flags.check_writable(out)
    written = write(
        *joined_words(systems or []),
        out=out,
        results=results,
        max_failures=max_failures,
        measure=measure,
        baseline=baseline,
        between=between or (),
        resamples=resamples,
        data=flags.comma_separated(data),
        overlays=overlay or (),
        estimate=estimate,
        answers=answers,
        condition=condition,
    )
    output = console()
    for notice in written.notices:
        output.print(plain(f"Note: {as_typed(notice)}.", "yellow"), soft_wrap=True)
    names = ", ".join(dict.fromkeys(file.stem for file in written.files))
    output.print(plain(f"{counted(len(written.files), 'file')} in {out}/: {names}."), soft_wrap=True)
