"""Read the tables in workbooks (xlsx, xls, xlsb, ods).

Hidden sheets, columns and rows are left out and named. What somebody hid is not meant to be searched.
"""

from __future__ import annotations

import re
import xml.parsers.expat
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from r2med.data.tables.column_names import ALL_NAMES, COVER_SHEET, plain_name
from r2med.data.tables.sheet_marks import SheetMarks, column_letters, sheet_marks
from r2med.data.tables.table import Cell, SourceTable, TableOptions, text_of
from r2med.data.tables.table_heads import GridRow, headed_table
from r2med.foundation.core.errors import UserError

WORKBOOKS = (".xlsx", ".xlsm", ".xlsb", ".xls", ".ods")
"""Endings of the names of workbooks."""
SAVE_FORMULAS = "open the file in a spreadsheet and save it"
SHOWN_PARTS = 5
"""Number of hidden columns and rows that a notice names."""

_ERRORS = frozenset({"#N/A", "#REF!", "#VALUE!", "#NAME?", "#DIV/0!", "#NULL!", "#NUM!", "#NV", "#WERT!", "#BEZUG!"})
_ESCAPED = re.compile(r"_x([0-9A-Fa-f]{4})_")
"""Excel's notation for characters that XML cannot hold. Line ends from Windows are the most common ones."""


def read_workbook(path: Path, reading: TableOptions) -> list[SourceTable]:
    """Return the tables of a workbook: the named sheets, or all sheets except covers, legends and hidden ones."""
    marks = _marks(path)
    visible = _sheets(path)
    sheets = [name for name in visible if not reading.sheets or name in reading.sheets]
    tables = [_table(path, name, reading, marks.get(name)) for name in sheets]
    if not reading.sheets:
        tables = _without_covers(tables, [name for name, shown in visible.items() if not shown])
    if tables and path.suffix.lower() in (".xls", ".xlsb"):
        why = f"hidden columns and rows of {path.suffix.lower()} files cannot be recognised, and are read"
        notice = f"{path.name}: {why}: save it as .xlsx to leave them out"
        return [replace(tables[0], notices=(notice, *tables[0].notices)), *tables[1:]]
    return tables


def sheet_names(path: Path) -> list[str]:
    """Return the names of a workbook's sheets."""
    return list(_sheets(path))


def _marks(path: Path) -> Mapping[str, SheetMarks]:
    """Return what the XML says about each sheet. xls and xlsb files have no XML, nor have those with a password."""
    if path.suffix.lower() in (".xls", ".xlsb") or not zipfile.is_zipfile(path):
        return {}
    try:
        with zipfile.ZipFile(path) as archive:
            return sheet_marks(path, archive)
    except (
        zipfile.BadZipFile,
        xml.parsers.expat.ExpatError,
        zlib.error,
        EOFError,
        OSError,
        LookupError,
        ValueError,
        NotImplementedError,
        RuntimeError,
    ) as error:
        raise _unreadable(path, error) from None


def _unreadable(path: Path, error: BaseException) -> UserError:
    return UserError(f"{path}: not a readable workbook ({str(error)[:200]}): save it again as .xlsx or CSV")


def _open(path: Path) -> Any:
    from python_calamine import CalamineWorkbook, PasswordError

    try:
        return CalamineWorkbook.from_path(path)
    except PasswordError:
        raise UserError(f"{path}: the workbook has a password: save it without one") from None
    except BaseException as error:  # a panic of the library, which is written in Rust, is not an Exception
        if isinstance(error, KeyboardInterrupt | SystemExit):
            raise
        raise _unreadable(path, error) from None


def _sheets(path: Path) -> dict[str, bool]:
    """Return sheet name -> True if the sheet is visible. Charts are left out."""
    from python_calamine import SheetTypeEnum, SheetVisibleEnum

    with _open(path) as book:
        return {
            sheet.name: sheet.visible == SheetVisibleEnum.Visible
            for sheet in book.sheets_metadata
            if sheet.typ == SheetTypeEnum.WorkSheet
        }


def _table(path: Path, sheet: str, reading: TableOptions, marks: SheetMarks | None) -> SourceTable:
    @cache
    def grid() -> tuple[GridRow, ...]:
        # The library keeps all cells anyway, so the rows are kept as well.
        return tuple(_rows(path, sheet, marks or SheetMarks("")))

    table = headed_table(path, lambda: iter(grid()), reading, sheet)
    if marks and table.columns:
        _check_formulas(table, marks)
        heads = {column: _head(path, sheet, column) for column in sorted(marks.hidden_columns)}
        return replace(table, notices=(*table.notices, *_notices(table, marks, heads)))
    return table


def _check_formulas(table: SourceTable, marks: SheetMarks) -> None:
    """Raise UserError if half of a column are formulas whose values a program did not save."""
    for column, count in marks.formula_counts.items():
        if 2 * count >= max(marks.rows - 1, 1) and column not in marks.hidden_columns:
            cells = f"column {column_letters(column)} has {count:,} formulas without values"
            raise UserError(f"{table}: {cells}: {SAVE_FORMULAS}")


def _rows(path: Path, sheet: str, marks: SheetMarks) -> Iterator[GridRow]:
    """Yield the row number and the cells of every row that is neither blank nor hidden, without hidden columns."""
    for line, values in _values(path, sheet):
        if line in marks.hidden_rows:
            continue
        shown = [value for column, value in enumerate(values, 1) if column not in marks.hidden_columns]
        if any(value not in (None, "") for value in shown):
            yield line, _texts(shown)


def _values(path: Path, sheet: str) -> Iterator[tuple[int, list[Any]]]:
    """Yield the number and the values of every row, from column A on."""
    with _open(path) as book:
        try:
            cells = book.get_sheet_by_name(sheet)
            before = [""] * (cells.start[1] if cells.start else 0)
            for line, values in enumerate(cells.iter_rows(), 1):
                yield line, before + values
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt | SystemExit | GeneratorExit):
                raise
            raise UserError(
                f"{path.name}, sheet {sheet}: cannot be read ({str(error)[:100]}): save it again as CSV"
            ) from None


def _head(path: Path, sheet: str, column: int) -> str:
    """Return the first filled cell of a hidden column; empty if there is none."""
    filled = (values[column - 1] for _, values in _values(path, sheet) if len(values) >= column)
    return next((" ".join(str(text_of(value)).split())[:40] for value in filled if value not in (None, "")), "")


def _notices(table: SourceTable, marks: SheetMarks, heads: Mapping[int, str]) -> Iterator[str]:
    show = "show them in the spreadsheet to import them"
    if columns := [f"{column_letters(column)} {head!r}" for column, head in heads.items() if head]:
        yield f"{table}: hidden columns left out: {_some(columns)} ({show})"
    if rows := [str(row) for row in sorted(marks.hidden_rows) if row <= marks.rows]:
        yield f"{table}: hidden rows left out: {_some(rows)} ({show})"
    if count := sum(marks.formula_counts.values()):
        cells = "1 cell has a formula" if count == 1 else f"{count:,} cells have formulas"
        yield f"{table}: {cells} without a value, read as empty: {', '.join(marks.formulas)} ({SAVE_FORMULAS})"


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - SHOWN_PARTS:,} more" if len(names) > SHOWN_PARTS else ""
    return f"{', '.join(names[:SHOWN_PARTS])}{more}"


def _texts(values: Sequence[Any]) -> list[Cell]:
    cells = list(map(_text, values))
    while cells and not cells[-1]:
        cells.pop()
    return cells


def _text(value: Any) -> Cell:
    if isinstance(value, str):
        return "" if value in _ERRORS else _ESCAPED.sub(_character, value).replace("\r\n", "\n")
    return text_of(value)


def _character(match: re.Match[str]) -> str:
    return chr(int(match[1], 16))


def _without_covers(tables: Sequence[SourceTable], hidden: Sequence[str]) -> list[SourceTable]:
    """Return the tables without hidden sheets and cover sheets. A notice names the sheets that are left out."""
    named = [table for table in tables if any(plain_name(column) in ALL_NAMES for column in table.columns)]
    explaining = [
        table
        for table in tables
        if table.sheet in hidden or COVER_SHEET.search(table.sheet) or (named and table not in named)
    ]
    kept = [table for table in tables if table not in explaining]
    left_out = [table.sheet for table in explaining if table.columns]
    if not kept or not left_out:
        return kept or list(tables)
    names = ", ".join(left_out)
    notice = f"{kept[0].path.name}: sheets left out: {names} (sheets (--sheet NAME) reads a sheet)"
    return [replace(kept[0], notices=(notice, *kept[0].notices)), *kept[1:]]
