"""Grades of relevance in the words that people use: whole numbers, crosses, and yes and no in many languages."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache

from r2med.data.tables.column_names import words_by_meaning

LARGEST_SCALE = range(-2, 11)
"""Whole numbers that are grades if the name of their column does not say so."""

NO_VALUE = frozenset("null none nan na n/a #n/a \\n".split())
"""What databases and spreadsheets write into an empty cell."""

_MARKS = frozenset("x xx ✓ ✔ ☑ ✅ ○ ◯ 〇".split())


@cache
def _grades() -> dict[str, int]:
    words = words_by_meaning()
    phrases = words["no_phrases"]["all"].strip().split("\n")
    return dict.fromkeys(_listed("yes"), 1) | dict.fromkeys(_listed("no"), 0) | dict.fromkeys(phrases, 0)


def _listed(meaning: str) -> Iterator[str]:
    for words in words_by_meaning()[meaning].values():
        yield from words.split()


def grade_of(word: str) -> int | None:
    """Return the grade that a word means: a whole number, or 1 for yes and 0 for no. None if it is not a grade."""
    text = " ".join(word.lower().split()).rstrip(".!")
    number = re.fullmatch(r"(-?\d{1,9})(?:[.,]0+)?", text)
    return int(number[1]) if number else _grades().get(text)


def is_grade(cell: str) -> bool:
    """Return True if all words of a cell are grades. A cell may have one grade for each of several ids."""
    return all(grade_of(word) is not None for word in re.split(r"[;|,]", cell))


def are_verdicts(cells: Sequence[str]) -> bool:
    """Return True if all cells are yes, no or grades of a small scale, and are not the numbers of their rows.

    Words for an empty cell, such as NULL, may be among them.
    """
    cells = [cell for cell in cells if cell.lower() not in NO_VALUE]
    grades = [grade_of(cell) for cell in cells]
    if not grades or not all(grade in LARGEST_SCALE for grade in grades):
        return False
    return not is_count(cells)


def is_count(cells: Sequence[str]) -> bool:
    """Return True if the cells are the numbers of their rows: 1, 2, 3, … or 0, 1, 2, …"""
    numbers = [int(cell) if cell.isdecimal() else -1 for cell in cells]
    from_one, from_zero = [*range(1, len(numbers) + 1)], [*range(len(numbers))]
    return (len(numbers) > 1 and numbers == from_one) or (len(numbers) > 2 and numbers == from_zero)


def is_verdict_word(cell: str) -> bool:
    """Return True if a cell is a word or a sign for yes or no, and not a number."""
    return grade_of(cell) is not None and not any(map(str.isdigit, cell))


def is_mark(cell: str) -> bool:
    """Return True if a cell is a cross or a tick. In a column with only these marks, an empty cell means no."""
    return cell.strip().lower() in _MARKS
