"""One table of checksummed rows, key → bytes, in SQLite: what all caches of paid or computed answers are kept in.

A row that rotted or was swapped counts as absent and is made again. How a value becomes bytes is for each cache to say.
"""

from __future__ import annotations

import contextlib
import hashlib
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from r2med.store.database import Database, chunks
from r2med.store.salvage import blob_rows


class Rows:
    """An open table of rows; use it in a `with`. Any thread may use it, several processes may share the file."""

    def __init__(self, path: Path, noun: str, table: str = "rows", other_tables: Sequence[str] = ()) -> None:
        """Open or create the file.

        `noun` is what messages call it. `other_tables` are statements that create tables of passing things, such as
        leases, in the same file: `database` gives access to them, and salvaging does not keep their rows.
        """
        self._table = table
        create = (
            f"CREATE TABLE IF NOT EXISTS {table} (key BLOB PRIMARY KEY, value BLOB NOT NULL, checksum BLOB NOT NULL)"
        )
        self.database = Database(path, noun, [create, *other_tables], self._rescue)

    def __enter__(self) -> Rows:
        return self

    def __exit__(self, *error: Any) -> None:
        self.database.close()

    def get(self, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        """Return the values of the keys that are there and sound."""

        def select(sql: sqlite3.Connection) -> dict[bytes, bytes]:
            values = {}
            for marks, part in chunks(keys):
                rows = sql.execute(f"SELECT key, value, checksum FROM {self._table} WHERE key IN ({marks})", part)
                values.update({key: value for key, value, checksum in rows if _is_sound(key, value, checksum)})
            return values

        return self.database.read(select)

    def items(self) -> Iterator[tuple[bytes, bytes]]:
        """Yield every row that is sound."""
        rows = self.database.read(lambda sql: sql.execute(f"SELECT key, value, checksum FROM {self._table}").fetchall())
        return ((key, value) for key, value, checksum in rows if _is_sound(key, value, checksum))

    def remove(self, keys: Sequence[bytes]) -> None:
        """Remove some rows, all or none."""
        statement = f"DELETE FROM {self._table} WHERE key = ?"
        self.database.write(lambda sql: sql.executemany(statement, [(key,) for key in keys]))

    def put(self, rows: Mapping[bytes, bytes], durable: bool = True) -> None:
        """Keep some rows, all or none; they are on the disk when this returns.

        If not `durable`, they are only with the system: a kill cannot take them, a power failure may.
        """
        self.database.write(lambda sql: self._insert(sql, rows.items()), durable)

    def _insert(self, sql: sqlite3.Connection, rows: Iterable[tuple[bytes, bytes]]) -> None:
        statement = f"INSERT OR REPLACE INTO {self._table} VALUES (?, ?, ?)"
        sql.executemany(statement, ((key, value, _checksum(key, value)) for key, value in rows))

    def _rescue(self, sql: sqlite3.Connection, damaged: Path) -> int:
        self._insert(sql, _sound_rows(damaged))
        (count,) = sql.execute(f"SELECT count(*) FROM {self._table}").fetchone()
        return int(count)


def count_rows(path: Path) -> tuple[int, int]:
    """Return how many rows of a file are sound and how many are damaged; raises sqlite3.Error if it cannot be read."""
    counts = [0, 0]
    with contextlib.closing(sqlite3.connect(path, timeout=120)) as sql:
        for (table,) in sql.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
            columns = [column[1] for column in sql.execute(f'PRAGMA table_info("{table}")')]
            if columns == ["key", "value", "checksum"]:
                for row in sql.execute(f'SELECT * FROM "{table}"'):
                    counts[not _is_sound(*row)] += 1
    return counts[0], counts[1]


def _sound_rows(damaged: Path) -> Iterator[tuple[bytes, bytes]]:
    for columns in blob_rows(damaged):
        if len(columns) == 3 and _is_sound(*columns):
            yield columns[0], columns[1]


def _checksum(key: bytes, value: bytes) -> bytes:
    return hashlib.sha256(key + value).digest()[:16]


def _is_sound(key: object, value: object, checksum: object) -> bool:
    # SQLite's columns hold values of any type: rot may have changed that too.
    return isinstance(key, bytes) and isinstance(value, bytes) and _checksum(key, value) == checksum
