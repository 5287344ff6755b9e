"""Find personal data in clinical text: names, dates, record numbers, telephone numbers, e-mail addresses.

This check warns and does not clean. It looks for forms that rarely mean anything else, so a text without a warning may
still hold personal data.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

_MONTH = r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?"

PATTERNS: Mapping[str, re.Pattern[str]] = {
    "e-mail": re.compile(r"[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,4}"),
    "date": re.compile(
        # A full date, not a year or a month alone, which are common in published texts.
        rf"\b(?:(?:19|20)\d\d[-/.]\d{{1,2}}[-/.]\d{{1,2}}|\d{{1,2}}[/.]\d{{1,2}}[/.](?:19|20)?\d\d"
        rf"|\d{{1,2}}(?:st|nd|rd|th)?(?:\sof)?\s{_MONTH},?\s(?:19|20)\d\d"
        rf"|{_MONTH}\s\d{{1,2}}(?:st|nd|rd|th)?,?\s(?:19|20)\d\d)(?!\d)",
        re.IGNORECASE,
    ),
    "telephone": re.compile(
        r"(?<![\w.])\+\d{1,3}[ ./-]?\(?\d{1,4}\)?(?:[ ./-]?\d{2,4}){2,4}\b"
        r"|(?<![\w.-])\(?\d{3}\)?[ .-]\d{3}[.-]\d{4}\b"
        r"|\b(?i:tel|telephone|phone|mobile|fax|pager)\b\.?:? ?(?:no\.?|number)? ?:?[ +]?\(?\d[\d ()/.-]{5,16}\d"
    ),
    "record number": re.compile(
        r"\b(?:MRN|SSN|NHS|(?i:(?:medical |hospital |patient |case |health )?(?:record|chart|insurance|accession)"
        r"|hospital|patient))[ -]?(?i:number|no\.?|id|nr\.?)?[ :#]{1,3}[A-Z]{0,4}-?\d[\d-]{3,15}\b"
        r"|\b\d{3}-\d{2}-\d{4}\b"
    ),
    "name": re.compile(
        r"\b(?:Mr|Mrs|Ms|Miss|Mister|Dr|Prof|Herr|Frau|Mme)\b\.?\s(?:[A-Z]\.\s?)?[A-Z][a-z]+(?:[ -][A-Z][a-z]+)?"
        r"|\b(?:(?i:patient|name)(?:'s name)?: ?|(?:named|called|is) (?=[A-Z][a-z]+ [A-Z][a-z]+ ))"
        r"[A-Z][a-z]+ (?:[A-Z]\. )?[A-Z][a-z]+"
    ),
}
"""Kind of personal data -> pattern of its usual forms."""


@dataclass(frozen=True)
class Identifier:
    """A string in a text that looks like personal data."""

    kind: str
    text: str
    start: int


def identifiers(text: str) -> Iterator[Identifier]:
    """Yield the strings of a text that look like personal data, by kind."""
    for kind, pattern in PATTERNS.items():
        for match in pattern.finditer(text):
            yield Identifier(kind, match[0], match.start())


def identifier_warning(what: str, texts: Iterable[str]) -> str:
    """Return a one-line warning if texts that are about to be sent seem to hold personal data; otherwise empty.

    `what` names sender and receiver, as in "judge sends to gpt4". The personal data itself is not repeated, because the
    line goes into logs.
    """
    counts = Counter[str]()
    holding = 0
    total = 0
    for text in texts:
        kinds = [identifier.kind for identifier in identifiers(text)]
        counts.update(kinds)
        holding += bool(kinds)
        total += 1
    if not holding:
        return ""
    listed = ", ".join(f"{counts[kind]} × {kind}" for kind in PATTERNS if counts[kind])
    return f"{what} on another machine: {holding} of {total} texts seem to contain personal data ({listed})"
