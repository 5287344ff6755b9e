"""Open the files of tables: CSV and similar formats, JSON, Parquet, Excel. Each row is one record."""

from __future__ import annotations

import codecs
import itertools
import json
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from r2med.data.problems import Problems
from r2med.data.source_rows import OpenRow, read_rows
from r2med.data.tables.delimited_files import read_delimited
from r2med.data.tables.table import SAMPLE_ROWS, Cell, Row, SourceTable, TableOptions, check_width, text_of
from r2med.data.tables.workbooks import WORKBOOKS, read_workbook
from r2med.foundation.core.errors import UserError, nearest_path
from r2med.foundation.text.unicode import is_unicode

__all__ = ["READERS", "Cell", "Row", "SourceTable", "open_tables"]

_PAGE = re.compile(rb"\s*(<!doctype html|<html|<head|<body|<table|<div|<meta|<style)", re.IGNORECASE)
PARQUET_ROWS = 64
"""Rows of a Parquet file that are unpacked at a time. Repeated long texts are small only while packed."""


def open_tables(path: Path, reading: TableOptions = TableOptions()) -> list[SourceTable]:  # noqa: B008 - it is frozen
    """Return the tables of a file. Raises UserError if it cannot be read."""
    if not path.is_file():
        missing = f"the file does not exist{nearest_path(str(path))}"
        raise UserError(f"{path}: {'a folder, not a table' if path.is_dir() else missing}")
    reader = READERS.get(path.suffix.lower())
    if reader is None:
        raise UserError(f"{path}: tables are {', '.join(READERS)}: save it as one of them")
    _check_markup(path)
    tables = [table for table in reader(path, reading) if table.columns and table.sample]
    if not tables:
        raise UserError(f"{path}: the file has no rows")
    return tables


def _check_markup(path: Path) -> None:
    """Raise UserError for a web page or RTF with the name of a table, as some hospital systems export them."""
    suffix = path.suffix.lower()
    if suffix not in (".csv", ".tsv", ".txt", *WORKBOOKS):
        return
    with path.open("rb") as file:
        head = file.read(4096).removeprefix(codecs.BOM_UTF8)
    if _PAGE.match(head):
        raise UserError(f"{path}: it holds HTML, not {suffix}: open it in a spreadsheet and save it as .csv")
    if head.startswith(b"{\\rtf"):
        raise UserError(f"{path}: it holds RTF, not {suffix}: open it in a text program and save its table as .csv")


def _json_lines(path: Path, reading: TableOptions) -> list[SourceTable]:
    def read() -> Iterator[Row]:
        problems = Problems()
        for line, row in read_rows(path, OpenRow, problems):
            problems.raise_first()
            yield line, {key: text_of(value) for key, value in (row.model_extra or {}).items()}
        problems.raise_first()

    return [_of_objects(path, read)]


def _json_array(path: Path, reading: TableOptions) -> list[SourceTable]:
    try:
        content = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path}: not JSON ({error}); a file with one object per line must be named .jsonl") from None
    if isinstance(content, dict):  # {"data": [...]}, as some tools wrap it
        lists = {name: value for name, value in content.items() if isinstance(value, list) and _are_rows(value)}
        if len(lists) > 1:
            names = ", ".join(map(repr, list(lists)[:5]))
            raise UserError(f"{path}: the file holds several lists of rows ({names}): save each as a file of its own")
        content = next(iter(lists.values()), None)
    if not isinstance(content, list) or not _are_rows(content):
        raise UserError(f"{path}: the file must hold a list of objects, one per row, with a field for each column")

    def read() -> Iterator[Row]:
        for number, row in enumerate(content, 1):
            yield number, {str(key): text_of(value) for key, value in row.items()}

    return [_of_objects(path, read)]


def _are_rows(content: list[Any]) -> bool:
    return all(isinstance(row, dict) for row in content)


def _of_objects(path: Path, read: Callable[[], Iterator[Row]]) -> SourceTable:
    keys = (row.keys() for _, row in itertools.islice(SourceTable(path, (), read), SAMPLE_ROWS))
    columns = tuple(dict.fromkeys(itertools.chain.from_iterable(keys)))
    check_width(path, len(columns))
    if bad := next((column for column in columns if not is_unicode(column)), ""):
        raise UserError(f"{path}: the name {bad!r} holds half of a character (a lone surrogate): remove it")
    return SourceTable(path, columns, read)


def _parquet(path: Path, reading: TableOptions) -> list[SourceTable]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    def read() -> Iterator[Row]:
        with pq.ParquetFile(path) as file:
            rows = (row for batch in file.iter_batches(batch_size=PARQUET_ROWS) for row in batch.to_pylist())
            for number, row in enumerate(rows, 1):
                yield number, {key: text_of(value) for key, value in row.items()}

    try:
        columns = tuple(pq.read_schema(path).names)
    except (pa.ArrowInvalid, OSError) as error:
        raise UserError(f"{path}: not a readable Parquet file ({error})") from None
    check_width(path, len(columns))
    return [SourceTable(path, columns, read)]


READERS: Mapping[str, Callable[[Path, TableOptions], list[SourceTable]]] = {
    ".csv": read_delimited,
    ".tsv": read_delimited,
    ".txt": read_delimited,
    ".jsonl": _json_lines,
    ".ndjson": _json_lines,
    ".json": _json_array,
    ".parquet": _parquet,
    **dict.fromkeys(WORKBOOKS, read_workbook),
}
