"""Read tables of synonyms: CSV and TSV files with the columns concept and term."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from pathlib import Path

from r2med.foundation.core.errors import UserError

_HELP = "a table of synonyms is a CSV or TSV file with the columns concept and term"


def read_terms(path: Path) -> list[tuple[str, str]]:
    """Return the (concept, term) pairs of a table of synonyms. Raises UserError if the file is not such a table."""
    try:
        body = path.read_bytes()
    except OSError as error:
        raise UserError(f"cannot read the table of synonyms {path}: {error.strerror or error}") from None
    try:
        text = body.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = body.count(b"\n", 0, error.start) + 1
        raise UserError(f"{path}:{line}: not UTF-8: save the file as UTF-8") from None
    terms = list(_delimited(path, text))
    if not terms:
        raise UserError(f"{path}: no terms in it: {_HELP}")
    return terms


def _delimited(path: Path, text: str) -> Iterator[tuple[str, str]]:
    """Yield the pairs of a CSV or TSV file. Without a header its two columns are concept and term."""
    head = text.lstrip().partition("\n")[0]
    separator = "\t" if "\t" in head else ";" if ";" in head and "," not in head else ","
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    columns: tuple[int, int] | None = None
    try:
        for row in rows:
            if not any(cell.strip() for cell in row):
                continue
            if columns is None:
                columns, is_header = _columns(path, row)
                if is_header:
                    continue
            pair = tuple(row[column].strip() if column < len(row) else "" for column in columns)
            if not all(pair):
                raise UserError(f"{path}:{rows.line_num}: a row needs a concept and a term, as in: Influenza,flu")
            yield pair[0], pair[1]
    except csv.Error as error:
        raise UserError(f"{path}:{rows.line_num}: not a valid row of a CSV file ({error}): {_HELP}") from None


def _columns(path: Path, row: list[str]) -> tuple[tuple[int, int], bool]:
    """Return the columns of concept and term by the first row, and True if this row is a header."""
    names = [cell.strip().casefold() for cell in row]
    if "concept" in names and "term" in names:
        return (names.index("concept"), names.index("term")), True
    if len(row) != 2 or "concept" in names or "term" in names:
        raise UserError(f"{path}:1: no columns concept and term in the header: {_HELP}")
    return (0, 1), False
