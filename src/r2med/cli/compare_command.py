"""`r2med compare`: test which differences between systems are significant."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from r2med.cli import options as flags
from r2med.cli.formats import Format, show_page
from r2med.core.spec import joined_words

if TYPE_CHECKING:
    from r2med.comparison.comparison import Comparison, Pair
    from r2med.pages.page import Content, Page, Table

MAX_SENTENCES = 10
"""Pairs up to which each is described in sentences."""

MAX_GAP_TABLES = 3
"""Pairs up to which each is shown dataset by dataset."""


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
            help="Also compare by task, scenario, body-system, length or positives. May be repeated.",
            show_default=False,
        ),
    ] = None,
    max_failures: flags.MaxFailures = 0.1,
    resamples: flags.Resamples = 10_000,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the random sign flips.")] = 0,
    form: Format = "text",
    as_json: flags.AsJSON = False,
) -> None:
    """Compare systems by their records: paired by query, stratified by dataset."""
    from r2med.comparison.comparison import compare as compute

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
    page = _verdicts(compared) if form in ("text", "html") else _pairs(compared)
    show_page(page, form, as_json, compared.as_json())


def _pairs(compared: Comparison) -> Page:
    """Return every pair with its tests, as one table for a paper or a spreadsheet."""
    from r2med.comparison.report_tables import pair_table
    from r2med.pages.page import table_page

    return table_page("", pair_table(compared))


def _verdicts(compared: Comparison) -> Page:
    """Return the ranking, and sentences about each pair."""
    from r2med.comparison import verdicts
    from r2med.pages.page import Note, Page, Section

    sections = [
        Section(f"{compared.measure} × 100", [_ranking(compared), Note(verdicts.class_rule(compared), "quiet")])
    ]
    pairs = len(compared.pairs)
    if pairs > MAX_SENTENCES:
        differ = sum(pair.significant for pair in compared.pairs)
        sections.append(Section("", [f"Of {pairs:,} pairs {differ:,} differ: --json has them all."]))
    for pair in compared.pairs if pairs <= MAX_SENTENCES else ():
        verdict = Note(verdicts.verdict(pair, pairs), "strong" if pair.significant else "")
        shown = _gaps(compared, pair) if pairs <= MAX_GAP_TABLES else []
        sections.append(Section("", [verdict, verdicts.details(pair), *shown]))
    warnings = [Note(f"Note: {warning}", "warning") for warning in verdicts.warnings(compared)]
    sections.append(Section("", [verdicts.detectable(compared), *warnings]))
    return Page("Comparison of systems", sections, kind="comparison")


def _ranking(compared: Comparison) -> Table:
    """Return the systems, the best first, with their classes where there are any."""
    from r2med.data.dataset_cards import short_name
    from r2med.pages.cells import Column, Marked
    from r2med.pages.page import Table

    numbers = compared.classes()
    rows = [
        (
            standing.system,
            numbers.get(standing.system),
            Marked(standing.mean, bold=True),
            *(standing.datasets[dataset].value for dataset in compared.datasets),
        )
        for standing in compared.ranked
    ]
    scores = [Column(head, "score") for head in ("mean", *map(short_name, compared.datasets))]
    return Table((Column("system"), Column("class", "integer"), *scores), rows)


def _gaps(compared: Comparison, pair: Pair) -> list[Content]:
    """Return the datasets, slices and queries on which two systems differ."""
    from r2med.comparison.report_tables import gap_cells, gap_columns, gaps
    from r2med.comparison.verdicts import movement
    from r2med.pages.cells import Column
    from r2med.pages.page import Table

    rows = [(label, *gap_cells(gap)) for label, gap in gaps(compared, pair)]
    table = Table((Column("on"), *gap_columns("difference", "adjusted")), rows, f"{pair.a} less {pair.b}:")
    movers = compared.movers(pair)
    head = [f"Moved most, from {pair.b} to {pair.a}:"] if movers else []
    return [table, *head, *(f"  {movement(mover)}" for mover in movers)]
