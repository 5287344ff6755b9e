"""Claims: which process is asking for which answer, so that two processes never pay for the same one.

While an owner lives, it increments a counter. A waiting process watches with its own clock whether the counter changes,
so two clocks are never compared. A claim also ends immediately when its owner is known to be dead.
"""

from __future__ import annotations

import contextlib
import sqlite3
import threading
import time
from collections.abc import Sequence

from r2med.foundation.store.database import Database, chunks
from r2med.foundation.store.owners import is_dead, process_name

CLAIM_TABLES = (
    "CREATE TABLE IF NOT EXISTS claims (key BLOB PRIMARY KEY, owner TEXT NOT NULL)",
    "CREATE TABLE IF NOT EXISTS owners (owner TEXT PRIMARY KEY, beat INTEGER NOT NULL)",
)
CLAIM_SECONDS = 60.0
"""Seconds without a sign of life after which a claim of another process can be taken."""


class Claims:
    """The keys that one piece of work may ask for. Other processes wait for these answers."""

    def __init__(self, database: Database, seen: dict[tuple[str, int], float]) -> None:
        """Prepare to claim. `seen` has the counters of other owners and the time when each was first seen."""
        self._database = database
        self._owner = process_name()
        self._seen = seen
        self.others: tuple[str, ...] = ()
        """Owners of the keys that could not be claimed."""
        self._beat = 0
        self._beaten = _since_boot()
        self._lapsed = False
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._live, name="r2med-claims", daemon=True)

    @property
    def lapsed(self) -> bool:
        """True if this process was stopped so long that others may have taken its claims."""
        return self._lapsed or _since_boot() - self._beaten > CLAIM_SECONDS / 2

    def take(self, keys: Sequence[bytes]) -> list[bytes]:
        """Return the keys that this process may ask for now. Other processes are asking for the rest."""
        mine = self._database.write(lambda sql: self._take(sql, keys), durable=False)
        if mine and self._thread.ident is None:
            self._beaten = _since_boot()
            self._thread.start()
        return mine

    def release(self) -> None:
        """End all claims."""
        self._ended.set()
        if self._thread.ident is None:  # nothing was claimed
            return

        def delete(sql: sqlite3.Connection) -> None:
            for table in ("claims", "owners"):
                sql.execute(f"DELETE FROM {table} WHERE owner = ?", (self._owner,))

        self._database.write(delete, durable=False)

    def _take(self, sql: sqlite3.Connection, keys: Sequence[bytes]) -> list[bytes]:
        held: dict[bytes, str] = {}
        for marks, part in chunks(keys):
            held.update(sql.execute(f"SELECT key, owner FROM claims WHERE key IN ({marks})", part))
        living = {owner for owner in {*held.values()} - {self._owner} if self._lives(sql, owner)}
        self.others = tuple(sorted({*self.others, *living}))
        mine = [key for key in keys if held.get(key) not in living]
        sql.executemany("INSERT OR REPLACE INTO claims VALUES (?, ?)", [(key, self._owner) for key in mine])
        if mine:
            sql.execute("INSERT OR REPLACE INTO owners VALUES (?, ?)", (self._owner, self._beat))
        return mine

    def _lives(self, sql: sqlite3.Connection, owner: str) -> bool:
        beats = sql.execute("SELECT beat FROM owners WHERE owner = ?", (owner,)).fetchall()
        now = time.monotonic()
        first_seen = self._seen.setdefault((owner, beats[0][0] if beats else 0), now)
        return now - first_seen < CLAIM_SECONDS and not is_dead(owner)

    def _live(self) -> None:
        while not self._ended.wait(CLAIM_SECONDS / 4):
            if _since_boot() - self._beaten > CLAIM_SECONDS / 2:
                self._lapsed = True
            with contextlib.suppress(Exception):  # The next round may succeed. At worst, a question is asked twice.
                self._count_up()

    def _count_up(self) -> None:
        beat = self._beat + 1
        statement = "UPDATE owners SET beat = ? WHERE owner = ?"
        self._database.write(lambda sql: sql.execute(statement, (beat, self._owner)), durable=False)
        self._beat = beat
        self._beaten = _since_boot()


def _since_boot() -> float:
    """Return seconds from a clock that also runs while the machine sleeps, if there is one."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic()
