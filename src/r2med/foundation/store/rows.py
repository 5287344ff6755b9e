"""A SQLite table of rows, key → bytes. All caches of paid or computed answers use it.

Each cache decides how a value becomes bytes. A second table has the names of the datasets that each row was made or
read for, so that all rows of a dataset can be removed.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from r2med.foundation.store.database import Database, chunks
from r2med.foundation.store.reads import current_reads

_ROWS_AT_ONCE = 1000
"""Number of rows in memory while all are read. The answer of an LLM may have 100 kB."""


class Rows:
    """An open table of rows, used in a `with` block. Any thread may use it, and processes may share the file."""

    def __init__(
        self,
        path: Path,
        noun: str,
        table: str = "rows",
        other_tables: Sequence[str] = (),
        *,
        private: bool = True,
        datasets: Iterable[str] = (),
    ) -> None:
        """Open or create the file. Rows that are put or found get the labels of these datasets.

        `noun` is the name of the content in messages. `other_tables` are statements that create tables of temporary
        data, such as leases, in the same file. `database` gives access to them. Only the owner can read a private
        file.
        """
        self._table = table
        self._datasets = [name.encode() for name in datasets]
        self._reads = current_reads()
        create = (
            f"CREATE TABLE IF NOT EXISTS {table} (key BLOB PRIMARY KEY, value BLOB NOT NULL)",
            f"CREATE TABLE IF NOT EXISTS {table}_labels (key BLOB NOT NULL, dataset BLOB NOT NULL, "
            "PRIMARY KEY (key, dataset))",
        )
        self.database = Database(path, noun, [*create, *other_tables], private=private)

    def __enter__(self) -> Rows:
        return self

    def __exit__(self, *error: Any) -> None:
        self.database.close()

    def get(self, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        """Return the values of the keys that have a row."""

        def select(sql: sqlite3.Connection) -> dict[bytes, bytes]:
            values: dict[bytes, bytes] = {}
            for marks, part in chunks(keys):
                values.update(sql.execute(f"SELECT key, value FROM {self._table} WHERE key IN ({marks})", part))
            return values

        values = self.database.read(select)
        for reads in self._reads:
            reads.add_rows(self.database.path, keys, values)
        if unlabelled := self._unlabelled(values):
            self.database.write(lambda sql: self._label(sql, unlabelled), durable=False)
        return values

    def keys_about(self, dataset: str) -> list[bytes]:
        """Return the keys of the rows that were made for a dataset or read for it."""
        statement = (
            f"SELECT key FROM {self._table} WHERE key IN (SELECT key FROM {self._table}_labels WHERE dataset = ?)"
        )
        return self.database.read(lambda sql: [key for (key,) in sql.execute(statement, (dataset.encode(),))])

    def datasets(self) -> list[str]:
        """Return the names of the datasets that rows were made or read for."""
        statement = f"SELECT DISTINCT dataset FROM {self._table}_labels WHERE key IN (SELECT key FROM {self._table})"
        return self.database.read(lambda sql: [name.decode() for (name,) in sql.execute(statement)])

    def items(self) -> Iterator[tuple[bytes, bytes]]:
        """Yield every row. Only some of them are in memory at a time."""
        statement = f"SELECT rowid, key, value FROM {self._table} WHERE rowid > ? ORDER BY rowid LIMIT ?"
        last = 0
        while rows := self._select(statement, last, _ROWS_AT_ONCE):
            yield from ((key, value) for _, key, value in rows)
            last = rows[-1][0]

    def _select(self, statement: str, *values: object) -> list[Any]:
        return self.database.read(lambda sql: sql.execute(statement, values).fetchall())

    def remove(self, keys: Sequence[bytes]) -> None:
        """Remove rows, all or none. No byte of them stays in the file."""

        def delete(sql: sqlite3.Connection) -> None:
            for table in (self._table, f"{self._table}_labels"):
                sql.executemany(f"DELETE FROM {table} WHERE key = ?", [(key,) for key in keys])

        self.database.write(delete)
        self.database.scrub()

    def put(self, rows: Mapping[bytes, bytes], durable: bool = True) -> None:
        """Save rows, all or none. They are on the disk when this returns.

        If not `durable`, they are only in the memory of the system: they survive a kill, but not a power failure.
        """
        self.database.write(lambda sql: self._insert(sql, rows.items()), durable)

    def add(self, rows: Mapping[bytes, bytes]) -> int:
        """Save the rows whose keys are not here yet, all or none, and return their number. All get the labels."""

        def insert(sql: sqlite3.Connection) -> int:
            added = sql.executemany(f"INSERT OR IGNORE INTO {self._table} VALUES (?, ?)", rows.items()).rowcount
            self._label(sql, [(key, name) for key in rows for name in self._datasets])
            return added

        return self.database.write(insert)

    def put_from(self, make: Callable[[], Mapping[bytes, bytes]]) -> None:
        """Save the rows that `make` returns, all or none. No other process writes after `make` has begun to read.

        `make` is called again if somebody replaced the file meanwhile.
        """
        self.database.write(lambda sql: self._insert(sql, make().items()))

    def _insert(self, sql: sqlite3.Connection, rows: Iterable[tuple[bytes, bytes]]) -> None:
        rows = list(rows)
        sql.executemany(f"INSERT OR REPLACE INTO {self._table} VALUES (?, ?)", rows)
        self._label(sql, [(key, name) for key, _ in rows for name in self._datasets])

    def _unlabelled(self, keys: Iterable[bytes]) -> list[tuple[bytes, bytes]]:
        """Return the (key, dataset name) pairs of the current datasets that are not recorded yet."""
        wanted = {(key, name) for key in keys for name in self._datasets}

        def select(sql: sqlite3.Connection) -> set[tuple[bytes, bytes]]:
            noted: set[tuple[bytes, bytes]] = set()
            for marks, part in chunks(list({key for key, _ in wanted})):
                noted |= {*sql.execute(f"SELECT key, dataset FROM {self._table}_labels WHERE key IN ({marks})", part)}
            return noted

        return sorted(wanted - self.database.read(select)) if wanted else []

    def _label(self, sql: sqlite3.Connection, pairs: Iterable[tuple[bytes, bytes]]) -> None:
        sql.executemany(f"INSERT OR IGNORE INTO {self._table}_labels VALUES (?, ?)", pairs)
