"""Columns of running text: what a person wrote, and not ids, dates, codes, names or choices from a list."""

from __future__ import annotations

import re
from collections.abc import Sequence

from r2med.data.column_names import NAMES, OTHER_NAMES, plain_name
from r2med.data.table import SourceTable

WORDS = 4
"""Words that cells of running text have on average, where the column's name does not say that it is one."""
OWN_SHARE = 0.3
"""The share of cells that differ, above which they were not chosen from a list."""
OWN_TEXTS = 20
"""Different cells that no list has, however often they repeat."""

_WORD = re.compile(r"[^\W\d_]{2,}")


def text_columns(table: SourceTable, free: Sequence[str], longest: str) -> tuple[str, ...]:
    """Return the columns that make up a document's text, in their order; `longest` is always one of them."""
    return tuple(column for column in free if column == longest or _is_running_text(table, column))


def _is_running_text(table: SourceTable, column: str) -> bool:
    name = plain_name(column)
    cells = [cell.strip() for row in table.sample if isinstance(cell := row.get(column, ""), str) and cell.strip()]
    if not cells or name in OTHER_NAMES or name in NAMES["links"] or cells[0][0] in "{[":
        return False
    words = sum(len(_WORD.findall(cell)) for cell in cells) / len(cells)
    if name in NAMES["text"]:
        return words >= 1.5
    own = len(set(cells))
    return words >= WORDS and (own > OWN_TEXTS or own > OWN_SHARE * len(cells))
