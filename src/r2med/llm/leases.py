"""Who is asking which question just now, so that two processes never pay for the same answer.

A lease ends when its owner gives it back, when its process is gone (known at once on the same machine), or when it was
not renewed for a minute.
"""

from __future__ import annotations

import contextlib
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Sequence

from r2med.store.database import Database, chunks
from r2med.store.owners import is_dead

LEASES = "CREATE TABLE IF NOT EXISTS leases (key BLOB PRIMARY KEY, owner TEXT NOT NULL, until REAL NOT NULL)"
_SECONDS = 60.0


class Leases:
    """The leases of a journal."""

    def __init__(self, database: Database) -> None:
        self._database = database

    @contextlib.contextmanager
    def held(self, owner: str) -> Iterator[Callable[[Sequence[bytes]], list[bytes]]]:
        """Yield a way to take leases; they are renewed while the work goes on and given back however it ends."""
        ended = threading.Event()

        def renew() -> None:
            while not ended.wait(_SECONDS / 4):
                with contextlib.suppress(Exception):  # the next round may succeed; at worst a question is asked twice
                    self._write("UPDATE leases SET until = ? WHERE owner = ?", time.time() + _SECONDS, owner)

        thread = threading.Thread(target=renew, name="r2med-leases", daemon=True)

        def take(keys: Sequence[bytes]) -> list[bytes]:
            mine = self._take(keys, owner)
            if mine and not thread.ident:
                thread.start()
            return mine

        try:
            yield take
        finally:
            ended.set()
            self._write("DELETE FROM leases WHERE owner = ?", owner)

    def _take(self, keys: Sequence[bytes], owner: str) -> list[bytes]:
        """Return the keys that are the owner's to ask from now on; the others somebody else is asking."""

        def take(sql: sqlite3.Connection) -> list[bytes]:
            now = time.time()
            taken: set[bytes] = set()
            for marks, part in chunks(keys):
                rows = sql.execute(f"SELECT key, owner, until FROM leases WHERE key IN ({marks})", part)
                taken |= {key for key, other, until in rows if other != owner and until > now and not is_dead(other)}
            mine = [key for key in keys if key not in taken]
            sql.executemany(
                "INSERT OR REPLACE INTO leases VALUES (?, ?, ?)", [(key, owner, now + _SECONDS) for key in mine]
            )
            return mine

        return self._database.write(take)

    def _write(self, statement: str, *values: object) -> None:
        self._database.write(lambda sql: sql.execute(statement, values))
