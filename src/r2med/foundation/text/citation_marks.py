"""The marks of citations in an answer: [2], [1, 3], [2-4], [passage 5] and their forms in wide brackets."""

from __future__ import annotations

import re
from collections.abc import Iterator

_NUMBERS = r"\d{1,4}(?:\s*[-–,;]\s*\d{1,4})*"
CITATION = re.compile(rf"\s*[\[【](?:passages?\s+)?({_NUMBERS})[\]】]", re.IGNORECASE)
AFTER_STOP = re.compile(rf"([.!?])((?:\s*[\[【](?:passages?\s+)?{_NUMBERS}[\]】])+)", re.IGNORECASE)
_MAX_RANGE = 50
"""Largest range such as [1-4] that is read. A longer one is a range of other numbers, such as years."""


def cited_numbers(text: str) -> list[int]:
    """Return the numbers in all marks of a text, in their order."""
    return [number for match in CITATION.finditer(text) for number in _numbers(match[1])]


def _numbers(cited: str) -> Iterator[int]:
    for part in re.split(r"\s*[,;]\s*", cited):
        first, *rest = (int(number) for number in re.split(r"\s*[-–]\s*", part))
        last = rest[-1] if rest else first
        yield from range(first, last + 1) if 0 <= last - first <= _MAX_RANGE else (first, last)
