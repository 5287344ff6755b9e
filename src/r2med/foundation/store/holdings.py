"""List, clear and check the contents of a store, grouped by dataset, model or LLM."""

from __future__ import annotations

import contextlib
import json
import shutil
import sqlite3
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from r2med.foundation.store.artefacts import Artefact, Store
from r2med.foundation.store.database import recovery
from r2med.foundation.store.dataset_labels import artefact_datasets
from r2med.foundation.store.manifest import MANIFEST, DamagedError
from r2med.foundation.store.memo import MEMOS, memo_rows
from r2med.foundation.store.owners import is_owner, lives_here, place_of
from r2med.foundation.store.rows import count_rows

DOCUMENT_VECTORS = ("vectors", "token-vectors", "term-weights")
"""Folders of the store with vectors of documents, which contain no text."""


@dataclass(frozen=True)
class Holding:
    """All artefacts of one kind with the same datasets and model."""

    kind: str
    datasets: tuple[str, ...]
    model: str
    paths: tuple[Path, ...]
    size: int

    @property
    def dataset(self) -> str:
        """The names of the datasets, for display."""
        return ", ".join(self.datasets)

    def is_about(self, dataset: str = "", model: str = "") -> bool:
        """Return True if the holding has this dataset and this model. An empty name matches all."""
        return (not dataset or dataset in self.datasets) and model in ("", self.model)


def holdings(store: Store) -> list[Holding]:
    """Return the contents of a store, sorted by kind. Caches of scores and embeddings belong to a model."""
    groups: dict[tuple[str, tuple[str, ...], str], list[Path]] = {}
    for kind, datasets, model, path in sorted(_entries(store)):
        groups.setdefault((kind, datasets, model), []).append(path)
    return [Holding(*key, tuple(paths), sum(map(size_of, paths))) for key, paths in groups.items()]


def _entries(store: Store) -> Iterator[tuple[str, tuple[str, ...], str, Path]]:
    for manifest in store.root.glob(f"*/*/{MANIFEST}"):
        path = manifest.parent
        if "~" in path.name:  # work in progress
            continue
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError, AttributeError):  # `verify` reports damage
            meta = json.loads(manifest.read_bytes())["meta"]
            model = meta.get("about", {}).get("model", "")
            yield path.parent.name, tuple(artefact_datasets(path, meta)), model, path
    for path in store.root.glob("*/*.sqlite"):
        if path.parent.name != "journal":
            yield path.parent.name, (), path.stem, path


def dataset_labels(store: Store) -> list[str]:
    """Return the labels of all datasets that a store holds anything of."""
    labels = {label for _, datasets, _, _ in _entries(store) for label in datasets}
    for path in _row_files(store):
        with memo_rows(path) as rows:
            labels |= {*rows.datasets()}
    return sorted(labels)


def same_corpus(store: Store, labels: Iterable[str]) -> list[str]:
    """Return the labels of all datasets with the same documents as these, which share their artefacts."""
    own = {*labels}
    names = {*own}
    for kind, datasets, _, _ in _entries(store):
        names |= {*datasets} if kind == "corpus" and own & {*datasets} else set()
    return sorted(names)


def clear(store: Store, holding: Holding) -> None:
    """Remove all artefacts of a holding. They are made again when they are needed."""
    for path in holding.paths:
        if path.is_dir():
            store.discard(path.parent.name, path.name)
        else:
            for part in (path, *path.parent.glob(f"{path.name}-*")):  # SQLite's journals beside it
                part.unlink(missing_ok=True)


def rows_about(store: Store, datasets: Sequence[str]) -> dict[Path, list[bytes]]:
    """Return the keys of the answers in memos about some datasets, by the file that holds them."""
    found = {}
    for path in _row_files(store):
        with memo_rows(path) as rows:
            if keys := {key for dataset in datasets for key in rows.keys_about(dataset)}:
                found[path] = sorted(keys)
    return found


def clear_replaced(store: Store, datasets: Sequence[str]) -> None:
    """Remove the texts of some datasets. Vectors and scores, which hold no text, stay for the texts that are left."""
    for holding in holdings(store):
        if holding.kind not in DOCUMENT_VECTORS and {*datasets} & {*holding.datasets}:
            clear(store, holding)
    clear_texts(store, datasets, ["journal", "remote"])


def clear_texts(store: Store, datasets: Sequence[str], folders: Collection[str] = tuple(MEMOS)) -> None:
    """Remove the rows and notes of some datasets."""
    for path, keys in rows_about(store, datasets).items():
        if path.parent.name in folders:
            with memo_rows(path) as rows:
                rows.remove(keys)
    for dataset in datasets:
        for key in store.notes_about(dataset):
            store.forget(key)


def unfinished(store: Store) -> list[Path]:
    """Return the work in progress in a store, of running and of dead processes on any machine."""
    return sorted(path for path in store.root.glob("*/*") if is_owner(_owner(path)))


def clear_unfinished(store: Store) -> list[str]:
    """Remove work in progress, unless its process runs on this machine. Return the running processes, for messages.

    Processes of other machines and containers cannot be seen, so they are treated as dead.
    """
    living = []
    for path in unfinished(store):
        if lives_here(_owner(path)):
            living.append(place_of(_owner(path)))
        elif path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)
    return sorted(set(living))


def _owner(path: Path) -> str:
    return path.name.removesuffix(".tmp").rpartition(".")[2]


def _row_files(store: Store) -> list[Path]:
    return [path for folder in MEMOS for path in sorted((store.root / folder).glob("*.sqlite"))]


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
        return f"{error}. {recovery(path)}"
    return f"{damaged:,} of {sound + damaged:,} rows are damaged" if damaged else ""


def size_of(path: Path) -> int:
    """Return the size in bytes of a file, or of all files in a folder."""
    size = 0
    for file in path.iterdir() if path.is_dir() else [path]:
        with contextlib.suppress(OSError):
            size += file.stat().st_size
    return size
