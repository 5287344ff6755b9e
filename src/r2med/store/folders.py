"""Replace a whole folder at once. Readers see either the old folder or the new one."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator
from pathlib import Path

from r2med.core.errors import UserError
from r2med.store.owners import process_name, stale


@contextlib.contextmanager
def replaced(folder: Path, mark: str, noun: str) -> Iterator[Path]:
    """Yield a new, empty folder that replaces `folder` at the end of the block. If the block fails, nothing changes.

    Raises UserError if the folder exists and was not written in this way. The file `mark` identifies such a folder.
    """
    folder = folder.resolve()
    if folder.exists() and not (folder / mark).is_file() and (not folder.is_dir() or any(folder.iterdir())):
        raise UserError(f"{folder} is not {noun} of r2med, so it is not overwritten: choose another folder with -o")
    folder.parent.mkdir(parents=True, exist_ok=True)
    hidden = f".{folder.name}."
    new = folder.with_name(f"{hidden}{process_name()}.tmp")
    old = folder.with_name(f"{hidden}{process_name()}.old.tmp")
    try:
        new.mkdir()
        yield new
        _swap(new, folder, old)
    finally:
        for rest in (new, old, *stale(folder.parent, hidden)):
            shutil.rmtree(rest, ignore_errors=True)


def _swap(new: Path, folder: Path, old: Path) -> None:
    if folder.exists():
        folder.rename(old)
    try:
        new.rename(folder)
    except BaseException:
        with contextlib.suppress(OSError):
            old.rename(folder)
        raise
