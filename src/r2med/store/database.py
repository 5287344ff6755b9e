"""A SQLite file that several threads and processes read and write at once, and that damage does not take away.

A file that SQLite calls damaged is moved aside as NAME.damaged, its readable rows go into a new file, and the work goes
on. What is in such a file was paid for, so nothing of it is ever deleted here.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import shutil
import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

from r2med.core.errors import UserError
from r2med.store.files import exclusive, private_folder

log = logging.getLogger("r2med")

T = TypeVar("T")
Work = Callable[[sqlite3.Connection], T]
Rescue = Callable[[sqlite3.Connection, Path], int]
"""Copies what can be read of a damaged file into a new one, and returns the number of rows."""

KEYS_AT_ONCE = 500  # older builds of SQLite allow 999 variables in one statement
_ATTEMPTS = 3
_DAMAGED = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
_UNWRITABLE = {sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM}
_LOCKED = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL}
_BESIDE = ("-wal", "-shm")  # the files that SQLite keeps beside a database


class Database:
    """An open file in WAL mode, to be closed. Any thread may use it."""

    def __init__(self, path: Path, noun: str, tables: Sequence[str], rescue: Rescue, *, private: bool = True) -> None:
        """Open or create the file.

        `noun` is what messages call it, `tables` the statements that create what is missing. Only its owner can read a
        private file.
        """
        self.path = path
        self._private = private
        self._noun = noun
        self._tables = tables
        self._rescue = rescue
        self._lock = threading.RLock()
        self._durable = True
        self._unflushed = False
        self._inode = (0, 0)
        with self.as_user_error():
            if private:
                private_folder(path.parent)
            try:
                self._open()
            except sqlite3.DatabaseError as error:
                self._salvage(error)

    def close(self) -> None:
        """Flush what is not on the disk yet, and close the file."""
        with self._lock, self.as_user_error(), self._alone():
            try:
                if self._unflushed:
                    self._sql.execute("PRAGMA wal_checkpoint(PASSIVE)")
            finally:
                self._sql.close()

    def read(self, work: Work[T]) -> T:
        """Return what `work(connection)` returns; it may be called again if the file was damaged and salvaged."""
        with self._lock, self.as_user_error():
            return self._repaired(lambda: work(self._sql))

    def write(self, work: Work[T], durable: bool = True) -> T:
        """Do all that `work(connection)` does or nothing; no other process writes meanwhile.

        When this returns, no kill can undo it; if `durable`, no power failure either. `work` may be called again if the
        file was damaged and salvaged.
        """
        with self._lock, self.as_user_error():
            for _ in range(_ATTEMPTS):
                result = self._repaired(lambda: self._transaction(work, durable))
                if self._is_current():
                    return result
                self._sql.close()  # another process salvaged the file, and we wrote to the damaged one
                self._open()
            raise sqlite3.DatabaseError("it is replaced all the time")

    def scrub(self) -> None:
        """Rewrite the file without what was removed from it, and empty its log, so that no byte of it is left."""

        def rewrite(sql: sqlite3.Connection) -> bool:
            sql.execute("VACUUM")
            busy, *_ = sql.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            return bool(busy)

        if self.read(rewrite):
            log.warning("%s is in use: what was removed is in its log until the other process ends", self.path)

    @contextlib.contextmanager
    def as_user_error(self) -> Iterator[None]:
        """Turn whatever SQLite or the disk says into a UserError that says what to do."""
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            raise UserError(self._explained(error)) from None

    def _transaction(self, work: Work[T], durable: bool) -> T:
        if durable != self._durable:
            self._sql.execute(f"PRAGMA synchronous={'FULL' if durable else 'NORMAL'}")
            self._durable = durable
        self._sql.execute("BEGIN IMMEDIATE")
        try:
            result = work(self._sql)
            self._sql.execute("COMMIT")
        except BaseException:
            with contextlib.suppress(sqlite3.Error):  # a full disk has already rolled it back
                self._sql.execute("ROLLBACK")
            raise
        self._unflushed = not durable
        return result

    def _repaired(self, work: Callable[[], T]) -> T:
        """Return what the work returns, after salvaging the file if SQLite calls it damaged."""
        try:
            return work()
        except sqlite3.DatabaseError as error:
            self._salvage(error)
            return work()

    def _open(self) -> None:
        with self._alone():
            self._finish_salvage()
            if not self.path.exists():
                self._create(self.path)
            self._inode = _inode(self.path)
            self._sql = self._connected(self.path)
            self._durable = True

    def _create(self, path: Path) -> None:
        path.touch(mode=0o600 if self._private else 0o666)  # the files beside it get the same mode

    def _connected(self, path: Path) -> sqlite3.Connection:
        # Minutes, not the default 5 s: another process may be writing to a slow disk.
        sql = sqlite3.connect(path, timeout=120, isolation_level=None, check_same_thread=False)
        try:
            sql.execute("PRAGMA journal_mode=WAL")
            # What is kept cost money: unlike NORMAL, FULL keeps the last of it even when the power fails.
            sql.execute("PRAGMA synchronous=FULL")
            sql.execute("PRAGMA secure_delete=ON")  # a patient's text that is removed does not stay in free pages
            for table in self._tables:
                sql.execute(table)
        except BaseException:
            sql.close()
            raise
        return sql

    def _salvage(self, error: sqlite3.DatabaseError) -> None:
        """Replace a damaged file by a new one with the rows that can be read; raise any other error again."""
        if _code(error) not in _DAMAGED:
            raise error
        with contextlib.suppress(sqlite3.Error, AttributeError):  # never opened, perhaps
            self._sql.close()
        with self._alone():
            if self._is_current():  # else another process has salvaged it already
                self.path.replace(self._aside())
        self._open()

    def _finish_salvage(self) -> None:
        """Copy the readable rows of a file that was moved aside, also by a process that was killed meanwhile."""
        aside = self._aside()
        if not aside.exists():
            return
        damaged = _free_name(self.path.with_name(f"{self.path.name}.damaged"))
        if not self.path.exists():
            for suffix in _BESIDE:  # the log has the newest rows in it
                with contextlib.suppress(FileNotFoundError):
                    _beside(self.path, suffix).replace(_beside(aside, suffix))
            fresh = self.path.with_name(f"{self.path.name}.new")
            for path in (fresh, *(_beside(fresh, suffix) for suffix in _BESIDE)):
                path.unlink(missing_ok=True)
            self._create(fresh)
            with contextlib.closing(self._connected(fresh)) as sql:
                sql.execute("BEGIN IMMEDIATE")
                rows = self._rescue(sql, aside)
                sql.execute("COMMIT")
            fresh.replace(self.path)
            log.warning(
                "%s: this %s was damaged: %s rows could be read and are kept, what is missing is made again; "
                "the damaged file is %s (sqlite3's command .recover may read more of it)",
                self.path, self._noun, f"{rows:,}", damaged,
            )  # fmt: skip
        for suffix in _BESIDE:
            with contextlib.suppress(FileNotFoundError):
                _beside(aside, suffix).replace(_beside(damaged, suffix))
        aside.replace(damaged)

    def _aside(self) -> Path:
        return self.path.with_name(f"{self.path.name}.salvaging")

    def _is_current(self) -> bool:
        try:
            return _inode(self.path) == self._inode
        except FileNotFoundError:
            return False

    def _alone(self) -> contextlib.AbstractContextManager[bool]:
        # SQLite waits for others, but not when the first to open turns WAL on or the last to close clears it up.
        return exclusive(self.path.with_suffix(".lock"))

    def _explained(self, error: sqlite3.Error | OSError) -> str:
        if _is_full(error, self.path.parent):
            return (
                f"the disk that holds {self.path.parent} is full: free some space, or set R2MED_HOME to a folder on "
                "another disk, then run again (what was kept so far is safe)"
            )
        if _code(error) in _UNWRITABLE or getattr(error, "errno", None) in (errno.EACCES, errno.EPERM, errno.EROFS):
            return (
                f"{self.path}: this {self._noun} cannot be written ({error}): give yourself permission to write to "
                f"{self.path.parent}, or set R2MED_HOME to another folder"
            )
        if _code(error) in _LOCKED:
            return (
                f"{self.path}: this {self._noun} cannot be locked ({error}): end the process that holds it, or, if its "
                "file system has no locks, set R2MED_HOME to a folder on a local disk"
            )
        return f"{self.path}: this {self._noun} cannot be used ({error}): mend it, or move it away"


def chunks(keys: Sequence[bytes]) -> Iterator[tuple[str, Sequence[bytes]]]:
    """Yield the keys in parts that fit one statement, each with its question marks."""
    for start in range(0, len(keys), KEYS_AT_ONCE):
        part = keys[start : start + KEYS_AT_ONCE]
        yield ",".join("?" * len(part)), part


def _code(error: Exception) -> int:
    """Return SQLite's primary code of an error, or -1."""
    code: int = getattr(error, "sqlite_errorcode", -1)
    return code & 0xFF if code >= 0 else -1


def _is_full(error: sqlite3.Error | OSError, folder: Path) -> bool:
    if isinstance(error, OSError):
        return error.errno in (errno.ENOSPC, errno.EDQUOT)
    if _code(error) != sqlite3.SQLITE_IOERR:  # also said when the memory it shares with others finds no room
        return _code(error) == sqlite3.SQLITE_FULL
    with contextlib.suppress(OSError):
        return shutil.disk_usage(folder).free < 1 << 20
    return False


def _inode(path: Path) -> tuple[int, int]:
    stat = path.stat()
    return stat.st_dev, stat.st_ino


def _beside(path: Path, suffix: str) -> Path:
    return path.with_name(path.name + suffix)


def _free_name(path: Path) -> Path:
    number = 2
    free = path
    while free.exists():
        free = path.with_name(f"{path.name}-{number}")
        number += 1
    return free
