"""Claims: which process is asking for which answer, so that two processes never pay for the same one.

A claim is a row (key, owner). An owner lives as long as it holds the lock of its own file, which the kernel frees when
its process ends.
"""

from __future__ import annotations

import contextlib
import os
import platform
import sqlite3
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from r2med.foundation.store.database import Database, chunks
from r2med.foundation.store.sharing import give_access, held, is_swept, private_folder

CLAIM_TABLES = ("CREATE TABLE IF NOT EXISTS claims (key BLOB PRIMARY KEY, owner TEXT NOT NULL)",)


class Claims:
    """The keys that one piece of work may ask for. Other processes wait for these answers."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._folder = database.path.with_suffix(".owners")
        self._lock = contextlib.ExitStack()
        self._owner: Path | None = None
        self.others: tuple[str, ...] = ()
        """The processes that ask for the keys that could not be claimed, for messages."""

    def take(self, keys: Sequence[bytes]) -> list[bytes]:
        """Return the keys that this process may ask for now. Other processes are asking for the rest."""
        if self._owner is None:
            private_folder(self._folder)
            self._owner = self._lock.enter_context(held(self._folder / "owner", partial(Path.touch, mode=0o600)))
            self._owner.write_text(f"process {os.getpid()} on {platform.node()}", "utf-8")
            give_access(self._owner)
        owner = self._owner.name
        return self._database.write(lambda sql: self._take(sql, keys, owner), durable=False)

    def release(self) -> None:
        """End all claims."""
        if self._owner is None:  # nothing was claimed
            return
        name = self._owner.name
        self._database.write(lambda sql: sql.execute("DELETE FROM claims WHERE owner = ?", (name,)), durable=False)
        self._lock.close()

    def _take(self, sql: sqlite3.Connection, keys: Sequence[bytes], owner: str) -> list[bytes]:
        claimed: dict[bytes, str] = {}
        for marks, part in chunks(keys):
            claimed.update(sql.execute(f"SELECT key, owner FROM claims WHERE key IN ({marks})", part))
        living = {other for other in {*claimed.values()} - {owner} if not is_swept(self._folder / other)}
        self.others = tuple(sorted({*self.others, *map(self._place, living)}))
        mine = [key for key in keys if claimed.get(key) not in living]
        sql.executemany("INSERT OR REPLACE INTO claims VALUES (?, ?)", [(key, owner) for key in mine])
        return mine

    def _place(self, owner: str) -> str:
        try:
            return (self._folder / owner).read_text("utf-8")
        except OSError:  # it has just ended
            return "another process"
