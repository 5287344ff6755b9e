"""The journal: every answer that came, kept by its question the moment it arrives; several processes share the file.

A row is found by the hash of all an answer depends on, and holds the answer as the model gave it (cleaning may change
later). The questions are not kept. Leases say who is asking which question just now, so that two processes never pay
for the same answer.
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

from r2med.llm.chat import FROM_THE_MODEL, ChatRequest, Failure, RawAnswer
from r2med.store import Store, digest
from r2med.store.database import Database, chunks
from r2med.store.owners import is_dead, process_name
from r2med.store.rows import Rows

_BURST = 0.5
"""Seconds. Answers that come faster than this are not each flushed to the disk, only handed to the system: a flush
takes milliseconds, and all other answers wait for it.
"""
_LEASES = "CREATE TABLE IF NOT EXISTS heartbeats (key BLOB PRIMARY KEY, owner TEXT NOT NULL, beat INTEGER NOT NULL)"
LEASE_SECONDS = 60.0
"""A lease whose owner showed no sign of life for so long is anybody's."""


_LOGPROBS = ("first_choices", "last_tokens")
"""Fields of an answer that JSON returns as lists, and that most answers do not have."""


def journal_file(store: Store) -> Path:
    """Return where a store keeps answers."""
    return store.answers / "chat.sqlite"


def key_of(identity: dict[str, Any], request: ChatRequest) -> bytes:
    """Return what an answer is kept under: model, messages or prompt, sampling and sample number."""
    asked = dataclasses.asdict(request)
    if request.prompt is None:
        del asked["prompt"]  # answers from before there were prompts are kept under keys without one
    if not request.schema:
        del asked["schema"]  # likewise
    if not request.top_logprobs:
        del asked["top_logprobs"]  # likewise
    return bytes.fromhex(digest([identity, asked]))


@dataclasses.dataclass(frozen=True)
class Entry:
    """An answer in the journal."""

    answer: RawAnswer | Failure
    is_new: bool
    """Whether this process put it there."""


def answers_by_model(store: Store) -> dict[str, list[bytes]]:
    """Return the keys of all answers in a store's journal, by the name of the model that gave them."""
    models: dict[str, list[bytes]] = {}
    if (path := journal_file(store)).is_file():
        with _rows(path) as rows:
            for key, content in rows.items():
                models.setdefault(json.loads(content)["model"], []).append(key)
    return models


def answer_seconds(store: Store, model: str) -> list[float]:
    """Return how long each answer of a model took that a store's journal has."""
    if not (path := journal_file(store)).is_file():
        return []
    with _rows(path) as rows:
        entries = [json.loads(content) for _, content in rows.items()]
    return [entry["answer"]["seconds"] for entry in entries if entry["model"] == model and "answer" in entry]


def forget_answers(store: Store, keys: Sequence[bytes]) -> None:
    """Remove answers from a store's journal: they are asked for again, and paid for again."""
    with _rows(journal_file(store)) as rows:
        rows.remove(keys)


def _rows(path: Path) -> Rows:
    return Rows(path, "journal of LLM answers", "journal", [_LEASES])


class Journal:
    """An open journal; use it in a `with`. Any thread may use it."""

    def __init__(self, path: Path) -> None:
        self._rows = _rows(path)
        self._flushed = -math.inf
        self._seen: dict[tuple[str, int], float] = {}

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *error: Any) -> None:
        self._rows.__exit__(*error)

    def get(self, keys: Sequence[bytes]) -> dict[bytes, Entry]:
        """Return the entries that are there and sound."""
        return {key: _decoded(content) for key, content in self._rows.get(keys).items()}

    def put(self, key: bytes, model: str, answer: RawAnswer | Failure) -> None:
        """Keep one answer: when this returns, no kill can take it.

        In a burst the disk is not waited for each time, so that a power failure, and only it, may take the last few.
        """
        if isinstance(answer, Failure) and answer.kind not in FROM_THE_MODEL:
            raise ValueError(f"a failure of kind {answer.kind} is to be tried again, not kept")
        burst = time.monotonic() - self._flushed < _BURST
        self._rows.put({key: _encoded(model, answer)}, durable=not burst)
        if not burst:
            self._flushed = time.monotonic()

    @contextlib.contextmanager
    def leases(self) -> Iterator[Leases]:
        """Yield the leases of one piece of work; they are given back however it ends."""
        leases = Leases(self._rows.database, self._seen)
        try:
            yield leases
        finally:
            leases.give_back()


class Leases:
    """The questions that one piece of work may ask; others wait for their answers meanwhile.

    An owner counts a number up while it lives. Who waits looks whether that number moves, by its own clock: two clocks
    are never compared. A lease also ends at once when its owner is known to be dead.
    """

    def __init__(self, database: Database, seen: dict[tuple[str, int], float]) -> None:
        """Prepare to take leases; `seen` are the numbers of other owners, and when each was first seen."""
        self._database = database
        self._owner = process_name()
        self._seen = seen
        self.others: tuple[str, ...] = ()
        """Who is asking what could not be taken the last time."""
        self._beat = 0
        self._beaten = _since_boot()
        self._lapsed = False
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._live, name="r2med-leases", daemon=True)

    @property
    def lapsed(self) -> bool:
        """Whether this process was stopped so long that others may have taken its leases."""
        return self._lapsed or _since_boot() - self._beaten > LEASE_SECONDS / 2

    def take(self, keys: Sequence[bytes]) -> list[bytes]:
        """Return the keys that are ours to ask from now on; the others somebody else is asking."""
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
            with contextlib.suppress(Exception):  # the next round may succeed; at worst a question is asked twice
                self._count_up()

    def _count_up(self) -> None:
        beat = self._beat + 1
        statement = "UPDATE heartbeats SET beat = ? WHERE owner = ?"
        self._database.write(lambda sql: sql.execute(statement, (beat, self._owner)))
        self._beat = beat
        self._beaten = _since_boot()


def _since_boot() -> float:
    """Return seconds by a clock that also runs while the machine sleeps, where there is one."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic()


def _encoded(model: str, answer: RawAnswer | Failure) -> bytes:
    kind = "failure" if isinstance(answer, Failure) else "answer"
    content = {name: value for name, value in vars(answer).items() if name not in _LOGPROBS or value}
    row = {"model": model, "process": _process(os.getpid()), kind: content}
    return json.dumps(row).encode("ascii")  # ASCII: lone surrogates have no UTF-8


def _decoded(content: bytes) -> Entry:
    row = json.loads(content)
    answer = Failure(**row["failure"]) if "failure" in row else _raw_answer(row["answer"])
    return Entry(answer, row.get("process") == _process(os.getpid()))


def _raw_answer(content: dict[str, Any]) -> RawAnswer:
    lists = {name: tuple((token, logprob) for token, logprob in content.get(name, ())) for name in _LOGPROBS}
    return RawAnswer(**{**content, **lists})


@cache
def _process(process_id: int) -> str:
    # By its id: a child that was forked is another process.
    return process_name()
