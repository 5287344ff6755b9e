"""`r2med compare`: test which differences between systems are significant."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from r2med.cli import options as flags
from r2med.cli.formats import Format, show_page
from r2med.foundation.core.errors import UserError
from r2med.foundation.core.spec import joined_words

if TYPE_CHECKING:
    from r2med.evaluation.comparison.comparison import Comparison, Pair
    from r2med.foundation.pages.page import Content, Page, Table

MAX_SENTENCES = 10
"""Pairs up to which each is described in sentences."""

MAX_GAP_TABLES = 3
"""Pairs up to which each is shown dataset by dataset."""


def compare(
    systems: flags.ComparedSystems = None,
    results: flags.Results = Path("results"),
    data: flags.ComparedData = None,
    overlay: flags.Overlays = None,
    estimate: Annotated[
        bool,
        typer.Option(
            "--estimate",
            help="With --overlay: estimate the scores that people's labels would give, from the random part that "
            "people reviewed. The intervals contain the errors of the judge.",
        ),
    ] = False,
    measure: flags.ComparedMeasure = "",
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
    lock: flags.Lock = None,
    answers: flags.Answers = False,
    condition: flags.AnswerCondition = "retrieved",
    max_failures: flags.MaxFailures = 0.1,
    resamples: flags.Resamples = 10_000,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the random sign flips.")] = 0,
    form: Format = "text",
    as_json: flags.AsJSON = False,
) -> None:
    """Compare systems by their records: paired by query, stratified by dataset."""
    from r2med.evaluation.comparison.comparing import compare as compute

    if estimate and lock:
        raise UserError("--estimate adds labels, which a lock does not allow: leave out one of them")
    if estimate and answers:
        raise UserError("--estimate is about rankings, --answers about answers: leave out one of them")
    if estimate:
        _show_estimates(systems, results, data, overlay, measure or "nDCG@10", max_failures, form, as_json)
        return
    compared = compute(
        *joined_words(systems or []),
        results=results,
        max_failures=max_failures,
        measure=measure,
        baseline=baseline,
        slice_by=slice_by or (),
        resamples=resamples,
        data=flags.comma_separated(data),
        overlays=overlay or (),
        seed=seed,
        lock=lock or "",
        answers=answers,
        condition=condition,
    )
    page = _verdicts(compared) if form in ("text", "html") else _pairs(compared)
    show_page(page, form, as_json, compared.as_json())


def _show_estimates(
    systems: list[str] | None,
    results: Path,
    data: list[str] | None,
    overlay: list[Path] | None,
    measure: str,
    max_failures: float,
    form: str,
    as_json: bool,
) -> None:
    """Show the scores that people's labels would give."""
    from r2med.data.overlays import Overlay
    from r2med.evaluation.comparison.corrected_scores import corrected_scores, estimates_page
    from r2med.evaluation.records.collection import collect
    from r2med.evaluation.records.relabelled import recorded_datasets
    from r2med.foundation.core.errors import UserError

    if not overlay:
        raise UserError("--estimate needs the labels of a judge and of people: --overlay FILE, made by r2med judge")
    collection = collect(joined_words(systems or []), results, max_failures)
    overlays = [Overlay.read(file) for file in overlay]
    datasets = recorded_datasets(collection, flags.comma_separated(data))
    found = corrected_scores(collection, overlays, datasets, measure)
    show_page(estimates_page(found), form, as_json, found.as_json())


def _pairs(compared: Comparison) -> Page:
    """Return every pair with its tests, as one table for a paper or a spreadsheet."""
    from r2med.evaluation.comparison.report_tables import pair_table
    from r2med.foundation.pages.page import table_page

    return table_page("", pair_table(compared))


def _verdicts(compared: Comparison) -> Page:
    """Return the ranking, and sentences about each pair."""
    from r2med.evaluation.comparison import verdicts
    from r2med.foundation.pages.page import Note, Page, Section

    lower = compared.lower_is_better
    notes = [Note(f"Labels: {compared.labels}.", "quiet"), Note(verdicts.class_rule(compared), "quiet")]
    sections = [Section(compared.heading, [_ranking(compared), *notes])]
    pairs = len(compared.pairs)
    if pairs > MAX_SENTENCES:
        differ = sum(pair.significant for pair in compared.pairs)
        sections.append(Section("", [f"Of {pairs:,} pairs {differ:,} differ: --json has them all."]))
    for pair in compared.pairs if pairs <= MAX_SENTENCES else ():
        verdict = Note(verdicts.verdict(pair, pairs, lower), "strong" if pair.significant else "")
        shown = _gaps(compared, verdicts.better_first(pair, lower)) if pairs <= MAX_GAP_TABLES else []
        sections.append(Section("", [verdict, verdicts.details(pair, lower), *shown]))
    warnings = [Note(f"Note: {warning}", "warning") for warning in verdicts.warnings(compared)]
    sections.append(Section("", [verdicts.detectable(compared), *warnings]))
    return Page("Comparison of systems", sections, kind="comparison")


def _ranking(compared: Comparison) -> Table:
    """Return the systems, the best first, with their classes where there are any."""
    from r2med.data.dataset_cards import short_name
    from r2med.foundation.pages.cells import Column, Marked
    from r2med.foundation.pages.page import Table

    numbers = compared.classes()
    rows = [
        (
            standing.system,
            numbers.get(standing.system),
            Marked(standing.mean, bold=True),
            *(standing.datasets[dataset].without_interval() for dataset in compared.datasets),
        )
        for standing in compared.ranked
    ]
    scores = [Column(head, "score") for head in ("mean", *map(short_name, compared.datasets))]
    return Table((Column("system"), Column("class", "integer"), *scores), rows)


def _gaps(compared: Comparison, pair: Pair) -> list[Content]:
    """Return the datasets, slices and queries on which two systems differ."""
    from r2med.evaluation.comparison.report_tables import gap_cells, gap_columns, gaps
    from r2med.evaluation.comparison.verdicts import movement
    from r2med.foundation.pages.cells import Column
    from r2med.foundation.pages.page import Table

    rows = [(label, *gap_cells(gap)) for label, gap in gaps(compared, pair)]
    table = Table((Column("on"), *gap_columns("difference", "adjusted")), rows, f"{pair.a} minus {pair.b}:")
    movers = compared.movers(pair)
    head = [f"Moved most, from {pair.b} to {pair.a}:"] if movers else []
    return [table, *head, *(f"  {movement(mover)}" for mover in movers)]
