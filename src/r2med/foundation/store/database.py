"""A SQLite file that several threads and processes read and write at once, and that is repaired after damage.

A file that SQLite reports as damaged is moved aside as NAME.damaged, its readable rows are copied into a new file, and
work continues. The content of such a file was paid for, so nothing of it is ever deleted here.
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

from r2med.foundation.core.errors import UserError
from r2med.foundation.store.files import exclusive, private_folder

log = logging.getLogger("r2med")

T = TypeVar("T")
Work = Callable[[sqlite3.Connection], T]
Rescue = Callable[[sqlite3.Connection, Path], int]
"""Copies the readable rows of a damaged file into a new one and returns their number."""

KEYS_AT_ONCE = 500  # older builds of SQLite allow 999 variables in one statement
_ATTEMPTS = 3
_DAMAGED = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
_UNWRITABLE = {sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM}
_LOCKED = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL}
_BESIDE = ("-wal", "-shm")  # the files that SQLite keeps beside a database


class Database:
    """An open SQLite file in WAL mode. Any thread may use it, and the owner must close it."""

    def __init__(self, path: Path, noun: str, tables: Sequence[str], rescue: Rescue, *, private: bool = True) -> None:
        """Open or create the file.

        `noun` is the name of the file's content in messages. `tables` are the statements that create missing tables.
        Only the owner can read a private file.
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
        """Flush all data to the disk and close the file."""
        with self._lock, self.as_user_error(), self._alone():
            try:
                if self._unflushed:
                    self._sql.execute("PRAGMA wal_checkpoint(PASSIVE)")
            finally:
                self._sql.close()

    def read(self, work: Work[T]) -> T:
        """Return the result of `work(connection)`. It may be called again if the file was damaged and salvaged."""
        with self._lock, self.as_user_error():
            return self._repaired(lambda: work(self._sql))

    def write(self, work: Work[T], durable: bool = True) -> T:
        """Run `work(connection)` as one transaction and return its result. No other process writes meanwhile.

        When this returns, a kill cannot undo it. If `durable`, a power failure cannot undo it either. `work` may be
        called again if the file was damaged and salvaged.
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
        """Rewrite the file without removed rows and empty its log, so that no byte of the removed rows is left."""

        def rewrite(sql: sqlite3.Connection) -> bool:
            sql.execute("VACUUM")
            busy, *_ = sql.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            return bool(busy)

        if self.read(rewrite):
            log.warning("%s is in use: removed rows stay in its log until the other process ends", self.path)

    @contextlib.contextmanager
    def as_user_error(self) -> Iterator[None]:
        """Turn errors of SQLite and of the disk into a UserError that says what to do."""
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
        """Return the result of `work`, after salvaging the file if SQLite reports it as damaged."""
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
            # The rows cost money: unlike NORMAL, FULL keeps the newest ones even after a power failure.
            sql.execute("PRAGMA synchronous=FULL")
            sql.execute("PRAGMA secure_delete=ON")  # removed text of a patient must not stay in free pages
            for table in self._tables:
                sql.execute(table)
        except BaseException:
            sql.close()
            raise
        return sql

    def _salvage(self, error: sqlite3.DatabaseError) -> None:
        """Replace a damaged file by a new one with the readable rows. Any other error is raised again."""
        if _code(error) not in _DAMAGED:
            raise error
        with contextlib.suppress(sqlite3.Error, AttributeError):  # it may not have been opened
            self._sql.close()
        with self._alone():
            if self._is_current():  # otherwise another process has salvaged it already
                self.path.replace(self._aside())
        self._open()

    def _finish_salvage(self) -> None:
        """Copy the readable rows of a file that was moved aside, by this process or by one that was then killed."""
        aside = self._aside()
        if not aside.exists():
            return
        damaged = _free_name(self.path.with_name(f"{self.path.name}.damaged"))
        if not self.path.exists():
            for suffix in _BESIDE:  # the log holds the newest rows
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
                "%s: this %s was damaged: %s readable rows are kept, and missing ones are made again; "
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
        # SQLite does not wait for others while the first process turns WAL on or the last one removes it.
        return exclusive(self.path.with_suffix(".lock"))

    def _explained(self, error: sqlite3.Error | OSError) -> str:
        if _is_full(error, self.path.parent):
            return (
                f"the disk that holds {self.path.parent} is full: free some space, or set R2MED_HOME to a folder on "
                "another disk, then run again (everything saved so far is safe)"
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
    """Yield (question marks, keys) for parts of the keys that fit into one statement."""
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
    if _code(error) != sqlite3.SQLITE_IOERR:  # SQLite also reports IOERR if there is no space for its shared memory
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
