"""The folder that an import wrote. A mark identifies it, and a newer import replaces all of it or nothing."""

from __future__ import annotations

import hashlib
import logging
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from r2med.data.tables.import_choices import NO_CHOICES, ImportChoices
from r2med.foundation.core.errors import UserError
from r2med.foundation.store import Store
from r2med.foundation.store.dataset_labels import labels_of
from r2med.foundation.store.files import sha256, swap, write_json
from r2med.foundation.store.holdings import clear_replaced, dataset_labels

log = logging.getLogger("r2med")

MARK_FILE = ".r2med-import.json"
"""The file that lists the files of an import with their digests, and its choices."""


class ImportMark(BaseModel):
    """What an import notes about its folder: its files with their digests, and its choices."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    files: Mapping[str, str] = {}
    choices: ImportChoices = NO_CHOICES


def write_mark(folder: Path, choices: ImportChoices) -> None:
    """Record which files of a new folder an import wrote, and its choices."""
    files = {path.name: sha256(path) for path in sorted(folder.iterdir())}
    mark = ImportMark(files=files, choices=choices).model_dump(mode="json", exclude_defaults=True)
    write_json(folder / MARK_FILE, mark)


def require_imported(folder: Path) -> ImportMark | None:
    """Return the mark of a folder that an import wrote; None if the folder does not exist or is empty.

    Raises UserError if no import made the folder, or if its files have been changed since.
    """
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return None
    try:
        mark = ImportMark.model_validate_json((folder / MARK_FILE).read_bytes())
    except (OSError, ValueError):
        raise UserError(
            f"{folder} was not made by r2med data import, and is not replaced: name another folder"
        ) from None
    for name, expected in mark.files.items():
        if not (folder / name).is_file() or sha256(folder / name) != expected:
            raise UserError(
                f"{folder / name} was changed since it was imported, and is not replaced: import into another folder"
            )
    return mark


def replace_folder(folder: Path, new: Path, imported: Iterable[str]) -> None:
    """Replace a folder that an import wrote by a new one. Other files in it, such as a card, are kept.

    Raises UserError if the new folder lacks a file that the old one has.
    """
    written = {MARK_FILE, *imported}
    if lost := sorted(name for name in written if (folder / name).exists() and not (new / name).exists()):
        raise UserError(
            f"{folder} has {', '.join(lost)}, but the files named now hold nothing for it: name all files that the "
            "dataset is made of"
        )
    for path in folder.iterdir():
        if path.name in written:
            continue
        if path.is_dir() and not path.is_symlink():
            shutil.copytree(path, new / path.name, symlinks=True)
        else:
            shutil.copy2(path, new / path.name, follow_symlinks=False)
    swap(new, folder)


@contextmanager
def removed_texts(folder: Path, store: Store) -> Iterator[None]:
    """If the block removes or changes a row in the files of a folder, remove the texts of the folder from the store."""
    before = _row_digests(folder)
    yield
    if before - _row_digests(folder):
        labels = labels_of(folder.resolve().name, folder, dataset_labels(store))
        clear_replaced(store, labels)
        log.info("rows were removed or changed, so the texts of the earlier import were removed from the cache")


def _row_digests(folder: Path) -> set[bytes]:
    """Return a digest of every row with a text."""
    digests: set[bytes] = set()
    for name in ("corpus.jsonl", "query.jsonl"):
        if (folder / name).is_file():
            with (folder / name).open("rb") as rows:
                digests.update(hashlib.sha256(row).digest()[:16] for row in rows)
    return digests
