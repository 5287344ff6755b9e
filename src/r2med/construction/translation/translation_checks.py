"""Compare a sentence with its translation and with the translation back: names, length, critical words, negations.

The checks find what people would have to look at. They do not prove that a translation is right.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import groupby

from r2med.construction.translation.chrf import chrf
from r2med.construction.translation.critical_words import critical_faults, unit_forms
from r2med.construction.translation.languages import Language

NOT_TRANSLATED, LENGTH, BACK = "not translated", "length differs", "back-translation differs"
DRUG_LOST, NAME_LOST = "drug lost", "name lost"
NEGATION_LOST, NEGATION_ADDED, NEGATION_MOVED = "negation lost", "negation added", "negation moved"

MIN_COMPARED_LENGTH = 24
"""Length, in Latin letters, from which the lengths of a sentence and its translation are compared."""
LENGTH_RATIOS = (0.35, 3.0)
"""Smallest and largest ratio of both lengths. A Chinese sign counts as three Latin letters."""
HAN_LETTERS = 3
SAME_CLAUSE = 60
"""Smallest chrF of two clauses without their cues that are taken for the same clause."""
_NAME = re.compile(r"(?<![A-Za-z])[A-Za-z][A-Za-z-]{2,}[A-Za-z](?![A-Za-z])")
_PLACEHOLDER = re.compile(r"\[[A-Z]+-\d+\]")
"""What personal data was replaced by, such as [NAME-1]."""
_CLAUSE = re.compile(
    r"[，；。！？]|[,;.!?](?=\s|$)|[,;!?](?=[\u3400-\u9fff])|(?<=[\u3400-\u9fff])[,;!?]|\b(?:but|and|aber|und|mais|et|pero|y)\b"
)


@dataclass(frozen=True)
class TranslationChecks:
    """The checks for translations from one language into another."""

    source: Language
    to: Language
    drugs: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Name of a drug in the language of the source -> its names in the other language."""
    similarity: float = 0.0
    """Smallest chrF of a sentence and the translation of its translation."""

    def faults(self, source: str, target: str, back: str = "") -> tuple[str, ...]:
        """Return what is wrong with a translation, such as "number lost: 38.5". Empty if nothing was found."""
        return tuple(self._faults(source, target, back))

    def likeness(self, source: str, back: str) -> float:
        """Return the chrF of a sentence and its translation back. Languages without spaces have shorter n-grams."""
        return chrf(back, source, order=6 if self.source.spaced else 2)

    def _faults(self, source: str, target: str, back: str) -> Iterator[str]:
        if untranslated := self._untranslated(source, target):
            yield f"{NOT_TRANSLATED}: {untranslated}"
            return
        yield from self._name_faults(source, target)
        yield from self._length_faults(source, target)
        if back:
            yield from critical_faults(source, back, self.source)
            yield from negation_faults(source, back, self.source)
            if (value := self.likeness(source, back)) < self.similarity:
                yield f"{BACK}: chrF {value:.0f}"

    def _untranslated(self, source: str, target: str) -> str:
        """Return the part of a translation that is still in the language of the source; empty if all is translated."""
        if self.source.script == self.to.script:
            same = " ".join(source.split()).casefold() == " ".join(target.split()).casefold()
            return target[:60] if same and len(target.split()) > 3 else ""
        if self.to.letters(target) == 0 and self.source.letters(source):
            return target[:60]
        if self.to.script == ("LATIN",):
            return "".join(filter(self.source.writes, target))[:20]
        return target[:60] if self.to.letters(target) < self.source.letters(target) / 4 else ""

    def _name_faults(self, source: str, target: str) -> Iterator[str]:
        for name in _names_in(source, self.drugs):
            if not any(_contains(target, each) for each in self.drugs[name]):
                yield f"{DRUG_LOST}: {name} ({' or '.join(self.drugs[name])})"
        for placeholder in dict.fromkeys(_PLACEHOLDER.findall(source)):
            if placeholder not in target:
                yield f"{NAME_LOST}: {placeholder}"
        if self.source.script != ("LATIN",):
            for match in _NAME.finditer(source):
                if not (match[0].isupper() or match[0].casefold() in unit_forms() or _contains(target, match[0])):
                    yield f"{NAME_LOST}: {match[0]}"

    def _length_faults(self, source: str, target: str) -> Iterator[str]:
        ours, theirs = _length(source), _length(target)
        if max(ours, theirs) >= MIN_COMPARED_LENGTH:
            low, high = LENGTH_RATIOS
            if not low <= theirs / max(ours, 1) <= high:
                yield f"{LENGTH}: {theirs / max(ours, 1):.1f} times as long"


def negation_faults(source: str, back: str, language: Language) -> Iterator[str]:
    """Yield a fault if a sentence has more separate negations than its translation back has cues, or the reverse.

    Neighbouring negated clauses count once, since "no fever, no cough" may become "no fever or cough". Otherwise yield
    the clauses that are negated only on one side.
    """
    ours, theirs = _clauses(source, language), _clauses(back, language)
    cues, returned = _cues(source, language), _cues(back, language)
    halves = len(language.half_negation.findall(source)) - len(language.half_negation.findall(back))
    if _runs(ours) > len(returned) + max(0, -halves):
        yield f"{NEGATION_LOST}: {', '.join(dict.fromkeys(cues))}"
    elif _runs(theirs) > len(cues) + max(0, halves):
        yield f"{NEGATION_ADDED}: {', '.join(dict.fromkeys(returned))}"
    else:
        for text, negated in ours:
            alike = ((chrf(other, text, order=2), there) for other, there in theirs)
            best, there = max(alike, default=(0.0, None), key=lambda pair: pair[0])
            if best >= SAME_CLAUSE and None not in (negated, there) and negated != there:
                yield f"{NEGATION_MOVED}: {text}"


def _cues(text: str, language: Language) -> list[str]:
    return [match[0] for match in language.negation.finditer(language.half_negation.sub(" ", text))]


def _runs(clauses: Iterable[tuple[str, bool | None]]) -> int:
    """Return the number of runs of negated clauses."""
    return sum(bool(negated) for negated, _ in groupby(bool(negated) for _, negated in clauses))


def _clauses(text: str, language: Language) -> list[tuple[str, bool | None]]:
    """Return the clauses of a text without cues; each is negated, not negated, or unclear (None)."""
    made: list[tuple[str, bool | None]] = []
    for clause in filter(str.strip, _CLAUSE.split(text)):
        plain = language.half_negation.sub(" ", clause)
        negated = bool(language.negation.search(plain))
        stripped = language.negation.sub("", plain).strip()
        made.append((stripped, None if plain != clause and not negated else negated))
    return made


def _names_in(text: str, names: Iterable[str]) -> list[str]:
    """Return the names that a text contains. A name inside a longer name, as 氯喹 in 羟氯喹, is not one of them."""
    found = sorted((name for name in names if _contains(text, name)), key=len, reverse=True)
    kept = []
    for name in found:
        if _contains(text, name):
            kept.append(name)
            text = re.sub(re.escape(name), " ", text, flags=re.IGNORECASE)
    return kept


def _contains(text: str, name: str) -> bool:
    """Return True if a text contains a name. Latin names must be whole words, without regard to case."""
    text, name = text.casefold(), name.casefold()
    if name not in text:  # tables may have thousands of names, so the pattern comes second
        return False
    return not name.isascii() or bool(re.search(rf"(?<![a-z]){re.escape(name)}(?![a-z])", text))


def _length(text: str) -> int:
    return sum(HAN_LETTERS if "\u2e80" < sign < "\ufe00" and sign.isalpha() else 1 for sign in text if sign.isalnum())
