"""Tables with a column for each document (or for each question) and grades in the cells."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from r2med.data.tables.column_contents import filled, holds_verdicts
from r2med.data.tables.column_names import OTHER_NAMES, is_called_id, plain_name
from r2med.data.tables.grade_words import LARGEST_SCALE, grade_of
from r2med.data.tables.table import SourceTable
from r2med.foundation.core.errors import UserError
from r2med.foundation.core.notices import Setting

MIN_COLUMNS = 2
"""Number of columns of grades from which a table is a matrix."""


def matrix_columns(table: SourceTable, free: Sequence[str], ids: Collection[str]) -> tuple[str, ...]:
    """Return the columns whose headings are ids and whose cells are grades; empty if the table is not a matrix."""
    found = [column for column in grade_columns(table, free) if column in ids]
    return tuple(found) if len(found) >= MIN_COLUMNS else ()


def grade_columns(table: SourceTable, free: Sequence[str]) -> list[str]:
    """Return the columns that hold only grades and empty cells."""
    return [
        column
        for column in free
        if (cells := filled(table, column)) and all(grade_of(cell) in LARGEST_SCALE for cell in cells)
    ]


def check_matrix(table: SourceTable, matrix: Sequence[str]) -> None:
    """Raise UserError if all documents have grades for all questions, but none is 0: 1 may mean not relevant."""
    cells = [cell for column in matrix for cell in filled(table, column)]
    grades = {grade for cell in cells if (grade := grade_of(cell)) is not None}
    if len(cells) == len(matrix) * len(table.sample) and len(grades) > 1 and min(grades) > 0:
        raise UserError(
            f"{table}: the grades are {', '.join(map(str, sorted(grades)))}, but never 0: write 0 for documents that "
            "are not relevant"
        )


def check_headings(table: SourceTable, free: Sequence[str]) -> None:
    """Raise UserError if several columns hold grades, but their headings are no ids of documents."""
    found = [
        column
        for column in grade_columns(table, free)
        if plain_name(column) not in OTHER_NAMES and not is_called_id(column) and holds_verdicts(table, column)
    ]
    if len(found) >= MIN_COLUMNS:
        names = ", ".join(map(repr, found[:3]))
        raise UserError(
            f"{table}: columns {names}{', …' if len(found) > 3 else ''} hold grades, but their headings are no "
            "ids of documents: write the ids as headings, or leave them out with ",
            Setting("import_data", no_grade=True),
        )
