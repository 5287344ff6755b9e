"""Read the tables in Excel workbooks, each sheet once, with size limits against small hostile files."""

from __future__ import annotations

import re
import warnings
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from r2med.core.errors import MissingExtraError, UserError
from r2med.data.column_names import ALL_NAMES, COVER_SHEET, plain_name
from r2med.data.table import MAX_COLUMNS, Cell, SourceTable, TableOptions, text_of
from r2med.data.table_heads import GridRow, headed_table

MAX_ROWS = 1_048_576
"""Maximum number of rows of a sheet in Excel."""
MAX_CELLS = 50_000_000
"""Maximum number of cells of a sheet, including empty cells between filled ones."""
SMALL_PART = 1 << 23
"""Size in bytes up to which a part of a workbook is always read, whatever its compression ratio."""
MAX_RATIO = 100
"""Maximum compression ratio of a larger part. Real parts have a ratio of 3 to 30."""
MAX_PART = 1 << 31
MAX_TAGS = 400_000
"""Maximum number of XML tags in one row of a sheet. The library keeps all of them, with some hundred bytes each."""
_LARGE_PARTS = re.compile(r"xl/(worksheets/|sharedStrings).*", re.IGNORECASE)
"""The only XML parts that are large in a real workbook."""
_ROW = re.compile(rb"<(?:\w+:)?row\b")

_ERRORS = frozenset({"#N/A", "#REF!", "#VALUE!", "#NAME?", "#DIV/0!", "#NULL!", "#NUM!", "#NV", "#WERT!", "#BEZUG!"})
_ESCAPED = re.compile(r"_x([0-9A-Fa-f]{4})_")
"""Excel's notation for characters that XML cannot hold. Line ends from Windows are the most common ones."""


def read_workbook(path: Path, reading: TableOptions) -> list[SourceTable]:
    """Return the tables of a workbook: the named sheets, or all sheets except covers, legends and hidden ones."""
    _check_size(path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # warnings about parts of the workbook that are not read here
        visible = _sheets(path)
        sheets = [name for name in visible if not reading.sheets or name in reading.sheets]
        tables = [_table(path, name, reading) for name in sheets]
    if reading.sheets:
        return tables
    return _without_covers(tables, [name for name, shown in visible.items() if not shown])


def sheet_names(path: Path) -> list[str]:
    """Return the names of a workbook's sheets."""
    _check_size(path)
    return list(_sheets(path))


def _check_size(path: Path) -> None:
    try:
        with zipfile.ZipFile(path) as archive:
            for part in archive.infolist():
                if part.file_size > SMALL_PART and part.filename.endswith((".xml", ".rels")):
                    _check_part(path, archive, part)
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError, NotImplementedError, RuntimeError) as error:
        raise _unreadable(path, error) from None


def _check_part(path: Path, archive: zipfile.ZipFile, part: zipfile.ZipInfo) -> None:
    ratio = part.file_size / max(part.compress_size, 1)
    if part.file_size > MAX_PART or ratio > MAX_RATIO or not _LARGE_PARTS.fullmatch(part.filename):
        size = f"{part.filename} unpacks to {part.file_size / 1e6:,.0f} MB, {ratio:,.0f} times its size"
        raise UserError(f"{path}: {size}: save it again as CSV if it is a table")
    if "sharedstrings" in part.filename.lower():
        return
    tags = 0
    with archive.open(part) as file:
        while block := file.read(1 << 20):
            first, *rows = _ROW.split(block)
            counts = [tags + first.count(b"<"), *(row.count(b"<") for row in rows)]
            tags = counts[-1]
            if max(counts) > MAX_TAGS:
                why = f"a row of {part.filename} has more than {MAX_TAGS:,} tags"
                raise UserError(f"{path}: {why}: copy the table into a new workbook, or save it as CSV")


def _unreadable(path: Path, error: Exception) -> UserError:
    return UserError(f"{path}: not a readable workbook ({str(error)[:200]}): save it again as .xlsx or CSV")


def _open(path: Path) -> Any:
    try:
        from openpyxl import load_workbook
    except ImportError:
        raise MissingExtraError(f"{path.name}: reading Excel", "excel") from None
    try:
        return load_workbook(path, read_only=True, data_only=True, keep_links=False)
    except Exception as error:  # the library's many exceptions for a broken archive all mean the same to a user
        raise _unreadable(path, error) from None


def _sheets(path: Path) -> dict[str, bool]:
    """Return sheet name -> True if the sheet is visible."""
    book = _open(path)
    try:
        return {sheet.title: sheet.sheet_state == "visible" for sheet in book.worksheets}
    finally:
        book.close()


def _table(path: Path, sheet: str, reading: TableOptions) -> SourceTable:
    @cache
    def grid() -> tuple[GridRow, ...]:
        # The library is slow, and keeps the texts of all cells anyway, so the rows are kept as well.
        return tuple(_rows(path, sheet))

    return headed_table(path, lambda: iter(grid()), reading, sheet)


def _rows(path: Path, sheet: str) -> Iterator[GridRow]:
    """Yield the row number and the cells of every row that is not blank."""
    book, line, cells = _open(path), 0, 0
    try:
        worksheet = book[sheet]
        worksheet.reset_dimensions()  # programs write wrong dimensions, and rows outside them would be lost
        for line, values in enumerate(worksheet.iter_rows(values_only=True), 1):
            cells += len(values)
            if line > MAX_ROWS or cells > MAX_CELLS or len(values) > MAX_COLUMNS:
                raise UserError(_too_large(path, sheet, line, len(values)))
            if any(value not in (None, "") for value in values):
                yield line, _texts(values)
    except UserError:
        raise
    except Exception as error:
        raise UserError(
            f"{path.name}, sheet {sheet}: cannot be read after row {line} ({str(error)[:100]}): save it again as CSV"
        ) from None
    finally:
        book.close()


def _too_large(path: Path, sheet: str, line: int, width: int) -> str:
    where = f"{path.name}, sheet {sheet}, row {line}"
    if line > MAX_ROWS:
        return f"{where}: Excel's last row is {MAX_ROWS:,}: copy the table into a new workbook"
    if width > MAX_COLUMNS:
        return f"{where}: {width:,} columns; at most {MAX_COLUMNS:,} are read: keep those that matter"
    return f"{where}: more than {MAX_CELLS:,} cells: copy the table into a new workbook, or save it as CSV"


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
    notice = f"{kept[0].path.name}: sheets left out: {names} (import_tables(sheets=['NAME']) reads a sheet)"
    return [replace(kept[0], notices=(notice, *kept[0].notices)), *kept[1:]]
