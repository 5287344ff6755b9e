"""Find the start of the table in a file of rows: titles above the column names, column names, or data."""

from __future__ import annotations

import itertools
import re
import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from r2med.data.tables.column_names import ALL_NAMES, TOTAL_WORDS, plain_name
from r2med.data.tables.grade_words import grade_of
from r2med.data.tables.table import SAMPLE_ROWS, Cell, Row, SourceTable, TableOptions, check_width, column_names
from r2med.foundation.core.errors import UserError
from r2med.foundation.text.word_counts import count_words

LONGEST_HEAD = 60
"""Maximum length of a column name. If a cell of the first row is longer, it is a text and the table has no header."""
LAST_TITLE = 30
"""Number of rows at the top that are searched for the column names."""
_SENTENCE = re.compile(r"\S+\s+\S+\s+.*\S[.?!]", re.DOTALL)
_NUMBER = re.compile(r"[\d\s.,:/+-]*\d[\d\s.,:/+-]*")
_GRADE = re.compile(r"-?\d{1,3}")
_TOTAL = re.compile(r"([^\W\d_]+)\s*(?:[:：=(]|\d|$)")
"""The first cell of a total, as `Total: 3 notes`. `Total hip replacement` is none."""
_UNIT = re.compile(
    r"[\[(].{1,40}[\])]|-|–|%|°C|(?:[mkµnd]?[gl]|[mcd]?m|m?mol|years?|days?|Jahre|ans|años|text|string|date|number"
    r"|integer)(?:/[µmkd]?[gl]|/min|/h|/d)?"
)
_QRELS = {4: ("query_id", "iteration", "document_id", "grade"), 3: ("query_id", "document_id", "grade")}

GridRow = tuple[int, list[Cell]]
"""The line number of a row, and its cells from left to right."""


def headed_table(
    path: Path, grid: Callable[[], Iterator[GridRow]], reading: TableOptions, sheet: str = "", separator: str = ""
) -> SourceTable:
    """Return the table of a grid of cells without blank rows. Titles are skipped and columns are named.

    If the cells have a separator, a row that is longer than the first is an error, because a text holds the separator.
    """
    below = reading.skip_rows or 0
    start = [row for row in itertools.islice(grid(), SAMPLE_ROWS + LAST_TITLE + below) if row[0] > below]
    titles = (
        title_rows([cells for _, cells in start]) if reading.skip_rows is None and reading.header is not False else 0
    )
    rows = start[titles:]
    first = rows[0][1] if rows else []
    has_header = (
        looks_like_header(first, [cells for _, cells in rows[1:]]) if reading.header is None else reading.header
    )
    # In a workbook the data may be wider than the column names. A cell beyond both belongs to no column.
    width = max((_width(cells) for _, cells in rows), default=0)
    width = min(width, len(first)) if separator else width
    check_width(path, width)
    head = [*first[:width], *[""] * (width - len(first))]
    columns = column_names(head if has_header else _names_of([cells for _, cells in rows], width))
    begin = rows[0][0] + int(has_header) if rows else 0
    first_data = rows[1][0] if len(rows) > 1 else 0

    def read() -> Iterator[Row]:
        for line, cells in grid():
            if line < begin:
                continue
            if any(map(_filled, cells[width:])):
                raise UserError(f"{table.at(line)}: {_too_wide(cells, width, separator)}")
            if has_header and (what := _not_data(cells, columns, line == first_data)):
                table.left_out[line] = what
                continue
            yield line, dict(zip(columns, [*cells[:width], *[""] * (width - len(cells))], strict=True))

    table = SourceTable(path, columns, read, sheet)
    return replace(table, notices=tuple(_notices(table, start[:titles], has_header, reading)))


def _not_data(cells: Sequence[Cell], columns: Sequence[str], is_first: bool) -> str:
    """Return what a row below the column names holds if it is not data: column names, units or a total."""
    words = [" ".join(str(cell).split()) for cell in cells]
    filled = [word for word in words if word]
    if filled and all(word in ("", name) for word, name in zip(words, columns, strict=False)):
        return f"names of columns, {filled[0][:40]!r}"
    if is_first and all(map(_UNIT.fullmatch, filled)):
        return f"units, {filled[0][:40]!r}"
    only_numbers = all(map(_NUMBER.fullmatch, filled[1:]))
    is_short = len(filled) < max(len(columns), 2) or only_numbers
    is_total = len(columns) > 1 and is_short and _begins_total(filled[0])
    return f"total, {filled[0][:40]!r}" if is_total else ""


def _begins_total(cell: str) -> bool:
    """Return True if the first cell of a row is that of a total: `Total: 3 notes`, `Grand Total` or `Total yes`."""
    total, (first, _, rest) = _TOTAL.match(cell), cell.partition(" ")
    if plain_name(cell) in TOTAL_WORDS:
        return True
    return plain_name(total[1] if total else first if grade_of(rest) is not None else "") in TOTAL_WORDS


def _names_of(rows: Sequence[Sequence[Cell]], width: int) -> Sequence[str]:
    """Return the column names of a table without a header: those of TREC qrels if the rows look like that, or none."""
    words = [[str(cell).strip() for cell in cells] for cells in rows]
    is_qrels = width in _QRELS and all(
        len(cells) == width and not any(re.search(r"\s|^$", cell) for cell in cells) and _GRADE.fullmatch(cells[-1])
        for cells in words
    )
    return _QRELS[width] if is_qrels else [""] * width


def _too_wide(cells: Sequence[Cell], width: int, separator: str) -> str:
    hint = f"put texts that hold {separator!r} or line ends in quotes" if separator else "give each column a name"
    return f"{_width(cells)} cells where the first row has {width}: {hint}"


def _notices(table: SourceTable, titles: Sequence[GridRow], has_header: bool, reading: TableOptions) -> Iterator[str]:
    if titles:
        said = next(str(cell) for cell in titles[0][1] if _filled(cell))[:LONGEST_HEAD]
        lines = "1 row" if len(titles) == 1 else f"{len(titles)} rows"
        yield (
            f"{table}: {lines} above the names of columns left out, from {said!r} on (skip_rows (--skip-rows 0) "
            "keeps them)"
        )
    if reading.header is None and not has_header:
        yield (
            f"{table}: the first row looks like data, so columns are numbered (header (--header) if it holds their "
            "names)"
        )


def title_rows(rows: Sequence[Sequence[Cell]]) -> int:
    """Return the number of title rows at the top. They fill fewer cells than the column names below them."""
    filled = [sum(map(_filled, cells)) for cells in rows]
    typical = statistics.median_high(filled) if filled else 0
    if typical < 2:
        return 0
    known = [sum(plain_name(str(cell)) in ALL_NAMES for cell in cells) for cells in rows[:LAST_TITLE]]
    best = max(known)
    number = known.index(best) if best >= 2 else next(n for n, count in enumerate(filled) if 2 * count > typical)
    if number >= LAST_TITLE or any(count >= filled[number] for count in filled[:number]):
        return 0
    return number if looks_like_header(rows[number], rows[number + 1 :]) else 0


def looks_like_header(cells: Sequence[Cell], below: Sequence[Sequence[Cell]]) -> bool:
    """Return True if a row holds column names: no cell is a number or similar to the data in the rows below."""
    names = [str(cell).strip() for cell in cells if _filled(cell)]
    if not names or any(len(name) > LONGEST_HEAD or _NUMBER.fullmatch(name) for name in names):
        return False
    known = sum(plain_name(name) in ALL_NAMES for name in names)
    if len(cells) == 1:  # a list of texts, one per line, usually has no header
        return count_words(names[0]) <= (1 if names[0].isascii() else 3) and len(names[0]) <= LONGEST_HEAD // 2
    if known > 1 or not below:
        return True
    if any(_like_column(cells, below, column) for column in range(len(cells))):
        return False
    return bool(known) or (len(set(names)) == len(names) and not any(map(_SENTENCE.fullmatch, names)))


def _like_column(cells: Sequence[Cell], below: Sequence[Sequence[Cell]], column: int) -> bool:
    """Return True if the cell has the same shape as the cells below it, as n1 is similar to n2 and n31."""
    shape = _shape(cells[column])
    shapes = [_shape(row[column]) for row in below if column < len(row) and _filled(row[column])]
    return "9" in shape and bool(shapes) and shapes.count(shape) >= 0.9 * len(shapes)


def _shape(cell: Cell) -> str:
    return re.sub(r"[^\W\d_]+", "a", re.sub(r"\d+", "9", str(cell)[:LONGEST_HEAD].strip()))


def _width(cells: Sequence[Cell]) -> int:
    return max((number for number, cell in enumerate(cells, 1) if _filled(cell)), default=0)


def _filled(cell: Cell) -> bool:
    return bool(cell if isinstance(cell, list) else cell.strip())
