"""Every score that was computed, kept by content in SQLite; several processes may read and write it at once.

A row is found by the hash of all it depends on, and holds the score, what it took, and a checksum over both and the
key: a row that rotted counts as absent and is scored again. The texts themselves are not kept.
"""

from __future__ import annotations

import hashlib
import math
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from r2med.crossencoders.contracts import Scored
from r2med.store.database import Database, some

_TABLE = "CREATE TABLE IF NOT EXISTS scores (key BLOB PRIMARY KEY, value BLOB NOT NULL, checksum BLOB NOT NULL)"
_FORM = struct.Struct("<dq?d")


def pair_key(model: str, query: bytes, document: bytes) -> bytes:
    """Return the key of a pair's score: by the digest of the model's description and the hashes of the two texts."""
    return hashlib.sha256(model.encode() + query + document).digest()


def text_hash(text: str) -> bytes:
    """Return the hash of a text; lone surrogates, which have no UTF-8, count as they are."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


class ScoreCache:
    """An open cache file; use it in a `with`. One thread at a time."""

    def __init__(self, path: Path) -> None:
        self._db = Database(path, "cache of scores", [_TABLE])

    def __enter__(self) -> ScoreCache:
        return self

    def __exit__(self, *error: Any) -> None:
        self._db.__exit__(*error)

    def get(self, keys: Sequence[bytes]) -> dict[bytes, Scored]:
        """Return the scores of the keys that are there and sound."""
        found = {}
        with self._db.one_line():
            for marks, part in some(keys):
                rows = self._db.sql.execute(f"SELECT key, value, checksum FROM scores WHERE key IN ({marks})", part)
                for key, value, checksum in rows:
                    if (scored := _sound(key, value, checksum)) is not None:
                        found[key] = scored
        return found

    def put(self, rows: Mapping[bytes, Scored]) -> None:
        """Keep some scores, all or none; they are on the disk when this returns."""
        values = [(key, _FORM.pack(*scored)) for key, scored in rows.items()]
        with self._db.one_line(), self._db.transaction():
            self._db.sql.executemany(
                "INSERT OR REPLACE INTO scores VALUES (?, ?, ?)",
                [(key, value, _checksum(key, value)) for key, value in values],
            )


def _checksum(key: bytes, value: bytes) -> bytes:
    return hashlib.sha256(key + value).digest()[:16]


def _sound(key: object, value: object, checksum: object) -> Scored | None:
    # SQLite's columns hold values of any type: rot may have changed that too.
    if not (isinstance(key, bytes) and isinstance(value, bytes)) or _checksum(key, value) != checksum:
        return None
    scored = Scored(*_FORM.unpack(value)) if len(value) == _FORM.size else None
    return scored if scored is not None and math.isfinite(scored.score) else None
