"""The page of `r2med audit`: the verdict, then each finding with its evidence, the worst first."""

from __future__ import annotations

from collections.abc import Mapping

from r2med.assessment.audit.audit_findings import Audit
from r2med.foundation.pages.cells import Column
from r2med.foundation.pages.finding import MAX_EVIDENCE, VERDICT_WORDS, VERDICTS, Finding, Verdict
from r2med.foundation.pages.page import Bullets, Page, Section, Table
from r2med.foundation.text.plurals import counted

PAGE_ROWS = 60
"""Number of rows of a table of evidence on a page."""
TERMINAL_ROWS = 5
"""Number of rows of a table of evidence on a terminal."""

ADVICE = f"r2med audit --format json prints up to {MAX_EVIDENCE:,}."
MEANINGS: Mapping[Verdict, str] = {
    "sound": "No check found a fault that a person should look at.",
    "look": "No check found the dataset broken. A person should look at the findings below before scores are trusted.",
    "broken": "Scores on this dataset mislead until the findings marked broken are mended or explained.",
}


def audit_page(audit: Audit, rows: int = PAGE_ROWS, *, with_sound: bool = True) -> Page:
    """Return the page of an audit. Tables have at most `rows` rows. `with_sound` adds tables of sound checks."""
    ordered = sorted(audit.findings, key=lambda finding: -VERDICTS.index(finding.verdict))
    sections = [finding.section(rows, ADVICE) for finding in ordered if finding.verdict != "sound"]
    sound = [finding for finding in ordered if finding.verdict == "sound"]
    if sound:
        sections.append(_sound(sound, rows, with_sound))
    if audit.left_out:
        texts = [f"{gap.title}: {gap.why}." for gap in audit.left_out]
        sections.append(Section("Left out", [Bullets(texts)]))
    return Page(
        f"Audit of {audit.dataset}",
        sections,
        MEANINGS[audit.verdict],
        _facts(audit),
        kind="audit",
        about="Can the labels of this dataset be trusted?",
    )


def _facts(audit: Audit) -> list[tuple[str, str, str]]:
    counts = ", ".join(audit.counted(verdict) for verdict in reversed(VERDICTS))
    facts = [
        ("Verdict", VERDICT_WORDS[audit.verdict], counts),
        ("Judged queries", f"{audit.queries:,}", ""),
        ("Documents", f"{audit.documents:,}" if audit.documents else "–", ""),
        ("Labels", f"{audit.judgements:,}", ""),
        ("Systems at hand", str(len(audit.systems)), ""),
    ]
    return facts


def _sound(findings: list[Finding], rows: int, with_tables: bool) -> Section:
    table = Table((Column("check"), Column("finding")), [(finding.title, finding.sentence) for finding in findings])
    more = [each for finding in findings for each in finding.tables(rows, ADVICE)] if with_tables else []
    return Section("Sound", [table, *more], aside=counted(len(findings), "check"), aside_tone="good")
