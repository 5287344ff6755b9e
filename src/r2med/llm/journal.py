"""Every answer that came, kept by its question in SQLite the moment it arrives; several processes share the file.

A row is found by the hash of all an answer depends on, and holds the answer as the model gave it (cleaning may change
later) and a checksum: a row that rotted counts as absent and is asked for again. The questions are not kept.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from r2med.llm.contracts import FROM_THE_MODEL, ChatRequest, Failure, RawAnswer
from r2med.llm.leases import LEASES, Leases
from r2med.store import digest
from r2med.store.database import Database, some

_ANSWERS = """
CREATE TABLE IF NOT EXISTS answers
(key BLOB PRIMARY KEY, model TEXT NOT NULL, answer BLOB NOT NULL, checksum BLOB NOT NULL)
"""
_BURST = 0.5
"""Seconds. Answers that come faster than this are not each flushed to the disk, only handed to the system: a flush
takes milliseconds, and all other answers wait for it.
"""


def key_of(identity: dict[str, Any], request: ChatRequest) -> bytes:
    """Return what an answer is kept under: model, messages or prompt, sampling and sample number."""
    asked = dataclasses.asdict(request)
    if request.prompt is None:
        del asked["prompt"]  # answers from before there were prompts are kept under keys without one
    return bytes.fromhex(digest([identity, asked]))


class Journal:
    """An open journal; use it in a `with`. Any thread may use it."""

    def __init__(self, path: Path) -> None:
        self._db = Database(path, "journal of LLM answers", [_ANSWERS, LEASES])
        self._lock = threading.Lock()
        self._flushed, self._unflushed, self._mode = -math.inf, False, "FULL"
        self.leases = Leases(self._db, self._lock)

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *error: Any) -> None:
        with self._lock:
            if self._unflushed:
                with self._db.one_line():
                    self._db.sql.execute("PRAGMA wal_checkpoint(PASSIVE)")  # flushes what a burst left behind
            self._db.__exit__(*error)

    def get(self, keys: Sequence[bytes]) -> dict[bytes, RawAnswer | Failure]:
        """Return the answers that are there and sound."""
        found = {}
        with self._lock, self._db.one_line():
            for marks, part in some(keys):
                rows = self._db.sql.execute(
                    f"SELECT key, model, answer, checksum FROM answers WHERE key IN ({marks})", part
                )
                for key, model, answer, checksum in rows:
                    if _is_sound(key, model, answer, checksum):
                        found[key] = _decoded(answer)
        return found

    def put(self, key: bytes, model: str, answer: RawAnswer | Failure) -> None:
        """Keep one answer: when this returns, no kill can take it.

        In a burst the disk is not waited for each time, so that a power failure, and only it, may take the last few.
        """
        if isinstance(answer, Failure) and answer.kind not in FROM_THE_MODEL:
            raise ValueError(f"a failure of kind {answer.kind} is to be tried again, not kept")
        content = _encoded(answer)
        with self._lock, self._db.one_line():
            burst = time.monotonic() - self._flushed < _BURST
            if self._mode != (mode := "NORMAL" if burst else "FULL"):
                self._db.sql.execute(f"PRAGMA synchronous={mode}")
                self._mode = mode
            self._db.sql.execute(
                "INSERT OR REPLACE INTO answers VALUES (?, ?, ?, ?)",
                (key, model, content, _checksum(key, model, content)),
            )
            self._unflushed = burst
            if not burst:
                self._flushed = time.monotonic()


def _encoded(answer: RawAnswer | Failure) -> bytes:
    kind = "failure" if isinstance(answer, Failure) else "answer"
    return json.dumps({kind: vars(answer)}).encode("ascii")  # ASCII: lone surrogates have no UTF-8


def _decoded(content: bytes) -> RawAnswer | Failure:
    row = json.loads(content)
    return Failure(**row["failure"]) if "failure" in row else RawAnswer(**row["answer"])


def _checksum(key: bytes, model: str, content: bytes) -> bytes:
    return hashlib.sha256(key + model.encode("utf-8", "replace") + b"\0" + content).digest()[:16]


def _is_sound(key: object, model: object, content: object, checksum: object) -> bool:
    # SQLite's columns hold values of any type: rot may have changed that too.
    if not (isinstance(key, bytes) and isinstance(model, str) and isinstance(content, bytes)):
        return False
    return _checksum(key, model, content) == checksum
