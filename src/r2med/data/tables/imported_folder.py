"""The folder that an import wrote. A mark identifies it, and a newer import replaces all of it or nothing."""

from __future__ import annotations

import hashlib
import json
import logging
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from r2med.foundation.core.errors import UserError
from r2med.foundation.store import Store
from r2med.foundation.store.dataset_labels import labels_of
from r2med.foundation.store.files import sha256, swap, write_atomically
from r2med.foundation.store.holdings import clear_replaced, dataset_labels

log = logging.getLogger("r2med")

MARK_FILE = ".r2med-import.json"
"""The file that lists the files of an import with their digests."""


def write_mark(folder: Path) -> None:
    """Record which files of a new folder an import wrote."""
    files = {path.name: sha256(path) for path in sorted(folder.iterdir())}
    write_atomically(folder / MARK_FILE, json.dumps({"files": files}).encode())


def require_imported(folder: Path) -> list[str]:
    """Return the names of the files that an import wrote into a folder; empty if the folder does not exist.

    Raises UserError if no import made the folder, or if its files have been changed since.
    """
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return []
    try:
        files: dict[str, str] = dict(json.loads((folder / MARK_FILE).read_bytes())["files"])
    except (OSError, ValueError, KeyError, TypeError):
        raise UserError(
            f"{folder} was not made by r2med data import, and is not replaced: name another folder"
        ) from None
    for name, expected in files.items():
        if not (folder / name).is_file() or sha256(folder / name) != expected:
            raise UserError(
                f"{folder / name} was changed since it was imported, and is not replaced: import into another folder"
            )
    return list(files)


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
