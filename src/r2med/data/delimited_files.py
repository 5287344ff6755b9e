"""CSV and similar files: any separator, in UTF-8, UTF-16 or Windows-1252, with or without a header row."""

from __future__ import annotations

import codecs
import csv
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TextIO

from r2med.core.errors import UserError
from r2med.data.column_names import ALL_NAMES, plain_name
from r2med.data.table import MAX_CELL_CHARACTERS, MAX_COLUMNS, SourceTable, TableOptions, check_width
from r2med.data.table_heads import LONGEST_HEAD, GridRow, headed_table, title_rows

SEPARATORS = ",;\t|"
START_CHARACTERS = 1 << 20
"""Number of characters at the start of a file from which the separator is guessed."""

_TWO_BYTES = re.compile(rb"[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}")
_QRELS_LINE = re.compile(r"\S+ +\S+ +\S+ +-?\d{1,3}\s*")
"""A judgement in TREC's format, separated by spaces."""
_HIGH = re.compile(rb"[\x80-\xff]")


def read_delimited(path: Path, reading: TableOptions) -> list[SourceTable]:
    """Return the table of a CSV file or of a similar file."""
    encoding, notices = _encoding(path)
    csv.field_size_limit(MAX_CELL_CHARACTERS)  # Python's own limit, 131,072, is less than a long letter
    with path.open(encoding=encoding, newline="") as file:
        start = file.read(START_CHARACTERS)
    lines = start.splitlines(keepends=True)
    if len(start) == START_CHARACTERS and len(lines) > 1:
        lines.pop()  # cut in the middle
    below = reading.skip_rows or 0
    separator = _separator(lines[below:], path)

    def grid() -> Iterator[GridRow]:
        return _records(path, encoding, separator)

    table = headed_table(path, grid, reading, separator=separator)
    return [replace(table, notices=(*notices, *table.notices))]


def _encoding(path: Path) -> tuple[str, tuple[str, ...]]:
    """Return the encoding of a file: by its byte order mark, otherwise UTF-8 if it is valid, otherwise Windows-1252."""
    with path.open("rb") as file:
        head = file.read(4096)
    marked = next((encoding for mark, encoding in _MARKS if head.startswith(mark)), "")
    marked = marked or ("utf-16-le" if head[1:2] == b"\0" else "utf-16-be" if head[:1] == b"\0" else "")
    line = _first_fault(path, marked or "utf-8")
    if line and marked:
        raise UserError(f"{path}:{line}: damaged or cut off, as it is not {_name(marked)}: copy or export it again")
    if not line:
        return marked or "utf-8", ()
    # If a few bytes of a UTF-8 file are Windows-1252, reading all of it as Windows-1252 would spoil every other accent.
    if _is_mostly_utf8(path):
        raise UserError(f"{path}:{line}: not UTF-8, as the rest of the file is: save it as UTF-8")
    if fault := _first_fault(path, "cp1252"):
        raise UserError(f"{path}:{fault}: neither UTF-8 nor Windows-1252: save it as UTF-8")
    return "cp1252", (f"{path.name} is not UTF-8: it is read as Windows-1252",)


_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


def _name(encoding: str) -> str:
    return encoding.upper()[:6].rstrip("-")


def _first_fault(path: Path, encoding: str) -> int:
    """Return the first line that cannot be decoded; 0 if all can."""
    decoder = codecs.getincrementaldecoder(encoding)()
    line = 1
    with path.open("rb") as file:
        try:
            while block := file.read(1 << 16):
                line += decoder.decode(block).count("\n")
            decoder.decode(b"", final=True)
        except UnicodeDecodeError as error:
            # The bytes before the fault in this decoder call are whole characters.
            return line + codecs.decode(error.object[: error.start], encoding, "ignore").count("\n")
    return 0


def _is_mostly_utf8(path: Path) -> bool:
    with path.open("rb") as file:
        content = file.read(1 << 24)
    pairs = _TWO_BYTES.findall(content)
    return 2 * sum(map(len, pairs)) > len(_HIGH.findall(content))


def _separator(lines: Sequence[str], path: Path) -> str:
    """Return the separator of the cells; empty if each line is one cell."""
    best, too_wide = ("", (False, 0.0, 0)), 0
    for separator in SEPARATORS:
        try:
            rows = [row for row in csv.reader(lines, delimiter=separator) if any(map(str.strip, row))]
        except csv.Error:
            continue
        if rows and len(rows[0]) > MAX_COLUMNS:  # a table that is too wide, or a long text with many commas
            too_wide = max(too_wide, len(rows[0])) if all(len(row) == len(rows[0]) for row in rows) else too_wide
            continue
        titles = title_rows([list(row) for row in rows[:200]])
        head, rows = rows[titles] if rows else [], rows[titles:]
        width = len(head)
        alike = sum(len(row) == width for row in rows) / max(len(rows), 1)
        known = any(plain_name(cell) in ALL_NAMES for cell in head)
        if titles and not known and (width < 3 or alike < 1):
            continue  # a list of texts, some of which hold the separator
        named = width > 1 and max(map(len, head)) <= LONGEST_HEAD // 2 and head[-1][-1:] not in (".", "?")
        if width > 1 and (alike > 0.9 or named or known):
            best = max(best, (separator, (known, alike, width)), key=lambda pair: pair[1])
    check_width(path, best[1][2] or too_wide)
    return best[0] or (" " if lines and all(map(_QRELS_LINE.fullmatch, lines)) else "")


def _records(path: Path, encoding: str, separator: str) -> Iterator[GridRow]:
    """Yield (line, cells) of every record that is not blank."""
    with path.open(encoding=encoding, newline="") as file:
        lines = _lines(file, path)
        if not separator:
            for line, text in enumerate(lines, 1):
                if text.strip():
                    yield line, [text.strip().strip('"')]
            return
        reader = csv.reader(lines, delimiter=separator, strict=True, skipinitialspace=separator == " ")
        line = 1
        try:
            for cells in reader:
                if any(map(str.strip, cells)):
                    yield line, [cell.replace("\r\n", "\n") for cell in cells]
                line = reader.line_num + 1
        except csv.Error as error:
            raise UserError(f"{path}:{line}: {_quoting(error)}: save the table again as CSV") from None


def _quoting(error: csv.Error) -> str:
    if "field limit" in str(error):
        return f"a cell of more than {MAX_CELL_CHARACTERS:,} characters, or a quote that is not closed"
    return (
        "a quote is not closed or not doubled"
        if "expected" in str(error) or "end of data" in str(error)
        else str(error)
    )


def _lines(file: TextIO, path: Path) -> Iterator[str]:
    """Yield the lines of a file. Raises UserError for a line that would fill the memory."""
    number = 0
    while line := file.readline(MAX_CELL_CHARACTERS):
        number += 1
        if len(line) == MAX_CELL_CHARACTERS and line[-1] != "\n":
            raise UserError(f"{path}:{number}: a line of more than {MAX_CELL_CHARACTERS:,} characters: is it a table?")
        yield line
