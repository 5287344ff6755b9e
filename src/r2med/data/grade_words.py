"""Grades of relevance in the words that people use: whole numbers, crosses, and yes and no in four languages."""

from __future__ import annotations

import re

_YES = (
    "yes y true t x xx ✓ ✔ ☑ relevant ja j wahr w zutreffend oui o vrai v pertinent pertinente sí si s verdadero "
    "cierto relevante"
)
_NO = "no n false f - – irrelevant nein falsch non faux falso ☐ ✗ ✘ irrelevante"
_TWO_WORDS = ("not relevant", "nicht relevant", "non pertinent", "pas pertinent", "no relevante", "non pertinente")
_GRADES = dict.fromkeys(_YES.split(), 1) | dict.fromkeys(_NO.split(), 0) | dict.fromkeys(_TWO_WORDS, 0)
_MARKS = frozenset("x xx ✓ ✔ ☑".split())


def grade_of(word: str) -> int | None:
    """Return the grade that a word means: a whole number, or 1 for yes and 0 for no. None if it is not a grade."""
    text = " ".join(word.lower().split()).rstrip(".!")
    number = re.fullmatch(r"(-?\d{1,9})(?:[.,]0+)?", text)
    return int(number[1]) if number else _GRADES.get(text)


def is_grade(cell: str) -> bool:
    """Return True if all words of a cell are grades. A cell may have one grade for each of several ids."""
    return all(grade_of(word) is not None for word in re.split(r"[;|,]", cell))


def is_mark(cell: str) -> bool:
    """Return True if a cell is a cross or a tick. In a column with only these marks, an empty cell means no."""
    return cell.strip().lower() in _MARKS
