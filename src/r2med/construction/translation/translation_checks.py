"""Compare a sentence with its translation: numbers, units, drug names, negations, script, length, and the way back.

The checks find what people would have to look at. They do not prove that a translation is right.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise

from r2med.construction.translation.chrf import chrf
from r2med.construction.translation.languages import Language
from r2med.construction.translation.number_order import swapped_numbers
from r2med.construction.translation.quantities import Quantities, quantities, unit_forms

NOT_TRANSLATED, LENGTH, BACK = "not translated", "length differs", "back-translation differs"
NUMBER_LOST, NUMBER_ADDED, UNIT_CHANGED, UNIT_ADDED = "number lost", "number added", "unit changed", "unit added"
DRUG_LOST, DRUG_ADDED, NAME_LOST = "drug lost", "drug added", "name lost"
NEGATION_LOST, NEGATION_ADDED, NEGATION_MOVED = "negation lost", "negation added", "negation moved"
SIDE_LOST = "side lost"

MIN_COMPARED_LENGTH = 24
"""Length, in Latin letters, from which the lengths of a sentence and its translation are compared."""
LENGTH_RATIOS = (0.35, 3.0)
"""Smallest and largest ratio of both lengths. A Chinese sign counts as three Latin letters."""
HAN_LETTERS = 3
SAME_CLAUSE = 60
"""Smallest chrF of two clauses without their cues that are taken for the same clause."""
_SAME_UNITS = (frozenset({"age", "year"}), frozenset({"degree", "°C", "grade"}), frozenset({"time", "piece", "tablet"}))
_NAME = re.compile(r"(?<![A-Za-z])[A-Za-z][A-Za-z-]{2,}[A-Za-z](?![A-Za-z])")
_PLACEHOLDER = re.compile(r"\[[A-Z]+-\d+\]")
"""What personal data was replaced by, such as [NAME-1]."""
_CLAUSE = re.compile(
    r"[，；。！？]|[,;.!?](?=\s|$)|[,;!?](?=[\u3400-\u9fff])|(?<=[\u3400-\u9fff])[,;!?]|\bbut\b|\baber\b|\bmais\b|\bpero\b"
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
        ours, theirs = quantities(source, self.source), quantities(target, self.to)
        yield from number_faults(ours, theirs)
        yield from swapped_numbers(source, target)
        yield from unit_faults(ours, theirs)
        yield from self._name_faults(source, target)
        yield from negation_faults(source, self.source, target, self.to)
        for side in sorted(self.source.sides(source) - self.to.sides(target)):
            yield f"{SIDE_LOST}: {side}"
        yield from self._length_faults(source, target)
        yield from moved_negations(source, back, self.source)
        if back and (value := self.likeness(source, back)) < self.similarity:
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


def number_faults(source: Quantities, target: Quantities) -> Iterator[str]:
    """Yield the numbers that were lost or added.

    Numbers in digits count one by one. A number in words must be found in some form, except 1, which languages write as
    an article.
    """
    ours, theirs = source.values, target.values
    for value, count in ours.items():
        if theirs[value] + target.words[value] + (value in target.vague) < count:
            yield f"{NUMBER_LOST}: {value:f}"
    for value in source.words:
        if value != 1 and not (theirs[value] or target.words[value] or value in target.vague):
            yield f"{NUMBER_LOST}: {value:f}"
    for value, count in theirs.items():
        if ours[value] + source.words[value] < count and value not in source.vague:
            yield f"{NUMBER_ADDED}: {value:f}"
    for value in target.words:
        if not (ours[value] or source.words[value] or value in source.vague):
            yield f"{NUMBER_ADDED}: {value:f}"


def unit_faults(source: Quantities, target: Quantities) -> Iterator[str]:
    """Yield the units that were changed, lost or added at a number that both sides have."""
    for value in dict.fromkeys(each.value for each in source.measured):
        ours = {each.unit: each.must for each in source.measured if each.value == value}
        theirs = {each.unit: each.must for each in target.measured if each.value == value}
        if not theirs:
            continue
        for unit, must in ours.items():
            if unit and not any(_same_unit(unit, other) for other in theirs):
                others = [other for other in theirs if other]
                if must or (value != 1 and "" not in theirs and any(theirs[other] for other in others)):
                    yield f"{UNIT_CHANGED}: {value:f} {unit} became {' or '.join(others) or 'a bare number'}"
        if not any(ours):
            for unit, must in theirs.items():
                if must:
                    yield f"{UNIT_ADDED}: {value:f} became {value:f} {unit}"


def _same_unit(unit: str, other: str) -> bool:
    return unit == other or any({unit, other} <= same for same in _SAME_UNITS)


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

    @property
    def runs_of_one_cue(self) -> int:
        """Number of runs of negated clauses with the same cue."""
        return sum(bool(here) and here != before for before, here in pairwise(("", *self.clauses)))


def negation_faults(source: str, source_language: Language, target: str, to: Language) -> Iterator[str]:
    """Yield a fault if a text has more separate negations than the other text has cues.

    Neighbouring clauses with the same cue count once, since "no fever, no cough" may become "no fever or cough".
    """
    ours, theirs = _Negations.of(source, source_language), _Negations.of(target, to)
    if ours.runs_of_one_cue > len(theirs.cues) + max(0, theirs.halves - ours.halves):
        yield f"{NEGATION_LOST}: {', '.join(dict.fromkeys(ours.cues))}"
    if theirs.runs > len(ours.cues) + max(0, ours.halves - theirs.halves):
        yield f"{NEGATION_ADDED}: {', '.join(dict.fromkeys(theirs.cues))}"


def moved_negations(source: str, back: str, language: Language) -> Iterator[str]:
    """Yield the clauses of a sentence that are negated only on one side, compared with its translation back."""
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
