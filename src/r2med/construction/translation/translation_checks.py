"""Compare a sentence with its translation and with the translation back: names, length, critical words, negations.

The checks find what people would have to look at. They do not prove that a translation is right.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise

from r2med.construction.translation.chrf import chrf
from r2med.construction.translation.critical_words import critical_faults, unit_forms
from r2med.construction.translation.languages import Language

NOT_TRANSLATED, LENGTH, BACK = "not translated", "length differs", "back-translation differs"
DRUG_LOST, DRUG_ADDED, NAME_LOST = "drug lost", "drug added", "name lost"
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

    @cached_property
    def _names_by_translation(self) -> Mapping[str, list[str]]:
        names: dict[str, list[str]] = {}
        for name, translations in self.drugs.items():
            for translation in translations:
                names.setdefault(translation, []).append(name)
        return names

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
        named = set(_names_in(source, self.drugs))
        for name in sorted(named):
            if not any(_contains(target, each) for each in self.drugs[name]):
                yield f"{DRUG_LOST}: {name} ({' or '.join(self.drugs[name])})"
        for translation in _names_in(target, self._names_by_translation):
            if not (named & set(self._names_by_translation[translation]) or _contains(source, translation)):
                yield f"{DRUG_ADDED}: {translation}"
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


@dataclass(frozen=True)
class _Negations:
    """The cues of negation in a text."""

    cues: tuple[str, ...]
    halves: int
    """Number of words that negate only in form."""
    clauses: tuple[str, ...]
    """The first cue of each clause; empty for a clause that is not negated."""

    @classmethod
    def of(cls, text: str, language: Language) -> _Negations:
        plain = language.half_negation.sub(" ", text)
        firsts = [language.negation.search(clause) for clause in _CLAUSE.split(plain) if clause.strip()]
        return cls(
            tuple(match[0] for match in language.negation.finditer(plain)),
            len(language.half_negation.findall(text)),
            tuple(match[0] if match else "" for match in firsts),
        )

    @property
    def runs(self) -> int:
        """Number of runs of negated clauses."""
        return sum(bool(here) and not before for before, here in pairwise(("", *self.clauses)))


def negation_faults(source: str, back: str, language: Language) -> Iterator[str]:
    """Yield a fault if a sentence has more separate negations than its translation back has cues, or the reverse.

    Neighbouring clauses with the same cue count once, since "no fever, no cough" may become "no fever or cough".
    Otherwise yield the clauses that are negated only on one side.
    """
    ours, theirs = _Negations.of(source, language), _Negations.of(back, language)
    if ours.runs > len(theirs.cues) + max(0, theirs.halves - ours.halves):
        yield f"{NEGATION_LOST}: {', '.join(dict.fromkeys(ours.cues))}"
    elif theirs.runs > len(ours.cues) + max(0, ours.halves - theirs.halves):
        yield f"{NEGATION_ADDED}: {', '.join(dict.fromkeys(theirs.cues))}"
    else:
        yield from _moved_negations(source, back, language)


def _moved_negations(source: str, back: str, language: Language) -> Iterator[str]:
    returned = _clauses(back, language)
    for text, negated in _clauses(source, language):
        alike = [(chrf(other, text, order=2), not_there) for other, not_there in returned]
        best, not_there = max(alike, default=(0.0, None), key=lambda pair: pair[0])
        if best >= SAME_CLAUSE and not_there is not None and negated is not None and negated != not_there:
            yield f"{NEGATION_MOVED}: {text}"


def _clauses(text: str, language: Language) -> list[tuple[str, bool | None]]:
    """Return the clauses of a text without cues; each is negated, not negated, or unclear (None)."""
    made: list[tuple[str, bool | None]] = []
    for clause in _CLAUSE.split(text):
        plain = language.half_negation.sub(" ", clause)
        negated = bool(language.negation.search(plain))
        if stripped := language.negation.sub("", plain).strip():
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
