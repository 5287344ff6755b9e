"""What the cells of a column look like: ids, verdicts, texts. A sample of the rows decides."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence

from r2med.data.tables.column_names import OTHER_NAMES, plain_name
from r2med.data.tables.grade_words import are_verdicts
from r2med.data.tables.id_cells import graded_ids
from r2med.data.tables.table import Cell, SourceTable, flat
from r2med.foundation.text.word_counts import UNSPACED, count_words

MAJORITY_SHARE = 0.5
"""A column is of a type if more than this share of its values are of that type."""
LONGEST_UNSPACED_ID = 12
"""Characters of an id in a script without spaces. A longer cell is a text."""

_DATE = re.compile(r"\d{1,4}[./-]\d{1,2}[./-]\d{1,4}([T ].*)?|\d{1,2}:\d\d(:\d\d)?|\d+[.,]\d+")


def filled(table: SourceTable, column: str) -> list[str]:
    """Return the filled cells of a column in the sample."""
    return [cell for row in table.sample if (cell := flat(row.get(column, "")))]


def share(table: SourceTable, column: str, is_so: Callable[[str], bool]) -> float:
    """Return the share of the filled cells that pass a test; 0 if all cells are empty."""
    cells = filled(table, column)
    return sum(map(is_so, cells)) / max(len(cells), 1)


def mean_words(table: SourceTable, column: str, only_filled: bool = False) -> float:
    """Return the mean number of words per cell. Empty cells count unless `only_filled` is true."""
    cells = [cell for row in table.sample if (cell := flat(row.get(column, ""))) or not only_filled]
    return sum(map(count_words, cells)) / max(len(cells), 1)


def holds_ids(table: SourceTable, column: str, ids: Collection[str]) -> bool:
    """Return True if most cells of a column hold a known id."""
    return bool(ids) and share(table, column, lambda cell: bool(_known(cell, ids))) > MAJORITY_SHARE


def holds_several_ids(table: SourceTable, column: str, ids: Collection[str]) -> bool:
    """Return True if a cell of a column holds several known ids."""
    return bool(ids) and any(len(_known(cell, ids)) > 1 for cell in filled(table, column))


def _known(cell: str, ids: Collection[str]) -> list[str]:
    return [part for part, _ in graded_ids(cell, ids) if part in ids]


def holds_verdicts(table: SourceTable, column: str) -> bool:
    """Return True if all cells of a column are yes, no or grades of a small scale."""
    return are_verdicts(filled(table, column))


def is_id(rows: Sequence[Mapping[str, Cell]], column: str) -> bool:
    """Return True if a column has one word in every row, and no word twice."""
    values = [flat(row.get(column, "")) for row in rows]
    return (
        bool(values)
        and all(map(_is_one_word, values))
        and len(set(values)) == len(values)
        and plain_name(column) not in OTHER_NAMES
        and not all(map(_DATE.fullmatch, values))
    )


def is_date(cell: str) -> bool:
    """Return True if a cell is a date, a time or a number with decimals."""
    return bool(_DATE.fullmatch(cell))


def _is_one_word(value: str) -> bool:
    long = len(value) > LONGEST_UNSPACED_ID and not value.isascii() and bool(UNSPACED.search(value))
    return len(value.split()) == 1 and not long


def is_nearly_id(rows: Sequence[Mapping[str, Cell]], column: str) -> bool:
    """Return True if more than half of the rows have different values of a few words."""
    values = {value for row in rows if (value := flat(row.get(column, "")))}
    return len(values) > MAJORITY_SHARE * len(rows) and sum(map(count_words, values)) <= 3 * len(values)
