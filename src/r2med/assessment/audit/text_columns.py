"""Read the texts of any file of rows: the formats of training libraries, JSON Lines, CSV, Parquet, workbooks."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from r2med.assessment.audit.containment import OtherText
from r2med.data.tables.table import Cell
from r2med.data.tables.table_files import open_tables


def texts_of(path: Path) -> Iterator[OtherText]:
    """Yield every text of a file with its row and column. Cells without words, such as ids, are left out.

    Raises UserError if the file cannot be read.
    """
    for table in open_tables(path):
        for line, row in table:
            for column, cell in row.items():
                for text in _texts(cell):
                    yield OtherText(f"{table.at(line)} {column}", text)


def _texts(cell: Cell) -> Iterator[str]:
    if not isinstance(cell, str):
        yield from _strings(list(cell))
    elif cell[:1] in ("{", "[") and (value := _value(cell)) is not None:
        yield from _strings(value)  # messages of a conversation, and other nested values
    elif _has_words(cell):
        yield cell


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _strings(value: Any) -> Iterator[str]:
    match value:
        case str():
            yield from _texts(value)
        case dict():
            yield from filter(_has_words, value)
            yield from _strings(list(value.values()))
        case list() if len(value) > 1 and all(isinstance(each, str) and not _has_words(each) for each in value):
            if any(map(str.isalpha, value)):  # a text that was split into words, not numbers of tokens
                yield " ".join(value)
        case list():
            for each in value:
                yield from _strings(each)


def _has_words(text: str) -> bool:
    """Return True if a text may be more than one word. Some scripts write words without spaces."""
    return len(text.split(maxsplit=2)) > 1 or not text.isascii() or "&" in text
