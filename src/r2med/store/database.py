"""A SQLite file that several processes read and write at once, and that nobody loses what was paid for to."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType

from r2med.errors import UserError
from r2med.store.files import exclusive

AT_ONCE = 500  # SQLite builds of old allow 999 variables in one statement


class Database:
    """An open file in WAL mode; use it in a `with`. One thread at a time."""

    def __init__(self, path: Path, what: str, tables: Sequence[str]) -> None:
        self.path = path
        self._what = what
        with self.one_line(), self._alone():
            # Minutes, not the default 5 s: another process may be writing to a slow disk.
            self.sql = sqlite3.connect(path, timeout=120, isolation_level=None, check_same_thread=False)
            try:
                self.sql.execute("PRAGMA journal_mode=WAL")
                # What is kept cost money: unlike NORMAL, FULL keeps the last of it even when the power fails.
                self.sql.execute("PRAGMA synchronous=FULL")
                for table in tables:
                    self.sql.execute(table)
            except BaseException:
                self.sql.close()
                raise

    def __enter__(self) -> Database:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self.one_line(), self._alone():
            self.sql.close()

    @contextlib.contextmanager
    def transaction(self) -> Iterator[None]:
        """Do all of what is inside or nothing; no other process writes meanwhile."""
        self.sql.execute("BEGIN IMMEDIATE")
        try:
            yield
            self.sql.execute("COMMIT")
        except BaseException:
            with contextlib.suppress(sqlite3.Error):  # a full disk has already rolled it back
                self.sql.execute("ROLLBACK")
            raise

    @contextlib.contextmanager
    def one_line(self) -> Iterator[None]:
        """Turn whatever SQLite or the disk says into an error of one line."""
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            # Never removed by itself: what is in it was paid for, and its owner may still mend it.
            raise UserError(
                f"{self.path}: this {self._what} cannot be used ({error}): mend it, or move it away"
            ) from None

    def _alone(self) -> contextlib.AbstractContextManager[None]:
        # SQLite waits for others, but not when the first to open turns WAL on or the last to close clears it up.
        return exclusive(self.path.with_suffix(".lock"))


def some(keys: Sequence[bytes]) -> Iterator[tuple[str, Sequence[bytes]]]:
    """Yield the keys in parts that fit one statement, each with its question marks."""
    for start in range(0, len(keys), AT_ONCE):
        part = keys[start : start + AT_ONCE]
        yield ",".join("?" * len(part)), part
