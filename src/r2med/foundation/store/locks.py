"""Locks that the kernel frees when their process ends. So what a dead process left behind is seen at once.

Some platforms and network file systems have no locks. There nothing is removed, because nobody can know what is in use.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from r2med.foundation.store.access import give_access

_SOON = 1.0
"""Seconds in which another user's new lock file gets its mode."""

_TRIES = 1_000
"""How often a new file may be swept before it is locked. After that, something else removes it."""


@contextlib.contextmanager
def exclusive(path: Path) -> Iterator[bool]:
    """Hold a lock between threads and processes, and yield True if the lock works.

    If the platform or a network file system has no locks, False is yielded at once, and the caller must find another
    safe way. The lock file exists only while a process holds the lock or waits for it.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, works = _locked(path)
    try:
        yield works
    finally:
        with contextlib.suppress(OSError):
            path.unlink()
        os.close(handle)  # releases the lock


@contextlib.contextmanager
def held(path: Path, make: Callable[[Path], None]) -> Iterator[Path]:
    """Yield a hidden file or folder beside `path` that `make` made. What is there at the end of the block is removed.

    Until then, no other process removes it. Those that dead processes left beside `path` are removed at the beginning.
    """
    tidy(path)
    work, handle = _made(path, make)
    try:
        yield work
    finally:
        with contextlib.ExitStack() as ends:
            if handle is not None:
                ends.callback(os.close, handle)
            ends.callback(_remove, work)  # a signal may stop the next line
            _remove(work)


def tidy(path: Path) -> None:
    """Remove the hidden files and folders of processes that died while they worked beside this path."""
    beginning, folder = _beginning(path), path.parent
    names = folder.iterdir() if folder.is_dir() else ()
    sweep(each for each in names if each.name.startswith(beginning) and each.suffix == ".tmp")


def sweep(paths: Iterable[Path]) -> list[Path]:
    """Remove files and folders that nobody holds any more. Return those that are still held."""
    return [path for path in paths if not _swept(path)]


def is_held(path: Path) -> bool:
    """Return True if a process holds a file or folder. False if nobody can know."""
    try:
        import fcntl

        with _opened(path) as handle:
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)  # two that look must not meet
    except BlockingIOError:
        return True
    except (ImportError, OSError):  # it is gone, or there are no locks
        return False
    return False


def _swept(path: Path) -> bool:
    try:
        with _opened(path) as handle:
            if not _lock(handle, wait=False):
                return False
            _remove(path)
    except FileNotFoundError:
        return True
    except OSError:  # another user's, or a read-only folder
        return False
    return True


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[int]:
    handle = os.open(path, os.O_RDONLY)
    try:
        yield handle
    finally:
        os.close(handle)


def _made(path: Path, make: Callable[[Path], None]) -> tuple[Path, int | None]:
    """Return a new hidden path and the open file that locks it. What is swept before it is locked is made again."""
    for tries_left in reversed(range(_TRIES)):
        work = path.with_name(f"{_beginning(path)}{uuid.uuid4().hex}.tmp")
        try:
            make(work)
            if os.name == "nt":  # pragma: no cover - it has no such locks
                return work, None
            handle = os.open(work, os.O_RDONLY)
        except FileNotFoundError:
            if tries_left:
                continue
            raise
        _lock(handle)
        if _is_same_file(handle, work):
            return work, handle
        os.close(handle)
    raise FileNotFoundError(f"{work}: another process removes it again and again")


def _beginning(path: Path) -> str:
    """Return how the names of hidden files and folders beside a path begin."""
    # File names have at most 255 bytes, and the name of the process is added later.
    name = os.fsencode(path.name)
    return f".{path.name if len(name) <= 180 else hashlib.sha256(name).hexdigest()}."


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def _locked(path: Path) -> tuple[int, bool]:
    until = time.monotonic() + _SOON
    while True:
        try:
            handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        except PermissionError:  # another user of the group made it, and has not given access yet
            if time.monotonic() > until:
                raise
            time.sleep(0.01)
            continue
        try:
            with contextlib.suppress(PermissionError):  # another user of the group made it, and gives access
                give_access(path, handle)
            if not _lock(handle):
                return handle, False
            if _is_same_file(handle, path):
                return handle, True
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)  # the last holder removed the file while we waited, and the lock is another file now


def _lock(handle: int, *, wait: bool = True) -> bool:
    """Lock an open file or folder. Return False if somebody holds it, or if there are no locks."""
    try:
        import fcntl
    except ImportError:  # pragma: no cover - Windows
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:  # held, or a network file system without locks
        return False
    return True


def _is_same_file(handle: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(handle), path.stat())
    except FileNotFoundError:
        return False
