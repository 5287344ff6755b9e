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
    for part in [cell] if isinstance(cell, str) else cell:
        if part[:1] in ("{", "[") and (value := _value(part)) is not None:
            yield from _strings(value)  # messages of a conversation, and other nested values
        elif _has_words(part):
            yield part


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        if _has_words(value):
            yield value
    elif isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _strings(each)


def _has_words(text: str) -> bool:
    """Return True if a text may be more than one word. Some scripts write words without spaces."""
    return " " in text.strip() or not text.isascii()
