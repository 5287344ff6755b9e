"""`r2med advise`: recommend a pipeline for the user's own data."""

from __future__ import annotations

from typing import TYPE_CHECKING

from r2med.cli.generated import Shown

if TYPE_CHECKING:
    from r2med.evaluation.advice.advice import Advice, Rung
    from r2med.foundation.pages.cells import Marked
    from r2med.foundation.pages.page import Page

UNKNOWN = "unknown"


def show_advice(advice: Advice) -> Shown:
    """Show the pipelines and the recommended one."""
    from dataclasses import asdict

    return Shown(_page(advice), asdict(advice))


def _page(advice: Advice) -> Page:
    from r2med.evaluation.measure import HEADLINE_MEASURE
    from r2med.foundation.pages.cells import Column
    from r2med.foundation.pages.page import Page, Paragraph, Section, Table

    columns = (
        Column("Pipeline"),
        Column(str(HEADLINE_MEASURE), "score"),
        Column("expected loss", "score", 1),
        Column("adjusted p", "p"),
        Column("p50 s", "seconds", missing=UNKNOWN),
        Column("p95 s", "seconds", missing=UNKNOWN),
        Column("$ / 1,000", "dollars", missing=UNKNOWN),
    )
    table = Table(columns, [_row(rung, advice) for rung in advice.rungs])
    lines = (*advice.verdict(), f"Use it: {advice.serve}")
    notes = [Paragraph(line, no_wrap=True) for line in _notes(advice)]
    verdict = [Paragraph(line, no_wrap=True) for line in lines]
    return Page(f"Advice for {advice.dataset}", [Section("", [table, *notes]), Section("", verdict)], kind="advice")


def _row(rung: Rung, advice: Advice) -> list[Marked]:
    from r2med.foundation.pages.cells import Estimate, Marked

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
        tried = ", ".join(f"{rung.tuned} settings of {rung.tuned_from}" for rung in tuned)
        lines.append(
            f"Tried: {tried}. A question's score comes from what was chosen on other questions; shown is what all "
            "questions together prefer."
        )
    if len(advice.rungs) > 1:
        lines.append(
            "p is adjusted for all pairs of pipelines (max-T). Each interval is of its pipeline or pair alone."
        )
    return [*lines, *(f"left out: {line}" for line in advice.left_out)]
