"""Check all contents of a store byte by byte. Only this finds damage that leaves the times of a file unchanged."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from r2med.store.artefacts import MANIFEST, Artefact, DamagedError, Store
from r2med.store.rows import count_rows


@dataclass(frozen=True)
class Verified:
    """One artefact or database of a store, and its fault. The fault is empty if the content is sound."""

    kind: str
    path: Path
    size: int
    fault: str


def verify_store(store: Store, mend: bool = False) -> Iterator[Verified]:
    """Yield every artefact and database with its fault.

    With `mend`, damaged artefacts are removed, and made again when they are needed. Damaged rows of a database need no
    mending, because they are treated as missing.
    """
    for manifest in sorted(store.root.glob(f"*/*/{MANIFEST}")):
        path = manifest.parent
        if "~" in path.name:  # work in progress
            continue
        fault = _artefact_fault(path)
        size = size_of(path)
        if fault and mend:
            store.discard(path.parent.name, path.name)
        yield Verified(path.parent.name, path, size, fault)
    for path in sorted(store.root.rglob("*.sqlite")):
        yield Verified("rows", path, size_of(path), _database_fault(path))


def _artefact_fault(path: Path) -> str:
    try:
        Artefact(path, {}).verify()
    except (DamagedError, OSError) as error:
        return str(error)
    return ""


def _database_fault(path: Path) -> str:
    try:
        sound, damaged = count_rows(path)
    except sqlite3.Error as error:
        return str(error)
    return f"{damaged:,} of {sound + damaged:,} rows are damaged" if damaged else ""


def size_of(path: Path) -> int:
    """Return the size in bytes of a file, or of all files in a folder."""
    size = 0
    for file in path.iterdir() if path.is_dir() else [path]:
        with contextlib.suppress(OSError):
            size += file.stat().st_size
    return size
