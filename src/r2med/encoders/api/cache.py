"""Every vector that was paid for, kept by content in SQLite; several processes may read and write it at once.

A row is found by the hash of all it depends on, and holds the vector, its tokens and a checksum over both and the
key: a row that rotted or was swapped counts as absent and is fetched again. The texts themselves are not kept.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from r2med.encoders.contracts import Vectors
from r2med.store.database import Database, some

_TABLE = """
CREATE TABLE IF NOT EXISTS vectors
(key BLOB PRIMARY KEY, vector BLOB NOT NULL, tokens INTEGER NOT NULL, checksum BLOB NOT NULL)
"""


class Cache:
    """An open cache file; use it in a `with`. One thread at a time."""

    def __init__(self, path: Path) -> None:
        self._db = Database(path, "cache of API answers", [_TABLE])

    def __enter__(self) -> Cache:
        return self

    def __exit__(self, *error: Any) -> None:
        self._db.__exit__(*error)

    def get(self, keys: Sequence[bytes]) -> dict[bytes, tuple[Vectors, int]]:
        """Return vector and tokens of the keys that are there and sound."""
        found = {}
        with self._db.one_line():
            for marks, part in some(keys):
                rows = self._db.sql.execute(
                    f"SELECT key, vector, tokens, checksum FROM vectors WHERE key IN ({marks})", part
                )
                for key, vector, tokens, checksum in rows:
                    if _is_sound(key, vector, tokens, checksum):
                        found[key] = (np.frombuffer(vector, dtype="<f4").astype(np.float32), tokens)
        return found

    def put(self, rows: Mapping[bytes, tuple[Vectors, int]]) -> None:
        """Keep the vectors of one request, all or none; they are on the disk when this returns."""
        with self._db.one_line(), self._db.transaction():
            self._db.sql.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?, ?, ?)", _encoded(rows))


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
