"""Read the rows of a damaged SQLite file one by one, as far as SQLite itself can read them."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_MAX_UNREADABLE = 50_000
"""Number of consecutive unreadable row numbers after which the end of the table is assumed."""


def readable_rows(path: Path, table: str) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of a table that SQLite can read. The caller checks the checksum of each row.

    Rows on a damaged page are skipped. A file whose first page is damaged has no readable rows.
    """
    # Read by row number, so that the index of the keys is not needed.
    statement = f"SELECT rowid, * FROM {table} WHERE rowid > ? ORDER BY rowid"
    with contextlib.closing(_opened(path)) as sql:
        sql.execute("PRAGMA writable_schema=ON")  # otherwise SQLite refuses a truncated file completely
        last = unreadable = 0
        while unreadable < _MAX_UNREADABLE:
            try:
                for number, *row in sql.execute(statement, (last,)):
                    last, unreadable = number, 0
                    yield tuple(row)
                return
            except sqlite3.DatabaseError as error:
                if getattr(error, "sqlite_errorcode", -1) & 0xFF != sqlite3.SQLITE_CORRUPT:
                    return  # not a database at all, or without this table
                last, unreadable = last + 1, unreadable + 1


def _opened(path: Path) -> sqlite3.Connection:
    """Open a file without changing a byte of it. A log with newer rows is read and stays unchanged."""
    mode = "mode=ro" if path.with_name(f"{path.name}-wal").exists() else "immutable=1"
    return sqlite3.connect(f"{path.absolute().as_uri()}?{mode}", uri=True)
