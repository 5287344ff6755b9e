"""Find cards and other data files in this package, in installed plugins, and in folders of the user.

A plugin is a package with an entry point in the group `r2med.plugins`. Its folders `datasets/`, `models/`, … are read
like those of this package. `R2MED_PLUGINS` names such folders without a package.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from functools import cache
from importlib import metadata, resources
from importlib.resources.abc import Traversable
from pathlib import Path

from r2med.foundation.core.errors import UserError
from r2med.foundation.core.registry import card_folders

log = logging.getLogger("r2med")

GROUP = "r2med.plugins"


def folders(kind: str) -> Iterator[Traversable]:
    """Yield the folders with files of a kind: first of this package, then of installed plugins, then of the user."""
    yield resources.files("r2med").joinpath(card_folders()[kind])
    for package in _installed():
        yield package.joinpath(kind)
    yield from _own_folders(kind)


def _own_folders(kind: str) -> Iterator[Path]:
    for folder in filter(None, os.environ.get("R2MED_PLUGINS", "").split(os.pathsep)):
        try:
            yield Path(folder).expanduser() / kind
        except RuntimeError:
            raise UserError(f"R2MED_PLUGINS: {folder} names the home folder of an unknown user") from None


def own_file_states(kind: str) -> tuple[tuple[str, int, int, int], ...]:
    """Return path, size and times of each file of a kind in the folders of the user, to notice changes."""
    files = [file for folder in _own_folders(kind) if folder.is_dir() for file in folder.iterdir()]
    states = [(file, file.stat()) for file in sorted(files) if file.is_file()]
    return tuple((str(file), state.st_size, state.st_mtime_ns, state.st_ctime_ns) for file, state in states)


@cache
def _installed() -> tuple[Traversable, ...]:
    """Return the folders of installed plugins. The search runs once, because it reads a file of every package.

    A package that cannot be imported is left out with a warning, so that other commands still work.
    """
    found = []
    for entry in sorted(metadata.entry_points(group=GROUP), key=lambda entry: entry.name):
        try:
            found.append(resources.files(entry.value))
        except (Exception, SystemExit) as error:  # importing a plugin may fail in any way
            reason = " ".join(f"{type(error).__name__}: {error}".split())
            log.warning("the plugin %s = %s is left out: importing it failed with %s", entry.name, entry.value, reason)
    return tuple(found)


@cache
def _built_in_files(kind: str) -> list[Traversable]:
    """Return the files of this package. They do not change while a process runs, and a system asks for them often."""
    return _listed(resources.files("r2med").joinpath(card_folders()[kind]))


def _listed(folder: Traversable) -> list[Traversable]:
    return list(folder.iterdir()) if folder.is_dir() else []


def files(kind: str, suffix: str) -> dict[str, Traversable]:
    """Return name (without suffix) -> file for a kind.

    A user's folder may replace a file, with a notice. An installed plugin may not.
    """
    found: dict[str, Traversable] = {}
    own = [str(folder) for folder in _own_folders(kind)]
    for number, folder in enumerate(folders(kind)):
        for file in _listed(folder) if number else _built_in_files(kind):
            name = file.name.removesuffix(suffix)
            if not file.name.endswith(suffix):
                continue
            if name in found and str(folder) not in own:
                _warn(f"{file} is left out: there is a {kind}/{file.name} already, and a plugin cannot replace it")
                continue
            if name in found:
                _warn(f"{file} of R2MED_PLUGINS replaces the {kind}/{file.name} that is built in or installed")
            found[name] = file
    return found


def leave_out(file: Traversable, kind: str, error: UserError) -> None:
    """Warn about an unusable card of an installed plugin. Raises the error if the card is not from a plugin."""
    folders_to_mend = [next(folders(kind)), *_own_folders(kind)]
    if any(str(file).startswith(f"{folder}{os.sep}") for folder in folders_to_mend):
        raise error
    _warn(f"{error}: this card of an installed plugin is left out")


@cache
def _warn(message: str) -> None:
    """Write a warning once per process."""
    log.warning("%s", message)
