"""Digests of files that results depend on, such as weights. A large file is read once for each of its states."""

from __future__ import annotations

import contextlib
import hashlib
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import lru_cache
from pathlib import Path

from r2med.foundation.store.artefacts import Store
from r2med.foundation.store.files import digest, file_state, sha256

MIN_REMEMBERED_BYTES = 1 << 20
"""Size from which a digest is remembered. Reading a smaller file takes as long as reading the note."""

SETTLED_SECONDS = 2.0
"""A file that changed a shorter time ago is read again the next time. Another change may leave the same times."""


def file_digest(path: Path, store: Store) -> str:
    """Return the SHA-256 of a whole file. It is read again only if its path, size, times or inode changed."""
    state = file_state(path)
    if state[0] < MIN_REMEMBERED_BYTES or abs(time.time() - state[2] / 1e9) < SETTLED_SECONDS:
        return sha256(path)
    note = digest(["file digest", str(path.resolve()), *state])
    store = store.about(alone=True)  # weights belong to no dataset
    if known := store.recall(note):
        return str(known["sha256"])
    found = _read_once(path.resolve(), *state)
    if file_state(path) == state:
        with contextlib.suppress(OSError):  # a read-only store is allowed: the file is only read again next time
            store.remember(note, {"sha256": found})
    return found


@lru_cache(maxsize=256)  # of all stores of this process
def _read_once(path: Path, *_: int) -> str:
    return sha256(path)


def files_digest(files: Iterable[Path], folder: Path, store: Store) -> str:
    """Return 40 hex digits for the names and the whole contents of files inside a folder."""
    paths = sorted(files)
    with ThreadPoolExecutor() as threads:  # hashing releases the interpreter's lock
        found = [threads.submit(copy_context().run, file_digest, path, store) for path in paths]
        listed = [
            f"{path.relative_to(folder).as_posix()}\0{each.result()}\n" for path, each in zip(paths, found, strict=True)
        ]
    return hashlib.sha256("".join(listed).encode("utf-8", "surrogateescape")).hexdigest()[:40]


def path_digest(folder: Path, store: Store, ignored: tuple[str, ...] = ()) -> str:
    """Return 40 hex digits for a file, or for a folder without hidden files and files with an `ignored` ending."""
    if folder.is_file():
        return file_digest(folder, store)[:40]
    files = (path for path in folder.rglob("*") if path.is_file() and path.suffix.lower() not in ignored)
    return files_digest((path for path in files if not _is_hidden(path.relative_to(folder))), folder, store)


def _is_hidden(path: Path) -> bool:
    return any(part.startswith(".") or part == "__pycache__" for part in path.parts)
