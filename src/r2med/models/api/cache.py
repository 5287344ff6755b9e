"""Every vector that was paid for, kept by content in SQLite; several processes may read and write it at once.

A row is found by the hash of all it depends on, and holds the vector, its tokens and a checksum over both and the
key: a row that rotted or was swapped counts as absent and is fetched again. The texts themselves are not kept.
"""

from __future__ import annotations

import contextlib
import hashlib
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType

import numpy as np

from r2med.errors import UserError
from r2med.models.contracts import Vectors
from r2med.store.files import exclusive

_TABLE = """
CREATE TABLE IF NOT EXISTS vectors
(key BLOB PRIMARY KEY, vector BLOB NOT NULL, tokens INTEGER NOT NULL, checksum BLOB NOT NULL)
"""
_AT_ONCE = 500  # SQLite builds of old allow 999 variables in one statement


class Cache:
    """An open cache file; use it in a `with`. One thread at a time."""

    def __init__(self, path: Path) -> None:
        self._path = path
        with self._one_line(), self._alone():
            # Minutes, not the default 5 s: another process may be writing to a slow disk.
            self._db = sqlite3.connect(path, timeout=120, isolation_level=None, check_same_thread=False)
            try:
                self._db.execute("PRAGMA journal_mode=WAL")
                # Vectors cost money: unlike NORMAL, FULL keeps the last of them even when the power fails.
                self._db.execute("PRAGMA synchronous=FULL")
                self._db.execute(_TABLE)
            except BaseException:
                self._db.close()
                raise

    def __enter__(self) -> Cache:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._one_line(), self._alone():
            self._db.close()

    def get(self, keys: Sequence[bytes]) -> dict[bytes, tuple[Vectors, int]]:
        """Return vector and tokens of the keys that are there and sound."""
        found = {}
        with self._one_line():
            for start in range(0, len(keys), _AT_ONCE):
                some = keys[start : start + _AT_ONCE]
                marks = ",".join("?" * len(some))
                rows = self._db.execute(
                    f"SELECT key, vector, tokens, checksum FROM vectors WHERE key IN ({marks})", some
                )
                for key, vector, tokens, checksum in rows:
                    if _is_sound(key, vector, tokens, checksum):
                        found[key] = (np.frombuffer(vector, dtype="<f4").astype(np.float32), tokens)
        return found

    def put(self, rows: Mapping[bytes, tuple[Vectors, int]]) -> None:
        """Keep the vectors of one request, all or none; they are on the disk when this returns."""
        with self._one_line(), self._transaction():
            self._db.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?, ?, ?)", _encoded(rows))

    def _alone(self) -> contextlib.AbstractContextManager[None]:
        # SQLite waits for others, but not when the first to open turns WAL on or the last to close clears it up.
        return exclusive(self._path.with_suffix(".lock"))

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[None]:
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._db.execute("COMMIT")
        except BaseException:
            with contextlib.suppress(sqlite3.Error):  # a full disk has already rolled it back
                self._db.execute("ROLLBACK")
            raise

    @contextlib.contextmanager
    def _one_line(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            # Never removed by itself: what is in it was paid for, and its owner may still mend it.
            raise UserError(
                f"{self._path}: this cache of API answers cannot be used ({error}): mend it, or move it away"
            ) from None


def _encoded(rows: Mapping[bytes, tuple[Vectors, int]]) -> Iterable[tuple[bytes, bytes, int, bytes]]:
    for key, (vector, tokens) in rows.items():
        content = vector.astype("<f4").tobytes()
        yield key, content, tokens, _checksum(key, content, tokens)


def _checksum(key: bytes, vector: bytes, tokens: int) -> bytes:
    return hashlib.sha256(key + vector + b"%d" % tokens).digest()[:16]


def _is_sound(key: object, vector: object, tokens: object, checksum: object) -> bool:
    # SQLite's columns hold values of any type: rot may have changed that too.
    if not (isinstance(key, bytes) and isinstance(vector, bytes) and isinstance(tokens, int)):
        return False
    return len(vector) > 0 and len(vector) % 4 == 0 and _checksum(key, vector, tokens) == checksum
