"""Split a text into sentences that are translated one by one, and put their translations together again."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from r2med.construction.translation.languages import Language
from r2med.foundation.text.sentences import sentence_spans

MAX_SENTENCE = 600
"""Characters of a sentence that is translated in one piece. A longer one is cut at a sign or a space."""

_LINE = re.compile(r"[^\n]+")
_CUTS = (re.compile(r"[；;]\s*"), re.compile(r"[，,、]\s*"), re.compile(r"\s+"))


def aligned_spans(text: str, language: Language) -> list[tuple[int, int]]:
    """Return (start, end) of each sentence. In languages without spaces every line ends a sentence."""
    spans = [
        (start + first, start + last)
        for start, end in sentence_spans(text)
        for first, last in (_lines(text[start:end]) if not language.spaced else [(0, end - start)])
    ]
    return [part for start, end in spans for part in _parts(text, start, end)]


def _lines(text: str) -> Iterator[tuple[int, int]]:
    for line in _LINE.finditer(text):
        if stripped := line[0].strip():
            start = line.start() + line[0].index(stripped[0])
            yield start, start + len(stripped)


def _parts(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield the parts of a sentence, cut at the last sign before its maximum length."""
    while end - start > MAX_SENTENCE:
        cut = _cut(text, start)
        stop = start + len(text[start:cut].rstrip())
        yield start, stop
        start = cut + len(text[cut:end]) - len(text[cut:end].lstrip())
    if start < end:
        yield start, end


def _cut(text: str, start: int) -> int:
    limit = start + MAX_SENTENCE
    for sign in _CUTS:
        ends = [match.end() for match in sign.finditer(text, start + 1, limit)]
        if ends:
            return ends[-1]
    return limit


def joined(text: str, spans: Sequence[tuple[int, int]], translations: Mapping[str, str], to: Language) -> str:
    """Return the translated text. White space between sentences stays, since it is the layout of a record."""
    made: list[str] = []
    before = 0
    for start, end in spans:
        gap = text[before:start]
        if made:
            made.append(gap if "\n" in gap else " " if to.spaced else "")
        made.append(translations[text[start:end]])
        before = end
    return "".join(made)
