"""Labels that name the datasets of stored data, so that all data of a dataset can be found and removed."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from r2med.foundation.core.errors import UserError
from r2med.foundation.store.files import digest, write_atomically

LABEL_PREFIX = "dataset-"
"""Prefix of the files in an artefact that name the datasets which use an artefact."""


@dataclass(frozen=True)
class Labels:
    """What stored data belongs to. Keys do not depend on it."""

    datasets: tuple[str, ...] = ()
    """Labels of all datasets, sorted."""
    model: str = ""


def dataset_label(name: str, folder: Path | None) -> str:
    """Return the label of a dataset: its name and the folder that a user named, because two may have one name."""
    return f"{name} ({folder.resolve()})" if folder else name


def labels_of(name: str, folder: Path | None, labels: Iterable[str]) -> list[str]:
    """Return those labels that mean the dataset of this name; with a folder, only the dataset in that folder.

    A label without a folder may mean a dataset in any folder: packs have such labels.
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


def add_labels(folder: Path, datasets: Iterable[str]) -> None:
    """Record the datasets that use an artefact, in one file each."""
    for name in datasets:
        label = folder / f"{LABEL_PREFIX}{digest(name)}"
        if not label.exists():
            write_atomically(label, os.fsencode(name), private=True)  # it may name a folder that is not UTF-8


def artefact_datasets(folder: Path) -> list[str]:
    """Return the names of all datasets that an artefact was made for or used by."""
    return sorted(os.fsdecode(label.read_bytes()) for label in folder.glob(f"{LABEL_PREFIX}{'[0-9a-f]' * 32}"))
