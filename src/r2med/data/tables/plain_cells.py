"""Check that the cells of an import are plain text: neither markup nor nested objects."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence

from r2med.data.tables.columns import Part
from r2med.data.tables.table import Cell
from r2med.foundation.core.errors import UserError

MAX_SHARE = 0.2
"""Share of the cells of a column from which markup or nested objects stop the import. Below, a notice names them."""

_OPENING = re.compile(r"<([A-Za-z][\w:.-]*)(?:\s[^<>]*)?/?>")
_CLOSING = re.compile(r"</([A-Za-z][\w:.-]*)\s*>")
_WITHOUT_END = frozenset("br p hr img li td tr th col input meta".split())


def check_cells(parts: Sequence[Part], keep_markup: bool) -> list[str]:
    """Return notices about texts with markup. Raises UserError if many are markup, and the user does not want that.

    Raises UserError too if the cells of a column that is used are nested objects.
    """
    notices = []
    for part in parts:
        for column in dict.fromkeys([*part.columns.values(), *part.texts]):
            _refuse(part, column, _is_nested, "nested objects", "write their fields as columns of their own")
        texts = [*part.texts, *(part.columns[role] for role in ("query", "text") if role in part.columns)]
        for column in dict.fromkeys(texts) if not keep_markup else ():
            how = "write them as plain text, or take them as they are with keep_markup (--keep-markup)"
            marked = _refuse(part, column, is_rtf, "RTF", how) + _refuse(part, column, is_html, "HTML", how)
            if marked:
                rows = "1 of the first rows has" if marked == 1 else f"{marked:,} of the first rows have"
                notices.append(f"{part.table}: {rows} markup (HTML or RTF) in column {column!r}, taken as it is")
    return notices


def _refuse(part: Part, column: str, is_so: Callable[[str], bool], what: str, how: str) -> int:
    """Return the number of cells of the sample that are so. Raises UserError if they are many."""
    rows = [texts for row in part.table.sample if any(texts := _texts(row.get(column, "")))]
    found = sum(any(map(is_so, texts)) for texts in rows)
    if found and found > MAX_SHARE * len(rows):
        raise UserError(f"{part.table}: the texts of column {column!r} are {what}: {how}")
    return found


def _texts(cell: Cell) -> list[str]:
    return [cell] if isinstance(cell, str) else cell


def is_rtf(text: str) -> bool:
    """Return True if a text is RTF."""
    return text.lstrip().startswith("{\\rtf")


def is_html(text: str) -> bool:
    """Return True if a text has tags that belong together. `p < 0.05` and `<name>` are none."""
    if "<" not in text:
        return False
    opened = [name.lower() for name in _OPENING.findall(text)]
    closed = {name.lower() for name in _CLOSING.findall(text)}
    return not closed.isdisjoint(opened) or sum(name in _WITHOUT_END for name in opened) > 1


def _is_nested(text: str) -> bool:
    text = text.strip()
    if text[:1] not in ("{", "[") or is_rtf(text):
        return False
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return False
    return isinstance(value, dict) or (isinstance(value, list) and any(isinstance(each, dict) for each in value))
