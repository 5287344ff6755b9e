"""A label for a README: the verdict of an audit as one small SVG file, which loads nothing from elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

from r2med.assessment.audit.audit_findings import Audit
from r2med.foundation.pages.finding import VERDICT_WORDS, VERDICTS, Verdict

COLOURS: Mapping[Verdict, str] = {"sound": "#1f6f43", "look": "#8a5a00", "broken": "#a12622"}
"""White text on these colours has a contrast above 4.5."""
CHARACTER = 6.6
"""Width of a character in pixels. `textLength` then sets the exact width in every font."""
MARGIN = 7
NAME = "r2med audit"


def audit_label(audit: Audit) -> str:
    """Return the label as SVG."""
    checks = len(audit.findings)
    of = "" if audit.verdict == "sound" else f"{audit.count(audit.verdict)} of "
    said = f"{VERDICT_WORDS[audit.verdict]}: {of}{checks} checks"
    counts = ", ".join(audit.counted(verdict) for verdict in VERDICTS)
    title = escape(f"r2med {audit.r2med} audit of {audit.dataset[:100]}: {counts}")
    left, right = (round(len(text) * CHARACTER) for text in (NAME, said))
    first, second = left + 2 * MARGIN, right + 2 * MARGIN
    return f"""\
<svg xmlns="http://www.w3.org/2000/svg" width="{first + second}" height="20" role="img" aria-label="{title}">
<title>{title}</title>
<rect width="{first + second}" height="20" rx="3" fill="#444"/>
<path d="M{first} 0h{second - 3}a3 3 0 0 1 3 3v14a3 3 0 0 1-3 3h-{second - 3}z" fill="{COLOURS[audit.verdict]}"/>
<g fill="#fff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11">
<text x="{MARGIN}" y="14" textLength="{left}">{NAME}</text>
<text x="{first + MARGIN}" y="14" textLength="{right}">{escape(said)}</text>
</g>
</svg>
"""
