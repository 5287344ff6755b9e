"""Recognise columns of running text, which a person wrote: not ids, dates, codes, names or choices from a list."""

from __future__ import annotations

import re
from collections.abc import Sequence

from r2med.data.tables.column_names import NAMES, OTHER_NAMES, plain_name
from r2med.data.tables.table import SourceTable
from r2med.foundation.text.word_counts import UNSPACED, count_words

MIN_WORDS = 4
"""Mean number of words per cell from which a column is running text, if its name does not say so."""
MIN_UNUSED_WORDS = 3
"""If the cells of a column have more words on average, and it is not read, the import says so."""
OWN_SHARE = 0.3
"""The share of different cells above which the cells are not choices from a list."""
OWN_TEXTS = 20
"""Number of different cells above which the cells are not choices from a list, however often they repeat."""

_WORD = re.compile(r"[^\W\d_]{2,}")


def text_columns(table: SourceTable, free: Sequence[str], longest: str) -> tuple[str, ...]:
    """Return the columns that make up the text of a document, in order. `longest` is always one of them."""
    return tuple(column for column in free if column == longest or _is_running_text(table, column))


def _is_running_text(table: SourceTable, column: str) -> bool:
    name = plain_name(column)
    cells = _cells(table, column)
    if not cells or name in OTHER_NAMES or name in NAMES["links"] or cells[0][0] in "{[":
        return False
    words = _mean_words(cells)
    if name in NAMES["text"]:
        return words >= 1.5
    own = len(set(cells))
    return words >= MIN_WORDS and (own > OWN_TEXTS or own > OWN_SHARE * len(cells))


def has_long_cells(table: SourceTable, column: str) -> bool:
    """Return True if the cells of a column have more than `MIN_UNUSED_WORDS` words on average."""
    return _mean_words(_cells(table, column)) > MIN_UNUSED_WORDS


def _cells(table: SourceTable, column: str) -> list[str]:
    """Return the texts of a column in the sample, without the empty ones."""
    return [cell.strip() for row in table.sample if isinstance(cell := row.get(column, ""), str) and cell.strip()]


def _mean_words(cells: Sequence[str]) -> float:
    return sum(map(_words, cells)) / max(len(cells), 1)


def _words(cell: str) -> int:
    return count_words(cell) if UNSPACED.search(cell) else len(_WORD.findall(cell))
