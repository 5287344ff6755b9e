"""What `r2med compare` shows: the ranking of systems, and which differences are significant."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from r2med.cli.generated import INCOMPLETE, UNDECIDED, Shown
from r2med.foundation.core.flags import OUTPUT, Flag
from r2med.foundation.text.plurals import counted

if TYPE_CHECKING:
    from r2med.evaluation.comparison.comparison import Comparison
    from r2med.evaluation.comparison.gaps import Pair
    from r2med.evaluation.comparison.gate import GateVerdict
    from r2med.foundation.pages.page import Page, Paragraph, Section, Table

MAX_GAP_TABLES = 3
"""Pairs up to which each is shown dataset by dataset."""


def show_comparison(
    compared: Comparison,
    form: str,
    *,
    pairs: Annotated[
        bool,
        Flag("Also print each pair with its tests, as all other formats do.", OUTPUT),
    ] = False,
) -> Shown:
    """Show the ranking for people, and a table of all pairs for papers and spreadsheets."""
    with_pairs = pairs or form == "html" or bool(compared.slices)  # slices are shown with their pair only
    page = _verdicts(compared, with_pairs) if form in ("text", "html") else _pairs(compared)
    if compared.gate:
        page = replace(page, sections=[*page.sections, _gate(compared.gate)])
    if compared.files and form == "text":
        page = replace(page, sections=[*page.sections, _files(compared.files)])
    return Shown(page, compared.as_json(), _gate_code(compared.gate))


def _gate(verdicts: Sequence[GateVerdict]) -> Section:
    from r2med.foundation.pages.page import Paragraph, Section

    return Section("", [Paragraph(str(each), "" if each.outcome == "passed" else "strong") for each in verdicts])


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


def _verdicts(compared: Comparison, with_pairs: bool) -> Page:
    """Return the ranking with sentences on how to read it, and each pair if they are asked for."""
    from r2med.evaluation.comparison import verdicts
    from r2med.evaluation.records.used_labels import AS_PUBLISHED
    from r2med.foundation.pages.page import Page, Paragraph, Section

    notes = [Paragraph(verdicts.mark_rule(compared), "quiet")]
    if compared.labels != AS_PUBLISHED:
        notes.insert(0, Paragraph(f"Labels: {compared.labels}.", "quiet"))
    sections = [Section(compared.heading, [_ranking(compared), *notes])]
    if with_pairs:
        sections += [_pair(compared, pair) for pair in compared.pairs]
    elif len(compared.pairs) == 1 or compared.baseline:
        sections.append(Section("", [_verdict(compared, pair) for pair in compared.pairs]))
    warnings = [Paragraph(f"Note: {warning}", "warning") for warning in verdicts.warnings(compared)]
    more = [] if with_pairs else [_differing(compared)]
    tested = [sentence for sentence in [verdicts.pairs_tested(compared)] if sentence]
    sections.append(Section("", [verdicts.detectable(compared), *tested, *warnings, *more]))
    return Page("Comparison of systems", sections, kind="comparison")


def _verdict(compared: Comparison, pair: Pair) -> Paragraph:
    from r2med.evaluation.comparison.verdicts import verdict
    from r2med.foundation.pages.page import Paragraph

    sentence = verdict(pair, compared.tested, compared.lower_is_better)
    return Paragraph(sentence, "strong" if pair.significant else "")


def _pair(compared: Comparison, pair: Pair) -> Section:
    """Return what is known of a pair. A few pairs are also shown dataset by dataset."""
    from r2med.evaluation.comparison.verdicts import better_first, wins_and_losses
    from r2med.foundation.pages.page import Section

    lower = compared.lower_is_better
    gaps = [_gaps(compared, better_first(pair, lower))] if len(compared.pairs) <= MAX_GAP_TABLES else []
    return Section("", [_verdict(compared, pair), wins_and_losses(pair, lower), *gaps])


def _differing(compared: Comparison) -> str:
    """Return a sentence with the number of pairs that differ, and the flag that shows them."""
    if len(compared.pairs) == 1:
        return "--pairs shows its tests, also on each dataset."
    differ = sum(pair.significant for pair in compared.pairs)
    more = "--pairs also shows their wins and losses" if compared.baseline else "--pairs shows each"
    return f"{differ:,} of {len(compared.pairs):,} pairs differ: {more}."


def _ranking(compared: Comparison) -> Table:
    """Return the systems, the best first, with their marks. If one varies, a column says how often each was run."""
    from r2med.data.dataset_cards import short_name
    from r2med.foundation.pages.cells import Column, Marked, Value
    from r2med.foundation.pages.page import Table

    marks = compared.mark_words
    any_varies = any(standing.varies for standing in compared.systems)
    rows: list[list[Value | Marked]] = [
        [
            standing.system,
            marks[standing.system],
            *([standing.run_words] if any_varies else []),
            Marked(standing.mean, bold=True),
            *(standing.datasets[dataset].value for dataset in compared.datasets),
        ]
        for standing in compared.ranked
    ]
    scores = [Column(head, "score") for head in ("mean", *map(short_name, compared.datasets))]
    runs = [Column("runs", no_wrap=True)] if any_varies else []
    return Table((Column("system"), Column("mark"), *runs, *scores), rows)


def _gaps(compared: Comparison, pair: Pair) -> Table:
    """Return a table of the difference of two systems on each dataset and each slice."""
    from r2med.evaluation.comparison.report_tables import gap_cells, gap_columns, gaps
    from r2med.foundation.pages.cells import Column
    from r2med.foundation.pages.page import Table

    rows = [(label, *gap_cells(gap)) for label, gap in gaps(compared, pair)]
    return Table(
        (Column("on"), *gap_columns("difference", "adjusted")),
        rows,
        f"{pair.a} minus {pair.b}, with the 95 % interval of this pair alone:",
    )
