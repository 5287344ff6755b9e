"""Tables as people have them: CSV and its kin in any separator and encoding, JSON, Parquet, Excel; one row a record."""

from __future__ import annotations

import codecs
import csv
import itertools
import json
import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from r2med.data.problems import Problems
from r2med.data.source_rows import read_jsonl
from r2med.errors import MissingExtraError, UserError

SAMPLE = 500
"""Rows that columns are judged by."""

SEPARATORS = ",;\t|"
LONGEST_HEAD = 60
"""Letters that the name of a column may have; a longer first cell is a text, and the table has no head."""

Cell = str | list[str]
Row = tuple[int, Mapping[str, Cell]]
"""The line or number of a row, for messages, and its cells by column."""


@dataclass(frozen=True)
class Table:
    """One table of a file, or of a sheet of a workbook. It is read anew each time it is iterated over."""

    path: Path
    columns: tuple[str, ...]
    read: Callable[[], Iterator[Row]]
    sheet: str = ""
    notices: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.path.name}, sheet {self.sheet}" if self.sheet else self.path.name

    def __iter__(self) -> Iterator[Row]:
        return self.read()

    @cached_property
    def sample(self) -> tuple[Mapping[str, Cell], ...]:
        """The first rows."""
        return tuple(row for _, row in itertools.islice(self, SAMPLE))


def open_tables(path: Path, header: bool | None = None) -> list[Table]:
    """Return the tables of a file. Raises UserError if it cannot be read; `header` says whether names stand on top."""
    if not path.is_file():
        raise UserError(f"{path}: {'a folder, not a table' if path.is_dir() else 'there is no such file'}")
    reader = READERS.get(path.suffix.lower())
    if reader is None:
        raise UserError(f"{path}: tables are {', '.join(READERS)}: save it as one of them")
    tables = [table for table in reader(path, header) if table.columns and table.sample]
    if not tables:
        raise UserError(f"{path}: there are no rows in it")
    return tables


def text_of(value: Any) -> Cell:
    """Return what a cell says: numbers as one types them, lists of values as lists of strings."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, list | tuple):
        return [cell if isinstance(cell, str) else " ".join(cell) for cell in map(text_of, value)]
    if isinstance(value, dict):
        return json.dumps(value, ensure_ascii=False)
    if hasattr(value, "isoformat"):  # a date
        return str(value.isoformat())
    return str(value)


def _delimited(path: Path, header: bool | None) -> list[Table]:
    encoding, notices = _encoding(path)
    with path.open(encoding=encoding, newline="") as file:
        start = list(itertools.islice(file, 100))
    separator = _separator(start)
    first = next(_records(path, encoding, separator), (0, []))[1]
    has_header = _looks_like_header(first, separator) if header is None else header
    columns = _named(first) if has_header else tuple(f"column {n}" for n in range(1, len(first) + 1))

    def read() -> Iterator[Row]:
        for line, cells in itertools.islice(_records(path, encoding, separator), int(has_header), None):
            if len(cells) > len(columns) and any(map(str.strip, cells[len(columns) :])):
                why = f"{len(cells)} cells where the first row has {len(columns)}"
                raise UserError(f"{path}:{line}: {why}: put texts that hold {separator!r} or line ends in quotes")
            yield line, dict(zip(columns, [*cells, *[""] * (len(columns) - len(cells))], strict=False))

    return [Table(path, columns, read, notices=notices)]


def _encoding(path: Path) -> tuple[str, tuple[str, ...]]:
    """Return how a text is encoded: by its mark, else UTF-8 if it is that, else as Windows writes Western languages."""
    with path.open("rb") as file:
        head = file.read(4096)
        for mark, encoding in (
            (codecs.BOM_UTF8, "utf-8-sig"),
            (codecs.BOM_UTF16_LE, "utf-16"),
            (codecs.BOM_UTF16_BE, "utf-16"),
        ):
            if head.startswith(mark):
                return encoding, ()
        if head[1:2] == b"\0":
            return "utf-16-le", ()
        if head[:1] == b"\0":
            return "utf-16-be", ()
        for encoding, notice in (("utf-8", ""), ("cp1252", f"{path.name} is not UTF-8: it is read as Windows-1252")):
            file.seek(0)
            decoder = codecs.getincrementaldecoder(encoding)()
            try:
                for block in iter(lambda: file.read(1 << 20), b""):
                    decoder.decode(block)
                decoder.decode(b"", final=True)
            except UnicodeDecodeError:
                continue
            return encoding, (notice,) if notice else ()
    raise UserError(f"{path}: neither UTF-8 nor Windows-1252: save it as UTF-8")


def _separator(lines: Sequence[str]) -> str:
    """Return what separates the cells; empty where each line is one cell."""
    best = ("", (0.0, 0))
    for separator in SEPARATORS:
        try:
            rows = [row for row in csv.reader(lines, delimiter=separator) if row]
        except csv.Error:
            continue
        width = len(rows[0]) if rows else 0
        alike = sum(len(row) == width for row in rows) / max(len(rows), 1)
        named = width > 1 and max(map(len, rows[0])) <= LONGEST_HEAD // 2 and rows[0][-1][-1:] not in (".", "?")
        if width > 1 and (alike > 0.9 or named):
            best = max(best, (separator, (alike, width)), key=lambda pair: pair[1])
    return best[0]


def _records(path: Path, encoding: str, separator: str) -> Iterator[tuple[int, list[str]]]:
    """Yield (line, cells) of every record that is not blank."""
    csv.field_size_limit(sys.maxsize)
    with path.open(encoding=encoding, newline="") as file:
        if not separator:
            for line, text in enumerate(file, 1):
                if text.strip():
                    yield line, [text.strip().strip('"')]
            return
        reader = csv.reader(file, delimiter=separator, strict=True)
        try:
            for cells in reader:
                if any(map(str.strip, cells)):
                    yield reader.line_num, cells
        except csv.Error as error:
            why = "a quote is not closed or not doubled" if "expected" in str(error) else str(error)
            raise UserError(f"{path}:{reader.line_num}: {why}: save the table again as CSV") from None


def _looks_like_header(cells: Sequence[str], separator: str) -> bool:
    if not separator:  # a list of texts, one a line, mostly begins with the first of them
        return len(cells) == 1 and len(cells[0].split()) == 1 and len(cells[0]) <= LONGEST_HEAD // 2
    filled = [cell.strip() for cell in cells if cell.strip()]
    named = all(len(cell) <= LONGEST_HEAD and not cell.replace(".", "").isdigit() for cell in filled)
    return named and len(set(filled)) == len(filled)


def _named(cells: Sequence[Any]) -> tuple[str, ...]:
    """Return distinct names of columns; those without one are numbered."""
    names: list[str] = []
    for number, cell in enumerate(cells, 1):
        name = " ".join(str(text_of(cell)).split()) or f"column {number}"
        names.append(f"{name} {number}" if name in names else name)
    return tuple(names)


def _json_lines(path: Path, header: bool | None) -> list[Table]:
    def read() -> Iterator[Row]:
        problems = Problems()
        for line, row in read_jsonl(path, {}, problems):
            problems.raise_first(str(path))
            yield line, {str(key): text_of(value) for key, value in row.items()}
        problems.raise_first(str(path))

    return [_of_objects(path, read)]


def _json_array(path: Path, header: bool | None) -> list[Table]:
    try:
        content = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path}: not JSON ({error}); one object a line is .jsonl") from None
    if isinstance(content, dict):  # {"data": [...]}, as some tools wrap it
        content = next((value for value in content.values() if isinstance(value, list)), None)
    if not isinstance(content, list) or not all(isinstance(row, dict) for row in content):
        raise UserError(f"{path}: it is to hold a list of objects, one a row")
    rows = [{str(key): text_of(value) for key, value in row.items()} for row in content]
    return [_of_objects(path, lambda: iter(list(enumerate(rows, 1))))]


def _of_objects(path: Path, read: Callable[[], Iterator[Row]]) -> Table:
    keys = (row.keys() for _, row in itertools.islice(read(), SAMPLE))
    return Table(path, tuple(dict.fromkeys(itertools.chain.from_iterable(keys))), read)


def _parquet(path: Path, header: bool | None) -> list[Table]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    def read() -> Iterator[Row]:
        with pq.ParquetFile(path) as file:
            rows = (row for batch in file.iter_batches(batch_size=1024) for row in batch.to_pylist())
            for number, row in enumerate(rows, 1):
                yield number, {key: text_of(value) for key, value in row.items()}

    try:
        return [Table(path, tuple(pq.read_schema(path).names), read)]
    except (pa.ArrowInvalid, OSError) as error:
        raise UserError(f"{path}: not a readable Parquet file ({error})") from None


def _workbook(path: Path, header: bool | None) -> list[Table]:
    try:
        from openpyxl import load_workbook
    except ImportError:
        raise MissingExtraError(f"{path.name}: reading Excel", "excel") from None

    def rows(sheet: str) -> Iterator[tuple[int, tuple[Any, ...]]]:
        book = load_workbook(path, read_only=True, data_only=True)
        try:
            for line, cells in enumerate(book[sheet].iter_rows(values_only=True), 1):
                if any(cell not in (None, "") for cell in cells):
                    yield line, cells
        finally:
            book.close()

    def table(sheet: str) -> Table:
        first = list(next(rows(sheet), (0, ()))[1])
        while first and first[-1] in (None, ""):
            first.pop()
        columns = tuple(f"column {n}" for n in range(1, len(first) + 1)) if header is False else _named(first)

        def read() -> Iterator[Row]:
            for line, cells in itertools.islice(rows(sheet), int(header is not False), None):
                yield line, dict(zip(columns, map(text_of, cells), strict=False))

        return Table(path, columns, read, sheet)

    try:
        book = load_workbook(path, read_only=True)
        names = [sheet.title for sheet in book.worksheets]
        book.close()
        return [table(name) for name in names]
    except Exception as error:  # whatever the library raises for a broken archive, it means one thing to a user
        raise UserError(f"{path}: not a readable workbook ({error}): save it again as .xlsx or CSV") from None


READERS: Mapping[str, Callable[[Path, bool | None], list[Table]]] = {
    ".csv": _delimited,
    ".tsv": _delimited,
    ".txt": _delimited,
    ".jsonl": _json_lines,
    ".ndjson": _json_lines,
    ".json": _json_array,
    ".parquet": _parquet,
    ".xlsx": _workbook,
    ".xlsm": _workbook,
}
