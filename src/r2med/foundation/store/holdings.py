"""List and clear the contents of a store, grouped by dataset, model or LLM."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from r2med.foundation.store.artefacts import META, SCRATCH, Store
from r2med.foundation.store.dataset_labels import artefact_datasets
from r2med.foundation.store.memo import MEMOS, memo_rows
from r2med.foundation.store.sharing import is_swept

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
    for file in store.root.glob(f"*/*/{META}"):
        path = file.parent
        if path.parent.name == SCRATCH:
            continue
        with contextlib.suppress(FileNotFoundError):  # another process has removed it
            meta = json.loads(file.read_bytes())
            model = meta.get("about", {}).get("model", "")
            yield path.parent.name, tuple(artefact_datasets(path)), model, path
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
    """Return the work in progress in a store, of running and of dead processes."""
    return sorted(path for path in store.root.glob("*/*") if path.suffix == ".tmp")


def clear_unfinished(store: Store) -> list[Path]:
    """Remove the work in progress of dead processes. Return that of running ones."""
    return [path for path in unfinished(store) if not is_swept(path)]


def _row_files(store: Store) -> list[Path]:
    return [path for folder in MEMOS for path in sorted((store.root / folder).glob("*.sqlite"))]


def size_of(path: Path) -> int:
    """Return the size in bytes of a file, or of all files in a folder."""
    size = 0
    for file in path.iterdir() if path.is_dir() else [path]:
        with contextlib.suppress(OSError):
            size += file.stat().st_size
    return size
