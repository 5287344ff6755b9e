"""What `r2med compare` shows: the ranking of systems, and which differences are significant."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from r2med.cli.generated import INCOMPLETE, UNDECIDED, Shown
from r2med.foundation.text.plurals import counted

if TYPE_CHECKING:
    from r2med.evaluation.comparison.comparison import Comparison
    from r2med.evaluation.comparison.gaps import Pair
    from r2med.evaluation.comparison.gate import GateVerdict
    from r2med.foundation.pages.page import Content, Page, Section, Table

MAX_SENTENCES = 10
"""Pairs up to which each is described in sentences."""

MAX_GAP_TABLES = 3
"""Pairs up to which each is shown dataset by dataset."""


def show_comparison(compared: Comparison, form: str) -> Shown:
    """Show sentences for people, and a table of all pairs for papers and spreadsheets."""
    from r2med.evaluation.comparison.corrected_scores import estimates_page
    from r2med.foundation.pages.page import Section

    if compared.estimates is not None:
        page = estimates_page(compared.estimates)
    else:
        page = _verdicts(compared) if form in ("text", "html") else _pairs(compared)
    if compared.choice is not None:
        page = replace(page, sections=[*page.sections, Section("", compared.choice.sentences(compared.measure))])
    if compared.gate:
        page = replace(page, sections=[*page.sections, _gate(compared.gate)])
    if compared.files and form == "text":
        page = replace(page, sections=[*page.sections, _files(compared.files)])
    return Shown(page, compared.as_json(), _gate_code(compared.gate))


def _gate(verdicts: Sequence[GateVerdict]) -> Section:
    from r2med.foundation.pages.page import Note, Section

    return Section("", [Note(str(each), "" if each.outcome == "passed" else "strong") for each in verdicts])


def _gate_code(verdicts: Sequence[GateVerdict]) -> int:
    """Return the exit code of a gate: one system that is worse decides it."""
    outcomes = {each.outcome for each in verdicts}
    return INCOMPLETE if "worse" in outcomes else UNDECIDED if "not decided" in outcomes else 0


def _files(files: Sequence[Path]) -> Section:
    from r2med.foundation.pages.page import Section

    names = ", ".join(dict.fromkeys(file.stem for file in files))
    return Section("", [f"{counted(len(files), 'file')} in {files[0].parent}/: {names}."])


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
    sections = [Section(compared.heading, [_ranking(compared), _chance(compared), *notes])]
    pairs = len(compared.pairs)
    if pairs > MAX_SENTENCES:
        differ = sum(pair.significant for pair in compared.pairs)
        sections.append(Section("", [f"Of {pairs:,} pairs {differ:,} differ: --format json has them all."]))
    for pair in compared.pairs if pairs <= MAX_SENTENCES else ():
        verdict = Note(verdicts.verdict(pair, pairs, lower), "strong" if pair.significant else "")
        shown = _gaps(compared, verdicts.better_first(pair, lower)) if pairs <= MAX_GAP_TABLES else []
        sections.append(Section("", [verdict, verdicts.chance(pair), verdicts.details(pair, lower), *shown]))
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


def _chance(compared: Comparison) -> Table:
    """Return how often each system was run, and both parts of the interval of its mean."""
    from r2med.evaluation.comparison.verdicts import reach
    from r2med.foundation.pages.cells import Column
    from r2med.foundation.pages.page import Table

    rows = [(each.system, each.run_words, reach(each.from_queries), reach(each.from_runs)) for each in compared.ranked]
    parts = (Column("from the queries", "number"), Column("from the runs", "number"))
    return Table((Column("chance of the mean"), Column("runs", whole=True), *parts), rows)


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
