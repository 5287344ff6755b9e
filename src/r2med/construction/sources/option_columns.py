"""Read the options of an exam question from a table row: one column per letter, or one cell that lists them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence

from r2med.data.table import Cell

_LETTERED = re.compile(r"(?:(?:option|choice|opt)[ _-]*|op)?([a-j])", re.IGNORECASE)
"""Names of columns with one option each, such as A, option B, choice_c, or opd in MedMCQA."""
_LISTED = ("options", "choices", "answer options", "answer choices", "answer_options", "answer_choices")
_MARK = re.compile(r"\(?([A-Ja-j])[.):]\s+")
_SEPARATORS = ("\n", "|", ";")


def option_columns(columns: Iterable[str]) -> list[str]:
    """Return the columns that hold options: one per letter from A on, or else one column that lists them all."""
    named = list(columns)
    by_letter = {match[1].upper(): column for column in named if (match := _LETTERED.fullmatch(column))}
    if {"A", "B"} <= by_letter.keys():
        return [by_letter[letter] for letter in sorted(by_letter)]
    return [column for column in named if column.lower() in _LISTED][:1]


def row_options(row: Mapping[str, Cell], columns: Sequence[str]) -> dict[str, str]:
    """Return the options of a row by letter; empty if it has none. `columns` comes from `option_columns`."""
    cells = [row.get(column, "") for column in columns]
    parts = (
        _parts(cells[0]) if len(cells) == 1 else [cell if isinstance(cell, str) else " ".join(cell) for cell in cells]
    )
    lettered = ((chr(ord("A") + number), part.strip()) for number, part in enumerate(parts[:26]))
    return {letter: _MARK.sub("", text, 1) for letter, text in lettered if text}


def right_option(answer: str, options: Mapping[str, str]) -> str:
    """Return the text of the option that an answer names by its letter. Any other answer is returned unchanged."""
    letter = answer.strip("(). ").upper()
    return answer if answer in options.values() else options.get(letter, answer)


def _parts(cell: Cell) -> list[str]:
    """Return the parts of a cell that holds a list, JSON, or a text with a separator."""
    if not isinstance(cell, str):
        return cell
    try:
        content = json.loads(cell)
    except (ValueError, RecursionError):
        separator = next((each for each in _SEPARATORS if each in cell), None)
        return cell.split(separator) if separator else []
    if isinstance(content, dict):
        content = [content[letter] for letter in sorted(content)]
    return [str(each) for each in content] if isinstance(content, list) else []
