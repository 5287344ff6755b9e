"""A SQLite file that several threads and processes read and write at once.

The content of such a file was paid for. A damaged file therefore stops the command, with a message that says how to
recover its rows. It is never replaced by an empty one.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import shlex
import shutil
import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

from r2med.foundation.core.errors import UserError
from r2med.foundation.store.sharing import exclusive, give_access, private_folder

log = logging.getLogger("r2med")

T = TypeVar("T")
Work = Callable[[sqlite3.Connection], T]

KEYS_AT_ONCE = 500  # older builds of SQLite allow 999 variables in one statement
_ATTEMPTS = 3
_DAMAGED = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
_UNWRITABLE = {sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM}
_LOCKED = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL}


class Database:
    """An open SQLite file in WAL mode. Any thread may use it, and the owner must close it."""

    def __init__(self, path: Path, noun: str, tables: Sequence[str], *, private: bool = True) -> None:
        """Open or create the file.

        `noun` is the name of the file's content in messages. `tables` are the statements that create missing tables.
        Only the owner can read a private file.
        """
        self.path = path
        self._private = private
        self._noun = noun
        self._tables = tables
        self._lock = threading.RLock()
        self._durable = True
        self._unflushed = False
        self._inode = (0, 0)
        with self.as_user_error():
            if private:
                private_folder(path.parent)
            self._open()

    def close(self) -> None:
        """Flush all data to the disk and close the file."""
        with self._lock, self.as_user_error(), self._alone():
            try:
                if self._unflushed:
                    self._sql.execute("PRAGMA wal_checkpoint(PASSIVE)")
            finally:
                self._sql.close()

    def read(self, work: Work[T]) -> T:
        """Return the result of `work(connection)`."""
        with self._lock, self.as_user_error():
            return work(self._sql)

    def write(self, work: Work[T], durable: bool = True) -> T:
        """Run `work(connection)` as one transaction and return its result. No other process writes meanwhile.

        When this returns, a kill cannot undo it. If `durable`, a power failure cannot undo it either. `work` is called
        again if somebody replaced the file meanwhile, for example by a recovered one.
        """
        with self._lock, self.as_user_error():
            for _ in range(_ATTEMPTS):
                result = self._transaction(work, durable)
                if self._is_current():
                    return result
                self._sql.close()  # we wrote to a file that is not there any more
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

    def _open(self) -> None:
        with self._alone():
            if not self.path.exists():
                self._create()
            if not self.path.stat().st_size:  # SQLite would take it for a new database
                raise UserError(self._damaged("it is empty"))
            self._inode = _inode(self.path)
            self._sql = self._connected(self.path)
            self._durable = True

    def _create(self) -> None:
        """Create the file with its tables under another name first, so that a kill leaves no empty file."""
        fresh = self.path.with_name(f"{self.path.name}.new")
        # The log of a file that is gone would be read into the new one.
        for left in (fresh, *(Path(f"{path}{suffix}") for path in (fresh, self.path) for suffix in ("-wal", "-shm"))):
            left.unlink(missing_ok=True)
        fresh.touch(mode=0o600 if self._private else 0o666)
        if self._private:
            give_access(fresh)  # SQLite gives the files beside it the same mode
        self._connected(fresh).close()
        fresh.replace(self.path)

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

    def _is_current(self) -> bool:
        try:
            return _inode(self.path) == self._inode
        except FileNotFoundError:
            return False

    def _alone(self) -> contextlib.AbstractContextManager[None]:
        # SQLite does not wait for others while the first process turns WAL on or the last one removes it.
        return exclusive(self.path.with_suffix(".lock"))

    def _explained(self, error: sqlite3.Error | OSError) -> str:
        if _code(error) in _DAMAGED:
            return self._damaged(error)
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

    def _damaged(self, why: object) -> str:
        return f"{self.path}: this {self._noun} is damaged ({why}). {recovery(self.path)}"


def recovery(path: Path) -> str:
    """Return the command that recovers the rows of a damaged file, and what it costs to delete the file."""
    file, text, damaged = (shlex.quote(f"{path}{suffix}") for suffix in ("", ".sql", ".damaged"))
    return (
        f"To recover its rows: sqlite3 {file} .recover > {text} && mv {file} {damaged} && sqlite3 {file} < {text} . "
        "If you delete it instead, its content is lost, or made and paid for again"
    )


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
