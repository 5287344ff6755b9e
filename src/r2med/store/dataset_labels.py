"""Labels of what is kept: which datasets it was made of, so that all of it can be found and removed again."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from r2med.store.files import digest, write_atomically

LABEL = "dataset-"
"""How files beside the manifest begin that hold the name of a dataset which uses an artefact."""

_about: ContextVar[dict[str, str]] = ContextVar("r2med_about", default={})  # noqa: B039 - it is never changed
_datasets: ContextVar[tuple[str, ...]] = ContextVar("r2med_datasets", default=())


@contextlib.contextmanager
def about(*, alone: bool = False, **labels: str) -> Iterator[None]:
    """Label what is made or used inside, as `dataset="MedQA-Diag", model="bge"`: keys do not tell what they are of.

    Datasets add up: what is made inside two of these blocks is of both. With `alone` only the inner one counts.
    """
    before = () if alone else _datasets.get()
    token = _about.set({**_about.get(), **labels})
    names = _datasets.set(tuple(sorted({*before, *filter(None, [labels.get("dataset")])})))
    try:
        yield
    finally:
        _datasets.reset(names)
        _about.reset(token)


def current_labels() -> dict[str, str]:
    """Return the labels of what is made now; of several datasets, the innermost."""
    return _about.get()


def current_datasets() -> tuple[str, ...]:
    """Return the names of all datasets that what is made now belongs to."""
    return _datasets.get()


def add_labels(folder: Path, meta: dict[str, Any]) -> None:
    """Note the datasets that an artefact serves now, beside the one that it was made for: one file for each."""
    for name in current_datasets():
        label = folder / f"{LABEL}{digest(name)}"
        if meta.get("about", {}).get("dataset") != name and not label.exists():
            write_atomically(label, name.encode(), private=True)


def artefact_datasets(folder: Path, meta: dict[str, Any]) -> list[str]:
    """Return the names of all datasets that an artefact was made for or served."""
    names = {label.read_bytes().decode() for label in folder.glob(f"{LABEL}{'[0-9a-f]' * 32}")}
    return sorted({*names, *filter(None, [meta.get("about", {}).get("dataset")])})
