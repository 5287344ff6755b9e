"""Cells that name documents: one id or several, with or without a grade behind each."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection

from r2med.data.tables.table import Cell

_AND = r"\s+(?:and|und|et|y|e|と|和)\s+"
_SEPARATORS = (r"\n", r"[;；]", r"\|", r"[,，、]", "/", r"\s+", rf"{_AND}|,", r"\s*[&+]\s*|[,;]", r"[と和、，]")
_SURE_SEPARATORS = 4
"""The number of separators at the start of `_SEPARATORS` that ids rarely contain."""


def split_ids(cell: Cell, known: Collection[str]) -> list[str]:
    """Return the ids in a cell, which is a list or a text with separators between known ids."""
    if not isinstance(cell, str):
        return [part.strip() for part in cell if part.strip()]
    text = cell.strip()
    if text in known or not text:
        return [text] if text else []
    if text[0] == "[" and text[-1] == "]":
        try:
            return [str(part).strip() for part in ast.literal_eval(text)]
        except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
            text = text[1:-1]
    ways = [[part for each in re.split(separator, text) if (part := each.strip(" \"'"))] for separator in _SEPARATORS]
    shares = [sum(_without_grade(part, known)[0] in known for part in parts) / max(len(parts), 1) for parts in ways]
    if not any(shares):  # no id is known: take the first separator of the list that occurs
        return next((parts for parts in ways[:_SURE_SEPARATORS] if len(parts) > 1), [text])
    return ways[shares.index(max(shares))]


def _without_grade(part: str, known: Collection[str]) -> tuple[str, str]:
    """Return an id and its grade, if it is written ID:GRADE or ID=GRADE and the id is known."""
    match = re.fullmatch(r"(.+?)\s*[:=]\s*(\d+)", part)
    return (match[1], match[2]) if match and part not in known and match[1] in known else (part, "")


def graded_ids(cell: Cell, known: Collection[str]) -> list[tuple[str, str]]:
    """Return each id in a cell with its grade, or with an empty grade if there is none."""
    return [_without_grade(part, known) for part in split_ids(cell, known)]
