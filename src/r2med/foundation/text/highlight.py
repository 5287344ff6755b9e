"""Mark the words of a text whose index terms match a query, and choose the passage that matches best."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from r2med.foundation.text.analysers import analyser
from r2med.foundation.text.english import CHUNK_PATTERN, english
from r2med.foundation.text.search_languages import ENGLISH

Kind = Literal["query", "generated", "both"]

COMMON_WORDS = """
about after again all also always am any because been before being between both can could did do does doing done down
during each even ever every from get go got had has have having he her here hers him his how i its just like made make
many may me might more most much must my never now off one only or other our out over own same she should since so some
something still than them thing through too under until up upon us use very want we were what when where whether which
while who whom why within without would yet you your
"""
COMMON_TERMS = frozenset(term for term in english(COMMON_WORDS))
"""English terms that can match, because the analyser keeps them, but rarely show why a text is relevant.

The stop words of other languages include such words.
"""


@dataclass(frozen=True)
class Words:
    """The index terms to look for: those of a query, and those of the texts that were generated for it."""

    query: frozenset[str]
    generated: frozenset[str] = frozenset()
    language: str = ENGLISH
    """The language whose analyser gives the index terms."""

    @classmethod
    def of(cls, query: str, generated: Iterable[str] = (), language: str = ENGLISH) -> Words:
        """Return the words of a query and of its generated texts."""
        terms = analyser(language).terms
        return cls(frozenset(terms(query)), frozenset(term for text in generated for term in terms(text)), language)

    def kind(self, term: str) -> Kind | None:
        """Return the origin of an index term; None if it is not one of these words."""
        if term in self.query:
            return "both" if term in self.generated else "query"
        return "generated" if term in self.generated else None

    def is_common(self, term: str) -> bool:
        """Return True for a term that rarely shows why a text is relevant."""
        return self.language == ENGLISH and term in COMMON_TERMS


@dataclass(frozen=True)
class Match:
    """A matching word of a text, as character positions."""

    start: int
    stop: int
    term: str
    kind: Kind


@dataclass(frozen=True)
class Window:
    """A passage of a text, as character positions, and its matches. All positions count from the start of the text."""

    start: int
    stop: int
    matches: tuple[Match, ...]


def matches(text: str, words: Words) -> list[Match]:
    """Return the words of a text that match, in order. Words that overlap, as Korean ones do, are cut."""
    located_terms = analyser(words.language).located_terms
    found = []
    end = 0
    for chunk in CHUNK_PATTERN.finditer(text):
        for start, stop, term in located_terms(chunk[0]):
            first, last = max(end, chunk.start() + start), chunk.start() + stop
            if (kind := words.kind(term)) and first < last:
                found.append(Match(first, last, term, kind))
                end = last
    return found


def best_window(text: str, words: Words, width: int) -> Window:
    """Return the passage of at most `width` characters that matches best: many different words close together.

    A word counts less if the text has it often, so that the general topic of the text does not hide the one passage
    that answers. `COMMON_TERMS` do not count. The first of several equal passages is returned, or the start of the text
    if nothing matches.
    """
    all_matches = matches(text, words)
    telling = [match for match in all_matches if not words.is_common(match.term)]
    start, stop = around(text, *densest(telling, width), width)
    return Window(start, stop, tuple(m for m in all_matches if start <= m.start and m.stop <= stop))


def densest(all_matches: Sequence[Match], width: int) -> tuple[int, int]:
    """Return (start, stop) of the best run of matches within `width` characters; (0, 0) if there is none."""
    times = Counter(match.term for match in all_matches)
    best, span = 0.0, (0, 0)
    total, first = 0.0, 0
    for match in all_matches:
        total += 1 / times[match.term]
        while match.stop - all_matches[first].start > width and all_matches[first] is not match:
            total -= 1 / times[all_matches[first].term]
            first += 1
        if total > best + 1e-9:
            best, span = total, (all_matches[first].start, match.stop)
    return span


def around(text: str, first: int, last: int, width: int) -> tuple[int, int]:
    """Return (start, stop) of `width` characters around a passage, most of them after it, without cutting words."""
    start = max(0, min(first - (width - (last - first)) // 3, len(text) - width))
    stop = min(len(text), start + width)
    if start and (blank := text.find(" ", start, first)) >= 0:
        start = blank + 1
    if stop < len(text) and (blank := text.rfind(" ", last, stop)) >= 0:
        stop = blank
    return start, stop
