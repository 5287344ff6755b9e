"""What an audit says: the findings of all checks, and the rule that most verdicts follow."""

from __future__ import annotations

from typing import Literal

from r2med.foundation.pages.finding import VERDICT_WORDS, Finding, FindingPart, Verdict

FORMAT: Literal[1] = 1
"""Number of the JSON format of audits."""
BROKEN_SHARE = 0.1
"""Share of the queries from which a fault breaks a dataset instead of being worth a look."""
MIN_BROKEN = 3
"""Number of queries that must be concerned, unless all are: one fault of ten queries may be chance."""


class AuditGap(FindingPart):
    """A check that was left out."""

    id: str
    """The name of the check."""
    title: str
    """What the check looks at."""
    why: str
    """The reason, and how to make the check possible."""


class Audit(FindingPart):
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
    findings: tuple[Finding, ...]
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


def verdict_for(touched: int, total: int) -> Verdict:
    """Return the verdict on a fault that concerns `touched` of `total` queries."""
    if not touched:
        return "sound"
    many = touched >= BROKEN_SHARE * total and touched >= min(MIN_BROKEN, total)
    return "broken" if many else "look"
