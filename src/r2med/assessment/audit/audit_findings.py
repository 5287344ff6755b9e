"""What an audit says: a verdict for each check, with its evidence."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from pydantic import BaseModel, ConfigDict

FORMAT: Literal[1] = 1
"""Number of the JSON format of audits."""
MAX_EVIDENCE = 1000
"""Largest number of rows in one table of evidence. Further rows are only counted."""

BROKEN_SHARE = 0.1
"""Share of the queries from which a fault breaks a dataset instead of being worth a look."""
MIN_BROKEN = 3
"""Number of queries that must be concerned, unless all are: one fault of ten queries may be chance."""

Verdict = Literal["sound", "look", "broken"]
VERDICTS: tuple[Verdict, ...] = ("sound", "look", "broken")
VERDICT_WORDS: Mapping[Verdict, str] = {"sound": "sound", "look": "needs a look", "broken": "broken"}
"""Verdicts as a person reads them."""
"""The verdicts, from good to bad."""

EvidenceCell = str | int | float | None


class _AuditPart(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class AuditEvidence(_AuditPart):
    """A table of evidence, such as the ids of copies."""

    columns: tuple[str, ...]
    """The heads of the columns."""
    rows: tuple[tuple[EvidenceCell, ...], ...]
    """The rows, at most 1,000."""
    total: int
    """Number of rows that there are."""
    title: str = ""
    """The title of the table."""

    @classmethod
    def of(cls, columns: Sequence[str], rows: Iterable[Sequence[EvidenceCell]], title: str = "") -> AuditEvidence:
        """Return a table with at most `MAX_EVIDENCE` of the rows."""
        kept = [tuple(row) for row in rows]
        return cls(columns=tuple(columns), rows=tuple(kept[:MAX_EVIDENCE]), total=len(kept), title=title)


class AuditFinding(_AuditPart):
    """The result of one check."""

    check: str = ""
    """The name of the check."""
    verdict: Verdict
    """sound: nothing was found. look: a person should look at it. broken: scores mislead."""
    sentence: str
    """The finding in plain words."""
    numbers: Mapping[str, int | float] = {}
    """The numbers behind the sentence, by name."""
    evidence: tuple[AuditEvidence, ...] = ()
    """Tables of ids and numbers."""


class AuditGap(_AuditPart):
    """A check that was left out."""

    check: str
    """The name of the check."""
    why: str
    """The reason, and how to make the check possible."""


class Audit(_AuditPart):
    """All findings about one dataset."""

    format: Literal[1] = FORMAT
    """The number of this format."""
    dataset: str
    """The name of the dataset, or of the file of judgements."""
    fingerprint: str = ""
    """Hash of the contents of the dataset. Empty for judgements alone."""
    r2med: str
    """The version that made the audit."""
    queries: int
    """Number of queries that have judgements."""
    documents: int
    """Number of documents. 0 for judgements alone."""
    judgements: int
    """Number of judged pairs."""
    systems: tuple[str, ...] = ()
    """The systems whose rankings were at hand."""
    verdict: Verdict
    """The worst verdict of all checks."""
    findings: tuple[AuditFinding, ...]
    """One finding for each check that was made."""
    left_out: tuple[AuditGap, ...] = ()
    """The checks that were not made."""

    def count(self, verdict: Verdict) -> int:
        """Return the number of findings with a verdict."""
        return sum(finding.verdict == verdict for finding in self.findings)

    def counted(self, verdict: Verdict) -> str:
        """Return the number of checks with a verdict, in words."""
        number, words = self.count(verdict), VERDICT_WORDS[verdict]
        return f"{number} {words if number == 1 else words.replace('needs', 'need')}"


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """Return the worst of some verdicts; sound if there are none."""
    return max(verdicts, key=VERDICTS.index, default="sound")


def verdict_for(touched: int, total: int) -> Verdict:
    """Return the verdict on a fault that concerns `touched` of `total` queries."""
    if not touched:
        return "sound"
    many = touched >= BROKEN_SHARE * total and touched >= min(MIN_BROKEN, total)
    return "broken" if many else "look"
