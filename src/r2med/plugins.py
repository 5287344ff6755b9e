"""Where cards and other data files are found: this package, installed plugins, and a folder of the user's own.

A plugin is a package that names itself in the entry-point group `r2med.plugins`; its folders `datasets/`,
`models/`, … are read like ours. `R2MED_PLUGINS` names such folders without a package.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import cache
from importlib import metadata, resources
from importlib.resources.abc import Traversable
from pathlib import Path

from r2med.errors import UserError

GROUP = "r2med.plugins"

BUILT_IN = {
    "datasets": "data/cards",
    "methods": "expand/methods",
    "models": "encoders/cards",
    "llms": "llm/cards",
    "prompts": "prompts/texts",
    "rerankers": "crossencoders/cards",
    "suites": "system/suite_files",
    "systems": "system/preset_files",
}
"""Where each kind of file lies inside this package."""


def folders(kind: str) -> Iterator[Traversable]:
    """Yield every folder that may hold files of a kind; later ones override earlier ones by file name."""
    yield resources.files("r2med").joinpath(BUILT_IN[kind])
    for package in _installed():
        yield resources.files(package).joinpath(kind)
    for folder in filter(None, os.environ.get("R2MED_PLUGINS", "").split(os.pathsep)):
        try:
            yield Path(folder).expanduser() / kind
        except RuntimeError:
            raise UserError(f"R2MED_PLUGINS: {folder} names the home folder of nobody") from None


@cache
def _installed() -> tuple[str, ...]:
    """Return the packages of installed plugins; looked for once, since that reads a file of every package there is."""
    return tuple(entry.value for entry in sorted(metadata.entry_points(group=GROUP), key=lambda entry: entry.name))


def files(kind: str, suffix: str) -> dict[str, Traversable]:
    """Return name (without suffix) -> file for a kind."""
    found: dict[str, Traversable] = {}
    for folder in folders(kind):
        if folder.is_dir():
            for file in folder.iterdir():
                if file.name.endswith(suffix):
                    found[file.name.removesuffix(suffix)] = file
    return found
