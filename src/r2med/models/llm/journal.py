"""Journal: every answer is saved as soon as it arrives. Several processes share the file.

The key of a row is a digest of everything that an answer depends on. A row contains the raw answer, because the
cleaning may change later. The questions are not saved. Leases record which process is asking which question, so that
two processes never pay for the same answer.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import math
import os
import sqlite3
import threading
import time
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from r2med.foundation.core.keys import changed_values
from r2med.foundation.store import Store, digest
from r2med.foundation.store.database import Database, chunks
from r2med.foundation.store.owners import is_dead, process_name
from r2med.foundation.store.rows import Rows
from r2med.models.llm.chat import SAVED_FAILURES, ChatRequest, Failure, RawAnswer, ToolCall

_BURST_SECONDS = 0.5
"""Seconds. Answers that arrive faster than this are passed to the system but not each flushed to the disk.

A flush takes milliseconds, and all other answers wait for it.
"""
_LEASE_TABLE = (
    "CREATE TABLE IF NOT EXISTS heartbeats (key BLOB PRIMARY KEY, owner TEXT NOT NULL, beat INTEGER NOT NULL)"
)
LEASE_SECONDS = 60.0
"""Seconds without a sign of life after which a lease of another process can be taken."""


_LOGPROB_FIELDS = ("first_choices", "last_tokens")
_OPTIONAL_FIELDS = (*_LOGPROB_FIELDS, "calls", "fits")
"""Fields that most answers and failures do not have."""


def journal_file(store: Store) -> Path:
    """Return the path of the journal in a store."""
    return store.answers / "chat.sqlite"


def request_key(model: dict[str, Any], request: ChatRequest) -> bytes:
    """Return the key of an answer. `model` is the key of the LLM."""
    return bytes.fromhex(digest([model, changed_values(request)]))


@dataclasses.dataclass(frozen=True)
class JournalEntry:
    """An answer in the journal."""

    answer: RawAnswer | Failure
    is_new: bool
    """True if this process saved it."""


def answers_by_model(store: Store) -> dict[str, list[bytes]]:
    """Return the keys of all answers in a store's journal, by the name of the model."""
    models: dict[str, list[bytes]] = {}
    if (path := journal_file(store)).is_file():
        with journal_rows(path) as rows:
            for key, content in rows.items():
                models.setdefault(json.loads(content)["model"], []).append(key)
    return models


TIMED_ANSWERS = 1000
"""Number of answers whose time an estimate uses. A journal may have many thousands."""


def answer_seconds(store: Store, model: str) -> list[float]:
    """Return the seconds that the newest answers of a model in a store's journal took, at most `TIMED_ANSWERS`."""
    if not (path := journal_file(store)).is_file():
        return []
    with journal_rows(path) as rows:
        entries = map(json.loads, rows.newest(TIMED_ANSWERS, f'{{"model": {json.dumps(model)}, '.encode()))
        return [entry["answer"]["seconds"] for entry in entries if entry["model"] == model and "answer" in entry]


def forget_answers(store: Store, keys: Sequence[bytes]) -> None:
    """Remove answers from a store's journal. They are then asked and paid for again."""
    with journal_rows(journal_file(store)) as rows:
        rows.remove(keys)


def journal_rows(path: Path) -> Rows:
    """Open the table of answers."""
    return Rows(path, "journal of LLM answers", "journal", [_LEASE_TABLE])


class Journal:
    """An open journal, used as a context manager. It is thread-safe."""

    def __init__(self, path: Path) -> None:
        self._rows = journal_rows(path)
        self._flushed = -math.inf
        self._seen: dict[tuple[str, int], float] = {}

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *error: Any) -> None:
        self._rows.__exit__(*error)

    def get(self, keys: Sequence[bytes]) -> dict[bytes, JournalEntry]:
        """Return the entries that exist and are valid."""
        return {key: _decoded(content) for key, content in self._rows.get(keys).items()}

    def put(self, key: bytes, model: str, answer: RawAnswer | Failure) -> None:
        """Save one answer. After this returns, a kill cannot lose it.

        In a burst of answers, not every one waits for the disk. Then a power failure, but nothing else, may lose the
        last few.
        """
        if isinstance(answer, Failure) and answer.kind not in SAVED_FAILURES:
            raise ValueError(f"a failure of kind {answer.kind} must be retried, not saved")
        burst = time.monotonic() - self._flushed < _BURST_SECONDS
        self._rows.put({key: _encoded(model, answer)}, durable=not burst)
        if not burst:
            self._flushed = time.monotonic()

    @contextlib.contextmanager
    def leases(self) -> Iterator[Leases]:
        """Yield the leases of one piece of work. They are released however the work ends."""
        leases = Leases(self._rows.database, self._seen)
        try:
            yield leases
        finally:
            leases.give_back()


class Leases:
    """The questions that one piece of work may ask. Other processes wait for these answers.

    While an owner lives, it increments a counter. A waiting process watches with its own clock whether the counter
    changes, so two clocks are never compared. A lease also ends immediately when its owner is known to be dead.
    """

    def __init__(self, database: Database, seen: dict[tuple[str, int], float]) -> None:
        """Prepare to take leases. `seen` has the counters of other owners and the time when each was first seen."""
        self._database = database
        self._owner = process_name()
        self._seen = seen
        self.others: tuple[str, ...] = ()
        """Owners of the questions that could not be taken the last time."""
        self._beat = 0
        self._beaten = _since_boot()
        self._lapsed = False
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._live, name="r2med-leases", daemon=True)

    @property
    def lapsed(self) -> bool:
        """True if this process was stopped so long that others may have taken its leases."""
        return self._lapsed or _since_boot() - self._beaten > LEASE_SECONDS / 2

    def take(self, keys: Sequence[bytes]) -> list[bytes]:
        """Return the keys that this process may ask now. Other processes are asking the rest."""
        mine = self._database.write(lambda sql: self._take(sql, keys))
        if mine and self._thread.ident is None:
            self._beaten = _since_boot()
            self._thread.start()
        return mine

    def give_back(self) -> None:
        """End all leases."""
        self._ended.set()
        self._database.write(lambda sql: sql.execute("DELETE FROM heartbeats WHERE owner = ?", (self._owner,)))

    def _take(self, sql: sqlite3.Connection, keys: Sequence[bytes]) -> list[bytes]:
        taken: set[bytes] = set()
        owners: set[str] = set()
        for marks, part in chunks(keys):
            rows = sql.execute(f"SELECT key, owner, beat FROM heartbeats WHERE key IN ({marks})", part)
            held = {key: owner for key, owner, beat in rows if owner != self._owner and self._lives(owner, beat)}
            taken |= held.keys()
            owners |= set(held.values())
        self.others = tuple(sorted(owners))
        mine = [key for key in keys if key not in taken]
        leases = [(key, self._owner, self._beat) for key in mine]
        sql.executemany("INSERT OR REPLACE INTO heartbeats VALUES (?, ?, ?)", leases)
        return mine

    def _lives(self, owner: str, beat: int) -> bool:
        now = time.monotonic()
        return now - self._seen.setdefault((owner, beat), now) < LEASE_SECONDS and not is_dead(owner)

    def _live(self) -> None:
        while not self._ended.wait(LEASE_SECONDS / 4):
            if _since_boot() - self._beaten > LEASE_SECONDS / 2:
                self._lapsed = True
            with contextlib.suppress(Exception):  # The next round may succeed. At worst, a question is asked twice.
                self._count_up()

    def _count_up(self) -> None:
        beat = self._beat + 1
        statement = "UPDATE heartbeats SET beat = ? WHERE owner = ?"
        self._database.write(lambda sql: sql.execute(statement, (beat, self._owner)))
        self._beat = beat
        self._beaten = _since_boot()


def _since_boot() -> float:
    """Return seconds from a clock that also runs while the machine sleeps, if there is one."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic()


def _encoded(model: str, answer: RawAnswer | Failure) -> bytes:
    kind = "failure" if isinstance(answer, Failure) else "answer"
    content = {
        name: value for name, value in dataclasses.asdict(answer).items() if name not in _OPTIONAL_FIELDS or value
    }
    row = {"model": model, "process": _process(os.getpid()), kind: content}
    return json.dumps(row).encode("ascii")  # ASCII, because UTF-8 cannot encode lone surrogates.


def _decoded(content: bytes) -> JournalEntry:
    row = json.loads(content)
    return JournalEntry(decoded_answer(row), row.get("process") == _process(os.getpid()))


def decoded_answer(row: dict[str, Any]) -> RawAnswer | Failure:
    """Return the answer of a row."""
    return Failure(**row["failure"]) if "failure" in row else _raw_answer(row["answer"])


def _raw_answer(content: dict[str, Any]) -> RawAnswer:
    lists = {name: tuple((token, logprob) for token, logprob in content.get(name, ())) for name in _LOGPROB_FIELDS}
    calls = tuple(ToolCall(**call) for call in content.get("calls", ()))
    return RawAnswer(**{**content, **lists, "calls": calls})


@cache
def _process(process_id: int) -> str:
    # By process id, because a forked child is another process.
    return process_name()
