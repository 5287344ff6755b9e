"""Split an answer into sentences, and read which passages each of them cites."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from r2med.records.answer_record import CitedSentence
from r2med.text.sentences import sentences

_NUMBERS = r"\d{1,4}(?:\s*[-–,;]\s*\d{1,4})*"
_CITATION = re.compile(rf"\s*[\[【](?:passages?\s+)?({_NUMBERS})[\]】]", re.IGNORECASE)
_AFTER_STOP = re.compile(rf"([.!?])((?:\s*[\[【](?:passages?\s+)?{_NUMBERS}[\]】])+)", re.IGNORECASE)
_MAX_RANGE = 50
"""Largest range such as [1-4] that is read. A longer one is a range of other numbers, such as years."""


def cited_sentences(answer: str, read: Sequence[str]) -> tuple[CitedSentence, ...]:
    """Return the sentences of an answer with the documents that they cite. `read` are the ids by their number."""
    # A citation behind the full stop belongs to the sentence before it.
    moved = _AFTER_STOP.sub(r"\2\1", answer)
    found: list[CitedSentence] = []
    for sentence in sentences(moved):
        numbers = [number for match in _CITATION.finditer(sentence) for number in _numbers(match[1])]
        text = without_citations(sentence)
        known = dict.fromkeys(read[number - 1] for number in numbers if 0 < number <= len(read))
        unknown = len({number for number in numbers if not 0 < number <= len(read)})
        if not any(map(str.isalnum, text)) and found:  # a line of citations alone
            last = found.pop()
            documents = tuple(dict.fromkeys((*last.documents, *known)))
            found.append(last.model_copy(update={"documents": documents, "unknown": last.unknown + unknown}))
        elif text:
            found.append(CitedSentence(text=text, documents=tuple(known), unknown=unknown))
    return tuple(found)


def without_citations(text: str) -> str:
    """Return a text without the marks of its citations."""
    return _CITATION.sub("", text).strip()


def _numbers(cited: str) -> Iterator[int]:
    for part in re.split(r"\s*[,;]\s*", cited):
        first, *rest = (int(number) for number in re.split(r"\s*[-–]\s*", part))
        last = rest[-1] if rest else first
        yield from range(first, last + 1) if 0 <= last - first <= _MAX_RANGE else (first, last)
