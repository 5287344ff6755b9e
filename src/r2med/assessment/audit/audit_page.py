"""The page of `r2med audit`: the verdict, then each finding with its evidence, the worst first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from r2med.assessment.audit.audit_findings import (
    MAX_EVIDENCE,
    VERDICT_WORDS,
    VERDICTS,
    Audit,
    AuditEvidence,
    AuditFinding,
    Verdict,
)
from r2med.assessment.audit.checks import CHECKS
from r2med.foundation.pages.cells import Column, Tone
from r2med.foundation.pages.page import Bullets, Page, Section, Table
from r2med.foundation.text.plurals import counted

PAGE_ROWS = 60
"""Number of rows of a table of evidence on a page."""
TERMINAL_ROWS = 5
"""Number of rows of a table of evidence on a terminal."""

TONES: Mapping[Verdict, Tone] = {"sound": "good", "look": "warning", "broken": "error"}
MEANINGS: Mapping[Verdict, str] = {
    "sound": "No check found a fault that a person should look at.",
    "look": "No check found the dataset broken. A person should look at the findings below before scores are trusted.",
    "broken": "Scores on this dataset mislead until the findings marked broken are mended or explained.",
}


def audit_page(audit: Audit, rows: int = PAGE_ROWS, *, with_sound: bool = True) -> Page:
    """Return the page of an audit. Tables have at most `rows` rows. `with_sound` adds tables of sound checks."""
    ordered = sorted(audit.findings, key=lambda finding: -VERDICTS.index(finding.verdict))
    sections = [_section(finding, rows) for finding in ordered if finding.verdict != "sound"]
    sound = [finding for finding in ordered if finding.verdict == "sound"]
    if sound:
        sections.append(_sound(sound, rows, with_sound))
    if audit.left_out:
        texts = [f"{CHECKS[gap.check].title}: {gap.why}." for gap in audit.left_out]
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


def _section(finding: AuditFinding, rows: int) -> Section:
    return Section(
        CHECKS[finding.check].title,
        list(_tables(finding, rows)),
        finding.sentence,
        aside=VERDICT_WORDS[finding.verdict],
        aside_tone=TONES[finding.verdict],
    )


def _sound(findings: list[AuditFinding], rows: int, with_tables: bool) -> Section:
    known = [(CHECKS[finding.check].title, finding.sentence) for finding in findings]
    table = Table((Column("check"), Column("finding")), known)
    more = [each for finding in findings for each in _tables(finding, rows)] if with_tables else []
    return Section("Sound", [table, *more], aside=counted(len(findings), "check"), aside_tone="good")


def _tables(finding: AuditFinding, rows: int) -> Iterator[Table]:
    for number, evidence in enumerate(finding.evidence):
        title = evidence.title or (CHECKS[finding.check].title if finding.verdict == "sound" else "")
        shown = evidence.rows[:rows]
        hidden = evidence.total - len(shown)
        note = f"{counted(hidden, 'further row')}: r2med audit --json prints up to {MAX_EVIDENCE:,}." if hidden else ""
        yield Table(_columns(evidence), shown, title, note, f"{finding.check}-{number}" if number else finding.check)


def _columns(evidence: AuditEvidence) -> list[Column]:
    """Return the columns. A column of numbers alone is one of numbers: ids are texts, even those of digits."""
    numeric = [
        all(isinstance(row[place], int | float) for row in evidence.rows) for place in range(len(evidence.columns))
    ]
    return [
        Column(head, "number" if is_number else "text")
        for head, is_number in zip(evidence.columns, numeric, strict=True)
    ]
