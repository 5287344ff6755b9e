"""The registry: what each floor adds to those before it. No module of this floor names a later one.

A floor has a file `floor.toml`. It names the classes of its stages, as "module:Class" inside the floor, and the folders
of its cards. Classes are imported when they are first used. Installed packages add stages by the entry-point group
`r2med.stages`, and cards by the group `r2med.plugins`.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from typing import Any

FILE = "floor.toml"


@dataclass(frozen=True)
class CardClasses:
    """The classes of the stages that cards of one folder declare."""

    field: str
    """The field of a card that decides. Empty if all cards have one class."""
    classes: Mapping[str, str]
    """Value of the field -> "module:Class". The class of the empty value is that of all others."""


@dataclass(frozen=True)
class RegisteredStages:
    """The stages of one kind that come with this package, each with its class as "module:Class"."""

    names: dict[str, str] = field(default_factory=dict)
    """Name -> class, for stages that need code."""
    prefixes: dict[str, str] = field(default_factory=dict)
    """Beginning of a name -> class, for stages without a card: hub models, folders, Python objects, run files, …"""
    cards: dict[str, CardClasses] = field(default_factory=dict)
    """Kind of card -> the classes of its cards."""


@cache
def registered(kind: str) -> RegisteredStages:
    """Return the stages of a kind that come with this package."""
    found = RegisteredStages()
    for floor, content in _floors().items():
        declared = content.get(kind, {})
        found.names.update(_paths(floor, declared.get("names", {})))
        found.prefixes.update(_paths(floor, declared.get("prefixes", {})))
        for folder, classes in declared.get("cards", {}).items():
            ((by, table),) = classes.items() if isinstance(classes, dict) else [("", {"": classes})]
            found.cards[folder] = CardClasses(by, _paths(floor, table))
    return found


@cache
def card_folders() -> Mapping[str, str]:
    """Return kind of card or other data file -> its folder inside this package."""
    return {
        kind: f"{floor}/{folder}"
        for floor, content in _floors().items()
        for kind, folder in content.get("folders", {}).items()
    }


def _paths(floor: str, classes: Mapping[str, str]) -> dict[str, str]:
    return {name: f"r2med.{floor}.{path}" for name, path in classes.items()}


@cache
def _floors() -> Mapping[str, dict[str, Any]]:
    """Return floor -> the content of its file."""
    folders = {folder.name: folder.joinpath(FILE) for folder in resources.files("r2med").iterdir() if folder.is_dir()}
    files = {name: folders[name] for name in sorted(folders) if folders[name].is_file()}
    return {name: tomllib.loads(file.read_text(encoding="utf-8")) for name, file in files.items()}
