"""What `r2med reproduce` shows: known scores beside ours, with a verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, cast

from r2med.cli.generated import INCOMPLETE, Shown

if TYPE_CHECKING:
    from r2med.foundation.pages.cells import Tone
    from r2med.foundation.pages.page import Section, Table
    from r2med.publication.leaderboard.expectations import Expectation
    from r2med.publication.leaderboard.published import PublishedRow
    from r2med.publication.leaderboard.reproduction import Reproduction, Verdict


def show_reproductions(outcomes: Sequence[Reproduction]) -> Shown:
    """Show the expected and the new scores."""
    from r2med.foundation.pages.page import Page

    value = [{**outcome.model_dump(mode="json"), "verdict": outcome.verdict} for outcome in outcomes]
    failed = any(outcome.verdict == "off" or outcome.errors for outcome in outcomes)
    not_run = [outcome for outcome in outcomes if outcome.verdict == "not run" and outcome.errors]
    sections = [_section(outcome) for outcome in outcomes if outcome not in not_run]
    page = Page("Reproduction of known scores", [*sections, *([_reasons(not_run)] if not_run else [])])
    return Shown(page, value, INCOMPLETE if failed else 0)


def _reasons(not_run: Sequence[Reproduction]) -> Section:
    """Return a line for each distinct reason why systems were not run. A hub that is away is the reason of many."""
    from r2med.foundation.pages.page import Paragraph, Section

    systems: dict[tuple[str, ...], list[str]] = {}
    for outcome in not_run:
        systems.setdefault(outcome.errors, []).append(outcome.expectation.system)
    lines = []
    for errors, names in systems.items():
        which = names[0] if len(names) == 1 else f"{len(names)} systems, such as {names[0]}"
        lines.append(Paragraph(f"not run: {which}: {'; '.join(errors)}", "error", no_wrap=True))
    return Section("", lines)


def show_expected(plan: Sequence[Reproduction] | tuple[Sequence[Expectation], Sequence[PublishedRow]]) -> Shown:
    """Show what would be run, one system as a whole and several in a table, or all known scores."""
    from r2med.foundation.pages.page import table_page

    if isinstance(plan, list):
        shown = replace(show_reproductions(plan), code=0)
        return shown if len(plan) == 1 else replace(shown, page=table_page("What would be run", _planned(plan)))
    expected, others = cast("tuple[Sequence[Expectation], Sequence[PublishedRow]]", plan)
    value = [{**each.model_dump(mode="json"), "command": each.command()} for each in expected]
    value += [_not_runnable_value(row) for row in others]
    tables = [*([_expected(expected)] if expected else []), *([_not_runnable(others)] if others else [])]
    return Shown(table_page("Expected scores", *tables), value)


def _planned(outcomes: Sequence[Reproduction]) -> Table:
    """Return a row for each system with the last of its expected scores, which is the average if there is one."""
    from r2med.foundation.pages.cells import Column
    from r2med.foundation.pages.page import Table

    rows = []
    for outcome in outcomes:
        figure = outcome.figures[-1]
        rows.append((outcome.expectation.system, figure.dataset, figure.measure, figure.expected))
    texts = (Column("system"), Column("dataset", no_wrap=True), Column("measure", no_wrap=True))
    return Table((*texts, Column("expected", "score")), rows)


def _expected(expected: Sequence[Expectation]) -> Table:
    from r2med.foundation.pages.cells import Column
    from r2med.foundation.pages.page import Table
    from r2med.publication.leaderboard.expectations import MEASURE

    rows = []
    for each in expected:
        scores = [pair for values in each.values.values() for pair in values.items()]
        measure, score = scores[0] if scores else (MEASURE, None)
        shown = score if each.average is None else each.average
        rows.append((each.system, each.data, measure, shown, f"± {each.ok:g}", each.source))
    numbers = (Column("expected", "score"), Column("OK", "number"))
    texts = (Column("system"), Column("data", no_wrap=True), Column("measure", no_wrap=True))
    return Table((*texts, *numbers, Column("source")), rows)


def _not_runnable(rows: Sequence[PublishedRow]) -> Table:
    """Return the published rows that r2med cannot run, with the reasons."""
    from r2med.foundation.pages.cells import Column
    from r2med.foundation.pages.page import Table

    columns = (Column("published row"), Column("average", "score"), Column("why it cannot be run"), Column("source"))
    cells = [(row.name, row.average, row.reason, row.source) for row in rows]
    return Table(columns, cells, "Published rows that cannot be run")


def _not_runnable_value(row: PublishedRow) -> dict[str, object]:
    """Return such a row for JSON, with the keys of an expectation that it has."""
    known = {"label": row.name, "source": row.source, "seen_with": row.reported_by, "average": row.average}
    return {"system": "", **known, "command": "", "reason": row.reason}


def _section(outcome: Reproduction) -> Section:
    from r2med.foundation.pages.cells import Column
    from r2med.foundation.pages.page import Section, Table

    expectation = outcome.expectation
    facts = {
        "command": outcome.command,
        "source": f"{expectation.source} ({expectation.seen_with})",
        "condition": "; ".join((*outcome.remarks, *expectation.conditions)),
        "tolerance": f"OK within {expectation.ok:g} points, near within {expectation.near:g}",
        "versions": ", ".join(f"{name} {version}" for name, version in outcome.versions.items()),
        "not run": "; ".join(outcome.errors),
    }
    has_spread = any(figure.spread is not None for figure in outcome.figures)
    rows = [
        (
            *(figure.dataset, figure.measure, figure.expected, figure.observed),
            *([figure.spread] if has_spread else []),
            figure.verdict,
        )
        for figure in outcome.figures
    ]
    heads = ("expected", "observed", *(["± one more run"] if has_spread else []))
    scores = [Column(head, "score", missing="") for head in heads]
    table = Table((Column("dataset"), Column("measure"), *scores, Column("verdict")), rows)
    lines = [f"  {name}: {fact}" for name, fact in facts.items() if fact]
    verdict = outcome.verdict
    return Section(f"{expectation.system}:", [*lines, table], aside=verdict, aside_tone=TONES[verdict])


TONES: Mapping[Verdict, Tone] = {
    "OK": "good",
    "near": "warning",
    "off": "error",
    "not comparable": "quiet",
    "not run": "quiet",
}
