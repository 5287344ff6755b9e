"""Find numbers of a translation that are in the wrong order: 80/120 for 120/80, and May 3 for 3月5日."""

from __future__ import annotations

import re
from collections.abc import Iterator

from r2med.construction.translation.quantities import MONTHS, plain_width

NUMBERS_SWAPPED = "numbers swapped"

_NUMBER = r"\d{1,6}(?:[.,]\d{1,4})?"
_QUOTIENT = re.compile(rf"(?<![\d/.,])({_NUMBER}) ?/ ?({_NUMBER})(?![\d/])")
"""Two numbers such as 120/80. A date such as 2021/3/5 has three, and its order may change."""
_MONTH = "|".join(sorted(MONTHS, key=len, reverse=True))
_DATES = (
    re.compile(r"(?P<month>\d{1,2})月(?P<day>\d{1,2})[日号]"),
    re.compile(rf"\b(?P<month>{_MONTH})\.? (?:the )?(?P<day>\d{{1,2}})(?!\d)", re.IGNORECASE),
    re.compile(rf"(?<!\d)(?P<day>\d{{1,2}})(?:st|nd|rd|th|\.)? (?:of )?(?P<month>{_MONTH})\b", re.IGNORECASE),
)


def swapped_numbers(source: str, target: str) -> Iterator[str]:
    """Yield the quotients and dates of a sentence whose numbers have another order in its translation."""
    source, target = plain_width(source), plain_width(target)
    theirs = set(_quotients(target))
    for one, other in _quotients(source):
        if one != other and (one, other) not in theirs and (other, one) in theirs:
            yield f"{NUMBERS_SWAPPED}: {one}/{other} became {other}/{one}"
    dates = set(_dates(target))
    for month, day in _dates(source):
        if month != day and (month, day) not in dates and (day, month) in dates:
            yield f"{NUMBERS_SWAPPED}: month {month}, day {day} became month {day}, day {month}"


def _quotients(text: str) -> list[tuple[str, str]]:
    return [(one.replace(",", "."), other.replace(",", ".")) for one, other in _QUOTIENT.findall(text)]


def _dates(text: str) -> Iterator[tuple[int, int]]:
    for pattern in _DATES:
        for match in pattern.finditer(text):
            month = match["month"].casefold()
            yield MONTHS[month] if month in MONTHS else int(month), int(match["day"])
