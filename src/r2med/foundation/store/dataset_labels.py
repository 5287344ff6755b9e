"""Labels that name the datasets of stored data, so that all data of a dataset can be found and removed."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from r2med.foundation.core.errors import UserError
from r2med.foundation.store.files import digest, write_atomically

LABEL_PREFIX = "dataset-"
"""Prefix of the files beside the manifest that name the datasets which use an artefact."""

_about: ContextVar[dict[str, str]] = ContextVar("r2med_about", default={})  # noqa: B039 - it is never changed
_datasets: ContextVar[tuple[str, ...]] = ContextVar("r2med_datasets", default=())


def dataset_label(name: str, folder: Path | None) -> str:
    """Return the label of a dataset: its name and the folder that a user named, because two may have one name."""
    return f"{name} ({folder.resolve()})" if folder else name


def labels_of(name: str, folder: Path | None, labels: Iterable[str]) -> list[str]:
    """Return those labels that mean the dataset of this name; with a folder, only the dataset in that folder.

    A label without a folder may mean a dataset in any folder: packs have such labels, and so had earlier versions.
    Raises UserError if several folders have a dataset of this name.
    """
    labels = sorted(labels)
    if folder is not None:
        end = f" ({folder.resolve()})"
        inside = [label for label in labels if label.endswith(end)]
        names = {name, *(label.removesuffix(end) for label in inside)}
        return [*inside, *(label for label in labels if label in names)]
    folders = [place for label in labels if (place := _folder_in(label, name))]
    if len(folders) > 1:
        raise UserError(f"{len(folders)} folders have a dataset {name}: name one of them: {', '.join(folders)}")
    return [label for label in labels if label == name or _folder_in(label, name)]


def name_in(label: str) -> str:
    """Return the name in a label, without the folder."""
    name, _, folder = label.partition(" (/")
    return name if folder.endswith(")") else label


def folder_in(label: str) -> Path | None:
    """Return the folder in a label; None if it has none."""
    name = name_in(label)
    return Path(label[len(name) + 2 : -1]) if name != label else None


def _folder_in(label: str, name: str) -> str:
    """Return the folder in a label if it is that of a dataset of this name; otherwise empty."""
    inside = label.removeprefix(f"{name} (").removesuffix(")")
    return inside if label == f"{name} ({inside})" and Path(inside).is_absolute() else ""


@contextlib.contextmanager
def about(*, alone: bool = False, **labels: str) -> Iterator[None]:
    """Label all data made or used inside the block, as `dataset="MedQA-Diag", model="bge"`. Keys do not change.

    Data made inside two nested blocks belongs to the datasets of both. With `alone`, only the inner block counts.
    """
    before = () if alone else _datasets.get()
    token = _about.set({**_about.get(), **labels})
    names = _datasets.set(tuple(sorted({*before, *filter(None, [labels.get("dataset")])})))
    try:
        yield
    finally:
        _datasets.reset(names)
        _about.reset(token)


@contextlib.contextmanager
def about_all(datasets: Iterable[str]) -> Iterator[None]:
    """Label all data made or used inside the block with each of these datasets."""
    with contextlib.ExitStack() as labels:
        for dataset in datasets:
            labels.enter_context(about(dataset=dataset))
        yield


def current_labels() -> dict[str, str]:
    """Return the labels for data made now. In nested blocks, the dataset is that of the innermost block."""
    return _about.get()


def current_datasets() -> tuple[str, ...]:
    """Return the names of all datasets that data made now belongs to."""
    return _datasets.get()


def add_labels(folder: Path, meta: dict[str, Any]) -> None:
    """Record the datasets that use an artefact now, in addition to the first one, in one file each."""
    for name in current_datasets():
        label = folder / f"{LABEL_PREFIX}{digest(name)}"
        if meta.get("about", {}).get("dataset") != name and not label.exists():
            write_atomically(label, name.encode(), private=True)


def artefact_datasets(folder: Path, meta: dict[str, Any]) -> list[str]:
    """Return the names of all datasets that an artefact was made for or used by."""
    names = {label.read_bytes().decode() for label in folder.glob(f"{LABEL_PREFIX}{'[0-9a-f]' * 32}")}
    return sorted({*names, *filter(None, [meta.get("about", {}).get("dataset")])})
