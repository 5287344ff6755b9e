"""Write the site: files of assets and of data, in a folder that is either the old site or the new one."""

from __future__ import annotations

import contextlib
import json
import shutil
from collections.abc import Iterable, Iterator
from importlib import resources
from pathlib import Path
from typing import Any

from r2med.errors import UserError
from r2med.store.owners import process_name, stale
from r2med.version import __version__

MARK = "board.json"
"""The file by which a folder is known as a board, which may be replaced by a newer one."""


def write_site(folder: Path, files: Iterable[tuple[str, Any]]) -> None:
    """Write the assets and the data files (name, value), and put them in the place of the board that was there.

    Raises UserError if the folder holds anything but a board.
    """
    folder = folder.resolve()
    if folder.exists() and not (folder / MARK).is_file() and (not folder.is_dir() or any(folder.iterdir())):
        raise UserError(f"{folder} is not a board of r2med, and is not overwritten: choose another folder with -o")
    folder.parent.mkdir(parents=True, exist_ok=True)
    hidden = f".{folder.name}."
    new = folder.with_name(f"{hidden}{process_name()}.tmp")
    old = folder.with_name(f"{hidden}{process_name()}.old.tmp")
    try:
        new.mkdir()
        for name, content in _contents(files):
            path = new / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
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


def _contents(files: Iterable[tuple[str, Any]]) -> Iterator[tuple[str, bytes]]:
    yield MARK, json.dumps({"made_by": "r2med board", "version": __version__}).encode() + b"\n"
    for asset in sorted((resources.files("r2med.board") / "assets").iterdir(), key=lambda file: file.name):
        yield (asset.name if asset.name == "index.html" else f"assets/{asset.name}"), asset.read_bytes()
    for name, value in files:
        yield f"data/{name}.js", data_script(name, value)


def data_script(name: str, value: Any) -> bytes:
    """Return a classic script that hands a value to the page: JSON in a string, so that no key of it means anything.

    A lone surrogate is written as the escape that JavaScript knows; so are the two line ends that JSON has and older
    JavaScript had not.
    """
    content = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    content = json.dumps(content, ensure_ascii=False).replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
    return f"board.data({json.dumps(name)}, {content});\n".encode(errors="backslashreplace")
