"""Memo: answers that were paid for or took long, by key. Processes share it and do not ask for the same answer twice.

`get` reads, `put` saves, and `missing(...).fill` asks for what is missing. Before a process asks for a key, it claims
the key. Others wait for its answer, and ask themselves if it fails or dies. A killed process loses only what it was
asking for.
"""

from __future__ import annotations

import contextlib
import logging
import math
import os
import platform
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, Generic, TypeVar

from r2med.foundation.store.database import Database, chunks
from r2med.foundation.store.rows import Rows
from r2med.foundation.store.sharing import give_access, held, is_swept, private_folder

log = logging.getLogger("r2med")

Key = TypeVar("Key")
Value = TypeVar("Value")

_BURST_SECONDS = 0.5
"""Seconds. Answers that arrive faster than this are passed to the system but not each flushed to the disk.

A flush takes milliseconds, and all other answers wait for it.
"""
_POLL_SECONDS = 0.1
"""Seconds between two checks for an answer that another process is asking for."""
CLAIMS_AT_ONCE = 1000
"""Number of keys that are claimed in one step. Other processes can take the keys after these."""


@dataclass(frozen=True)
class MemoKind:
    """What one folder of memos holds."""

    table: str
    noun: str
    """The name of a file in messages."""
    rows: str
    """The name of its rows in messages."""


MEMOS: Mapping[str, MemoKind] = {
    "journal": MemoKind("journal", "journal of LLM answers", "answers of LLMs"),
    "api": MemoKind("embeddings", "cache of API answers", "vectors of embedding APIs"),
    "scores": MemoKind("scores", "cache of scores", "scores of rerankers"),
    "remote": MemoKind("documents", "cache of search servers", "answers of search servers"),
}
"""Folder of the store -> what its files hold."""


_CLAIMS = ("CREATE TABLE IF NOT EXISTS claims (key BLOB PRIMARY KEY, owner TEXT NOT NULL)",)


def memo_rows(path: Path, datasets: Iterable[str] = ()) -> Rows:
    """Open the rows of a memo as bytes. The name of its folder says what it holds. `datasets` are their labels."""
    kind = MEMOS[path.parent.name]
    return _ClaimedRows(path, kind.noun, kind.table, _CLAIMS, datasets=datasets)


class _ClaimedRows(Rows):
    """Rows whose claims end when they are saved."""

    def _insert(self, sql: sqlite3.Connection, rows: Iterable[tuple[bytes, bytes]]) -> None:
        rows = list(rows)
        super()._insert(sql, rows)
        sql.executemany("DELETE FROM claims WHERE key = ?", [(key,) for key, _ in rows])


class Claims:
    """The keys that one piece of work may ask for, in a `with` block. Other processes wait for these answers.

    A claim is a row (key, owner). An owner lives as long as it holds the lock of its own file, which the kernel frees
    when its process ends.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._folder = database.path.with_suffix(".owners")
        self._lock = contextlib.ExitStack()
        self._owner: Path | None = None
        self.others: tuple[str, ...] = ()
        """The processes that ask for the keys that could not be claimed, for messages."""

    def __enter__(self) -> Claims:
        return self

    def __exit__(self, *error: Any) -> None:
        if self._owner is None:  # nothing was claimed
            return
        name = self._owner.name
        with self._lock:  # it is free afterwards also if the disk is full
            self._database.write(lambda sql: sql.execute("DELETE FROM claims WHERE owner = ?", (name,)), durable=False)

    def take(self, keys: Sequence[bytes]) -> list[bytes]:
        """Return the keys that this process may ask for now. Other processes are asking for the rest."""
        if self._owner is None:
            private_folder(self._folder)
            self._owner = self._lock.enter_context(held(self._folder / "owner", partial(Path.touch, mode=0o600)))
            self._owner.write_text(f"process {os.getpid()} on {platform.node()}", "utf-8")
            give_access(self._owner)
        owner = self._owner.name
        return self._database.write(lambda sql: self._take(sql, keys, owner), durable=False)

    def _take(self, sql: sqlite3.Connection, keys: Sequence[bytes], owner: str) -> list[bytes]:
        claimed: dict[bytes, str] = {}
        for marks, part in chunks(keys):
            claimed.update(sql.execute(f"SELECT key, owner FROM claims WHERE key IN ({marks})", part))
        living = {name for name in {*claimed.values()} - {owner} if not is_swept(self._folder / name)}
        self.others = tuple(sorted({*self.others, *map(self._place, living)}))
        mine = [key for key in keys if claimed.get(key) not in living]
        sql.executemany("INSERT OR REPLACE INTO claims VALUES (?, ?)", [(key, owner) for key in mine])
        return mine

    def _place(self, owner: str) -> str:
        try:
            return (self._folder / owner).read_text("utf-8")
        except OSError:  # it has just ended
            return "another process"


class Memo(Generic[Value]):
    """An open memo, used as a context manager. It is thread-safe."""

    def __init__(
        self,
        path: Path,
        encode: Callable[[Value], bytes],
        decode: Callable[[bytes], Value | None],
        datasets: Iterable[str] = (),
    ) -> None:
        """Open or create the file. `decode` returns None for bytes that are not a valid answer.

        Answers that are put or found get the labels of `datasets`.
        """
        self._rows = memo_rows(path, datasets)
        self._encode = encode
        self._decode = decode
        self._flushed = -math.inf

    def __enter__(self) -> Memo[Value]:
        return self

    def __exit__(self, *error: Any) -> None:
        self._rows.__exit__(*error)

    def get(self, keys: Sequence[bytes]) -> dict[bytes, Value]:
        """Return the answers that exist and are valid."""
        return _valid({key: self._decode(content) for key, content in self._rows.get(keys).items()})

    def put(self, answers: Mapping[bytes, Value]) -> None:
        """Save answers, all or none. After this returns, a kill cannot lose them.

        In a burst of answers, not every one waits for the disk. Then a power failure, but nothing else, may lose the
        last few.
        """
        burst = time.monotonic() - self._flushed < _BURST_SECONDS
        self._rows.put({key: self._encode(answer) for key, answer in answers.items()}, durable=not burst)
        if not burst:
            self._flushed = time.monotonic()

    def claims(self) -> Claims:
        """Return the claims of one piece of work. They are released however the work ends."""
        return Claims(self._rows.database)

    def missing(
        self, keys: Iterable[bytes], usable: Callable[[bytes, Value], bool] = lambda key, answer: True
    ) -> Missing[Value]:
        """Look up keys. A saved answer that is not `usable` is treated as missing."""
        return Missing(self, keys, usable)


class Missing(Generic[Value]):
    """Keys that are wanted together, and the answers that are known. `fill` asks for those that are missing.

    The function that asks iterates over this object for the keys to ask for, and calls `put` with their answers.
    """

    def __init__(self, memo: Memo[Value], keys: Iterable[bytes], usable: Callable[[bytes, Value], bool]) -> None:
        self._memo = memo
        self._keys = list(dict.fromkeys(keys))
        self._lock = threading.Lock()
        self._known: Callable[[Mapping[bytes, Value], bool], None] = _ignore
        self._block: list[bytes] = []
        found = memo.get(self._keys)
        self._unusable = {key: answer for key, answer in found.items() if not usable(key, answer)}
        self.answers = {key: answer for key, answer in found.items() if key not in self._unusable}
        """The answers that are known now."""

    @property
    def open(self) -> list[bytes]:
        """The keys without an answer."""
        return [key for key in self._keys if key not in self.answers]

    def fill(
        self,
        ask: Callable[[Missing[Value]], None],
        known: Callable[[Mapping[bytes, Value], bool], None] | None = None,
    ) -> dict[bytes, Value]:
        """Return the answers of all keys. `ask` is called if a key is missing that no other process is asking for.

        `known` gets the answers that become known meanwhile, once for each key, and True if this process did not ask
        for them.
        """
        self._known = known or _ignore
        named: tuple[str, ...] = ()
        while self.open:
            with self._memo.claims() as claims:
                self._ask(ask, claims)
                others = claims.others
            # Other processes are asking for the rest. If they fail or die, it is asked for here.
            if waiting := self.open:
                if others != named:
                    named = others
                    _log_waiting(len(waiting), others)
                time.sleep(_POLL_SECONDS)
                self._look(waiting)
        return self.answers

    def put(self, answers: Mapping[bytes, Value], *, save: bool = True) -> None:
        """Take answers, and save them before anything else can go wrong. Without `save`, only this work has them."""
        if save:
            self._memo.put(answers)
        self._add(answers, stored=False)

    def __iter__(self) -> Iterator[bytes]:
        """Yield the keys to ask for. They are claimed block by block."""
        while self._block:
            for key in self._block:
                if key not in self.answers:
                    self._asked.append(key)
                    yield key
            self._block = self._claimed_block()

    def _claimed_block(self) -> list[bytes]:
        """Return the next keys that this process has claimed; empty if there are no more."""
        while block := list(islice(self._unclaimed, CLAIMS_AT_ONCE)):
            mine = self._claims.take(block)
            self._look(mine)  # Another process may have saved its answer just before it released the claim.
            if mine := [key for key in mine if key not in self.answers]:
                return mine
        return []

    def _ask(self, ask: Callable[[Missing[Value]], None], claims: Claims) -> None:
        """Call `ask` if this process can claim a key."""
        self._claims = claims
        self._unclaimed = iter(self.open)
        self._asked: list[bytes] = []
        self._block = self._claimed_block()
        if not self._block:
            return
        ask(self)
        if unanswered := [key for key in self._asked if key not in self.answers]:
            raise RuntimeError(f"the work ended without {len(unanswered)} of its {len(self._asked)} answers")

    def _look(self, keys: Sequence[bytes]) -> None:
        """Read answers that were saved in the meantime."""
        found = self._memo.get(keys).items()
        self._add({key: answer for key, answer in found if self._unusable.get(key) != answer}, stored=True)

    def _add(self, answers: Mapping[bytes, Value], stored: bool) -> None:
        with self._lock:
            # A second call may bring the bill of an answer that is already there.
            new = {key: answer for key, answer in answers.items() if key not in self.answers}
            self.answers |= answers
        if new:
            self._known(new, stored)


def _ignore(answers: Mapping[Any, Any], stored: bool) -> None:
    """Do nothing."""


def _valid(answers: Mapping[Key, Value | None]) -> dict[Key, Value]:
    return {key: answer for key, answer in answers.items() if answer is not None}


def _log_waiting(answers: int, others: Sequence[str]) -> None:
    log.info("waiting for answers: %s is asking for %s of them", " and ".join(others), f"{answers:,}")
