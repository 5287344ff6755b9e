"""CSV and similar files: any separator, with or without a header row."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from r2med.data.tables.column_names import ALL_NAMES, plain_name
from r2med.data.tables.table import SourceTable, TableOptions
from r2med.data.tables.table_heads import LONGEST_HEAD, GridRow, headed_table, title_rows
from r2med.data.tables.text_encodings import text_encoding
from r2med.foundation.core.errors import UserError

SEPARATORS = ",;\t|"
LONGEST_CELL = (1 << 31) - 1
"""Number of characters of a cell that are read. Python's own limit, 131,072, is less than a long letter."""
START_CHARACTERS = 1 << 20
"""Number of characters at the start of a file from which the separator is guessed."""

_QRELS_LINE = re.compile(r"\S+ +\S+ +\S+ +-?\d{1,3}\s*")
"""A judgement in TREC's format, separated by spaces."""
_RUN_LINE = re.compile(r"\S+\s+Q0\s+\S+\s+\d+\s+-?[\d.]+(?:[eE][+-]?\d+)?\s+\S+\s*")
"""A result of a system in TREC's format."""


def read_delimited(path: Path, reading: TableOptions) -> list[SourceTable]:
    """Return the table of a CSV file or of a similar file."""
    encoding = text_encoding(path, reading.encoding)
    csv.field_size_limit(LONGEST_CELL)
    with path.open(encoding=encoding, newline="") as file:
        start = file.read(START_CHARACTERS)
    lines = start.splitlines(keepends=True)
    if len(start) == START_CHARACTERS and len(lines) > 1:
        lines.pop()  # cut in the middle
    if lines and all(map(_RUN_LINE.fullmatch, lines)):
        raise UserError(
            f"{path.name} holds the results of a system (a TREC run), not judgements: leave it out, and score it with "
            "r2med score"
        )
    below = reading.skip_rows or 0
    separator = _separator(lines[below:])

    def grid() -> Iterator[GridRow]:
        return _records(path, encoding, separator)

    return [headed_table(path, grid, reading, separator=separator)]


def _separator(lines: Sequence[str]) -> str:
    """Return the separator of the cells; empty if each line is one cell."""
    best = ("", (False, 0.0, 0))
    for separator in SEPARATORS:
        try:
            rows = [row for row in csv.reader(lines, delimiter=separator) if any(map(str.strip, row))]
        except csv.Error:
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
    return best[0] or (" " if lines and all(map(_QRELS_LINE.fullmatch, lines)) else "")


def _records(path: Path, encoding: str, separator: str) -> Iterator[GridRow]:
    """Yield (line, cells) of every record that is not blank."""
    with path.open(encoding=encoding, newline="") as file:
        if not separator:
            for line, text in enumerate(file, 1):
                if text.strip():
                    yield line, [text.strip().strip('"')]
            return
        reader = csv.reader(file, delimiter=separator, strict=True, skipinitialspace=separator == " ")
        line = 1
        try:
            for cells in reader:
                if any(map(str.strip, cells)):
                    yield line, [cell.replace("\r\n", "\n") for cell in cells]
                line = reader.line_num + 1
        except csv.Error as error:
            raise UserError(f"{path}:{line}: {_quoting(error)}: save the table again as CSV") from None


def _quoting(error: csv.Error) -> str:
    is_open = "expected" in str(error) or "end of data" in str(error)
    return "a quote is not closed or not doubled" if is_open else str(error)
