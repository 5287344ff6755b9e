"""Find the records of a dataset that have texts beside them, so that these can be deleted."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

from r2med.foundation.store.files import json_object

TEXT_FILES = ("generated", "traces", "answers", "conversations")
"""Fields of records that name a file of texts, also of older formats."""


def files_with_texts(folder: Path, datasets: Collection[str], others: Collection[str] = ()) -> list[Path]:
    """Return the files of texts below a folder of results, the records that name them, and the runs of these.

    Records about the corpora of `others`, which are fingerprints, are left out.
    """
    return sorted({file for path in folder.rglob("*.json") for file in _files(path, datasets, others)})


def has_records(folder: Path, datasets: Collection[str], others: Collection[str] = ()) -> bool:
    """Return True if a folder has a record of these datasets. Those about the corpora of `others` do not count."""
    return any(_is_about(json_object(path).get("dataset"), datasets, others) for path in folder.rglob("*.json"))


def _is_about(facts: object, datasets: Collection[str], others: Collection[str]) -> bool:
    """Return True if what a record states about its dataset is about one of these, not about another corpus."""
    if not isinstance(facts, dict) or not is_of(facts.get("name"), datasets):
        return False
    return str(facts.get("corpus_fingerprint")) not in others


def is_of(name: object, datasets: Collection[str]) -> bool:
    """Return True if a name in a record or board is that of a dataset, with or without overlays."""
    return isinstance(name, str) and any(name == each or name.startswith(f"{each}+") for each in datasets)


def _files(path: Path, datasets: Collection[str], others: Collection[str]) -> Iterator[Path]:
    """Yield a record of one of these datasets and the files beside it, if one of them has texts."""
    record = json_object(path)
    if not _is_about(record.get("dataset"), datasets, others):
        return
    beside = {name: _beside(path, record.get(name)) for name in ("run", *TEXT_FILES)}
    if any(beside[name] for name in TEXT_FILES):
        yield path
        yield from (file for file in beside.values() if file)


def _beside(path: Path, facts: Any) -> Path | None:
    """Return a file that a record names. Only its last part counts: a record of others may name any path."""
    if isinstance(facts, dict) and isinstance(facts.get("file"), dict):  # the field "answers" has more than its file
        facts = facts["file"]
    if not isinstance(facts, dict) or not isinstance(facts.get("file"), str):
        return None
    file = path.with_name(Path(facts["file"]).name or path.name)
    return file if file.is_file() else None
