"""Replace the files of an earlier board in a folder, and leave all other files unchanged."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterator, Mapping
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path, PurePosixPath

from r2med.foundation.core.errors import UserError
from r2med.foundation.core.version import __version__
from r2med.foundation.store.files import scratch_beside, sha256, write_atomically

MANIFEST = "board.json"
"""The file that lists the files of the board with their SHA-256."""

_MADE_BY = "r2med board"
FILE_NAMES = re.compile(r"index\.html|assets/[\w-]+\.\w+|data/(?:[\w-]+/)*[\w-]+\.js", re.ASCII)
"""Names of files that a board writes. A list that names others was not written by this program."""

Digests = Mapping[str, str]

_DATA_FILE = b"pages.data("
"""How data files begin."""


@contextlib.contextmanager
def updated_board(folder: Path, *, private: bool) -> Iterator[Path]:
    """Yield an empty folder. At the end of the block its files become the board in `folder`, unless the block fails.

    If the folder of a private board is new, only its owner can read it. Raises UserError if `folder` contains files but
    no board, or if someone changed a file of the board.
    """
    folder = folder.resolve()
    written_files(folder)  # raises now, and not after hours of work
    with scratch_beside(folder, private=private) as new:
        yield new
        _put(new, folder)


def written_files(folder: Path) -> dict[str, str]:
    """Return the digests of the files that an earlier board wrote into a folder, by name.

    Raises UserError if the folder contains files but no board, or if one of these files was changed.
    """
    if not folder.exists():
        return {}
    if not folder.is_dir() or (any(folder.iterdir()) and not (folder / MANIFEST).is_file()):
        raise UserError(f"{folder} is not a board of r2med, so it is not overwritten: choose another folder with -o")
    if not (folder / MANIFEST).is_file():
        return {}
    allowed = _listed(folder)
    found = {name: sha256(folder / name) for name in allowed if (folder / name).is_file()}
    for name, digest in found.items():
        if digest not in allowed[name]:
            raise _foreign(folder / name, "was changed after the board was made")
        if not _looks_like_ours(folder, name):
            raise _foreign(folder / name, "is listed as a file of a board, but a board has no such file")
    return found


def _listed(folder: Path) -> dict[str, set[str]]:
    """Return the possible digests of each listed file.

    If writing was stopped in the middle, the list has the files of the old and the new board.
    """
    try:
        content = json.loads((folder / MANIFEST).read_bytes())
        made_by, lists = content["made_by"], [content["files"], content.get("replaces", {})]
        listed = [pair for each in lists for pair in each.items()]
    except (ValueError, TypeError, KeyError, AttributeError):
        raise _foreign(folder / MANIFEST, "is not the list of files of a board") from None
    if made_by != _MADE_BY or not all(FILE_NAMES.fullmatch(name) for name, _ in listed):
        raise _foreign(folder / MANIFEST, "is not the list of files of a board")
    return {name: {each[name] for each in lists if name in each} for name, _ in listed}


def _looks_like_ours(folder: Path, name: str) -> bool:
    """Return True if a listed file can be one of a board. A list that somebody else wrote could name any file."""
    path = folder / name
    if path.resolve() != folder.resolve() / name:  # a link to a file elsewhere
        return False
    if not name.startswith("assets/"):
        return _is_of_board(path)
    return path.read_bytes().startswith((b"/* ", b"<svg "))  # as all scripts, styles and pictures of a board begin


def asset_files() -> list[Traversable]:
    """Return the scripts, styles and pages of a board, sorted by name, including those that all pages share."""
    rooms = (resources.files(room) / "assets" for room in ("r2med.publication.site", "r2med.foundation.web"))
    return sorted((file for room in rooms for file in room.iterdir()), key=lambda file: file.name)


def _is_of_board(path: Path) -> bool:
    start = path.read_bytes()[:2_000]
    return start.startswith(_DATA_FILE) or (path.name == "index.html" and b"<title>r2med board</title>" in start)


def _put(new: Path, folder: Path) -> None:
    """Move new files into a folder and remove those of the old board. Raises UserError for files of others."""
    made = {path.relative_to(new).as_posix(): sha256(path) for path in sorted(new.rglob("*")) if path.is_file()}
    if not folder.exists():
        _list(new, made)
        new.rename(folder)
        return
    old = written_files(folder)
    for name in sorted(made.keys() - old.keys()):
        for path in (folder / name, *(folder / parent for parent in _parents(name))):
            if path.exists() and (path == folder / name or not path.is_dir()):
                raise _foreign(path, "was not written by the board")
    _list(folder, made, old)  # if the move is stopped, the next board knows the files of both
    for name, digest in made.items():
        if old.get(name) != digest:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (new / name).replace(folder / name)
    for name in old.keys() - made.keys():
        (folder / name).unlink(missing_ok=True)  # another process may make the same board
        _remove_empty(folder, name)
    _list(folder, made)


def _list(folder: Path, files: Digests, replaces: Digests | None = None) -> None:
    content = {"made_by": _MADE_BY, "version": __version__, "files": files}
    body = content | ({"replaces": replaces} if replaces else {})
    write_atomically(folder / MANIFEST, json.dumps(body, indent=1).encode() + b"\n")


def _remove_empty(folder: Path, name: str) -> None:
    for parent in _parents(name):
        with contextlib.suppress(OSError):  # other files are in it
            (folder / parent).rmdir()


def _parents(name: str) -> list[str]:
    """Return the parent folders of a file, innermost first."""
    return [str(parent) for parent in PurePosixPath(name).parents][:-1]


def _foreign(path: Path, what: str) -> UserError:
    return UserError(f"{path} {what}, so it is not overwritten: move it away, or choose another folder with -o")
