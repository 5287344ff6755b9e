"""Share a folder with other processes and users: locks, work in progress, and who may read what is stored.

The kernel frees a lock when its process ends, so what a dead process left behind is seen at once. Some network file
systems have no locks. There no process waits, and none removes the work of others, which may still be in use.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import shutil
import stat
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

MAX_TRIES = 1000
"""Number of times that a file or folder is made which others remove before it is locked. Some file systems never keep
it, such as /proc."""
ACCESS_SECONDS = 1.0
"""Seconds in which another user's new lock file gets its mode."""


def private_folder(folder: Path) -> None:
    """Make a folder and its missing parents, readable only by their owner, or by the group that shares the parent."""
    for missing in reversed([path for path in (folder, *folder.parents) if not path.exists()]):
        # Another user of the group must never find it with a mode that the umask gave it.
        new = missing.with_name(f".{uuid.uuid4().hex}.tmp")
        new.mkdir(mode=0o700)
        try:
            give_access(new)
            with contextlib.suppress(OSError):  # another process made it, and put something into it
                new.rename(missing)
        finally:
            with contextlib.suppress(FileNotFoundError):
                new.rmdir()


def give_access(path: Path) -> None:
    """Let those use a file or folder of this process who may use the folder that it is in: its owner, or a group.

    A folder in which everybody may write, as /tmp, shares nothing.
    """
    parent = path.parent.stat()
    is_shared = bool(parent.st_mode & stat.S_IWGRP) and not parent.st_mode & stat.S_IWOTH
    if is_shared:
        with contextlib.suppress(PermissionError):  # this user is not in that group
            os.chown(path, -1, parent.st_gid)
    if path.is_dir():
        # The files in a folder with this bit get its group, also those that a library writes.
        path.chmod(0o770 | stat.S_ISGID if is_shared else 0o700)
    else:
        path.chmod(0o660 if is_shared else 0o600)


@contextlib.contextmanager
def exclusive(path: Path) -> Iterator[None]:
    """Hold a lock between threads and processes. Its file exists only while a process holds it or waits for it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle = _locked(path, _open_lock_file)
    try:
        yield
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
    work = path.with_name(f"{_beginning(path)}{uuid.uuid4().hex}.tmp")

    def open_new(path: Path) -> int:
        make(path)
        return _opened(path)

    try:
        handle = _locked(work, open_new)
    except BaseException:  # such as Ctrl-C while it is made
        _remove(work)
        raise
    try:
        yield work
    finally:
        with contextlib.ExitStack() as ends:
            ends.callback(os.close, handle)
            ends.callback(_remove, work)  # a signal may stop the next line
            _remove(work)


def tidy(path: Path) -> None:
    """Remove the hidden files and folders of processes that died while they worked beside this path."""
    beginning, folder = _beginning(path), path.parent
    for hidden in folder.iterdir() if folder.is_dir() else ():
        if hidden.name.startswith(beginning) and hidden.suffix == ".tmp":
            is_swept(hidden)


def is_swept(path: Path) -> bool:
    """Remove a file or folder that no process holds any more, and return True if it is gone."""
    try:
        handle = _opened(path)
    except FileNotFoundError:
        return True
    except OSError:  # another user's
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        _remove(path)
    except OSError:  # it is held, or there are no locks, or the folder is read-only
        return False
    finally:
        os.close(handle)
    return True


def _locked(path: Path, open_: Callable[[Path], int]) -> int:
    """Return the open file that locks a path. What is removed before it is locked is made again."""
    tries = 0
    while True:
        tries += 1
        try:
            handle = open_(path)
        except FileNotFoundError:
            if tries == MAX_TRIES or not path.parent.is_dir():
                raise
            continue
        try:
            with contextlib.suppress(OSError):  # a file system without locks
                fcntl.flock(handle, fcntl.LOCK_EX)
            if _is_same_file(handle, path):
                return handle
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)


def _open_lock_file(path: Path) -> int:
    until = time.monotonic() + ACCESS_SECONDS
    while True:
        try:
            handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
            break
        except PermissionError:  # another user of the group made it, and has not given access yet
            if time.monotonic() > until:
                raise
            time.sleep(0.01)
    with contextlib.suppress(OSError):  # another user of the group made it, and gives access
        give_access(path)
    return handle


def _is_same_file(handle: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(handle), path.stat())
    except FileNotFoundError:
        return False


def _opened(path: Path) -> int:
    # A folder can only be read. On NFS, only a file that may be written can be locked.
    return os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR)


def _beginning(path: Path) -> str:
    """Return how the names of hidden files and folders beside a path begin."""
    # File names have at most 255 bytes, and more is added to this.
    name = os.fsencode(path.name)
    return f".{path.name if len(name) <= 180 else hashlib.sha256(name).hexdigest()}."


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
