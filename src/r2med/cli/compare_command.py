"""`r2med compare`: which differences between systems are real."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from r2med.cli import options as flags

if TYPE_CHECKING:
    from rich.console import Console

    from r2med.comparison.comparison import Comparison, Pair

TOLD = 10
"""Pairs that get sentences; of more, the ranking and its classes tell."""

SHOWN = 3
"""Pairs that are shown dataset by dataset."""


def compare(
    systems: flags.ComparedSystems = None,
    results: flags.Results = Path("results"),
    data: flags.ComparedData = None,
    measure: flags.OneMeasure = "nDCG@10",
    baseline: flags.Baseline = "",
    slice_by: Annotated[
        list[str] | None,
        typer.Option(
            "--slice",
            metavar="KIND",
            help="Also by task, scenario, body-system, length or positives; may be repeated.",
            show_default=False,
        ),
    ] = None,
    max_failures: flags.MaxFailures = 0.1,
    resamples: flags.Resamples = 10_000,
    seed: Annotated[int, typer.Option(min=0, help="What they are drawn with.")] = 0,
    form: Annotated[str, typer.Option("--format", metavar="NAME", help="text, markdown, latex or csv.")] = "text",
    as_json: flags.AsJSON = False,
) -> None:
    """Compare systems by their records: paired by query, stratified by dataset."""
    from r2med.cli.console import print_json
    from r2med.comparison.comparison import compare as compute
    from r2med.comparison.paper_table import FORMATS
    from r2med.comparison.report_tables import pair_table
    from r2med.core.errors import unknown
    from r2med.core.spec import joined_words

    if form not in ("text", *FORMATS):
        raise unknown("format", form, ("text", *FORMATS))
    compared = compute(
        *joined_words(systems or []),
        results=results,
        max_failures=max_failures,
        measure=measure,
        baseline=baseline,
        slice_by=slice_by or (),
        resamples=resamples,
        data=flags.comma_separated(data),
        seed=seed,
    )
    if as_json:
        print_json(compared.as_json())
    elif form == "text":
        _print(compared)
    else:
        print(FORMATS[form](pair_table(compared)), end="")


def _print(compared: Comparison) -> None:
    from r2med.cli.console import console, plain
    from r2med.comparison import verdicts

    output = console()
    _print_ranking(output, compared)
    output.print(plain(verdicts.class_rule(compared), "dim"))
    pairs = len(compared.pairs)
    if pairs > TOLD:
        output.print()
        line = f"Of {pairs:,} pairs {sum(pair.significant for pair in compared.pairs):,} differ: --json has them all."
        output.print(plain(line))
    for pair in compared.pairs if pairs <= TOLD else ():
        output.print()
        output.print(plain(verdicts.verdict(pair, pairs), "bold" if pair.significant else ""))
        output.print(plain(verdicts.details(pair)))
        if pairs <= SHOWN:
            _print_gaps(output, compared, pair)
    output.print()
    output.print(plain(verdicts.detectable(compared)))
    for warning in verdicts.warnings(compared):
        output.print(plain(f"Note: {warning}", "yellow"))


def _print_ranking(output: Console, compared: Comparison) -> None:
    """Print the systems, the best first, with their classes where there are any."""
    from r2med.cli.console import plain
    from r2med.cli.figures import Figures, labelled
    from r2med.data.dataset_cards import short_name
    from r2med.text.terminal_text import printable

    numbers = compared.classes()
    rows = []
    for standing in compared.ranked:
        mean = standing.mean
        assert mean is not None  # a dataset that a system lacks is left out of the comparison
        figures = [f"{standing.datasets[dataset].value:.2f}" for dataset in compared.datasets]
        cells = (f"{numbers.get(standing.system, '–')}", f"{mean.value:.2f}", mean.interval(".2f"), *figures)
        rows.append([plain(cell, "bold" if column == 1 else "") for column, cell in enumerate(cells)])
    table = Figures("system", ("class", "mean", "95 %", *map(short_name, compared.datasets)), rows)
    names = [printable(standing.system) for standing in compared.ranked]
    names, legend = labelled(names, table.room(names, output.width))
    output.print(plain(f"{compared.measure} × 100", "bold"))
    for line in legend:
        output.print(plain(line))
    table.print(output, names)


def _print_gaps(output: Console, compared: Comparison, pair: Pair) -> None:
    """Print where two systems differ: on which datasets, slices and queries."""
    from r2med.cli.console import plain, table
    from r2med.comparison.report_tables import gaps
    from r2med.comparison.verdicts import movement, probability, signed

    output.print(plain(f"{pair.a} less {pair.b}:"))
    heads = ("on", "difference", "low", "high", "p", "adjusted")
    rows = [
        (label, *map(signed, (gap.difference, gap.low, gap.high)), *map(probability, (gap.p, gap.p_adjusted)))
        for label, gap in gaps(compared, pair)
    ]
    output.print(table(heads, rows, numbers=heads[1:]))
    movers = compared.movers(pair)
    if movers:
        output.print(plain(f"Moved most, from {pair.b} to {pair.a}:"))
    for mover in movers:
        output.print(plain(f"  {movement(mover)}"))
