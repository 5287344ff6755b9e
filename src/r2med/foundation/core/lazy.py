"""Import names when they are first used, so that the package starts fast."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def loaded(path: str) -> Any:
    """Return the object at "module:name". Its module is imported now."""
    module, _, name = path.partition(":")
    return getattr(import_module(module), name)


def lazily(package: str, places: Mapping[str, str]) -> Callable[[str], Any]:
    """Return a `__getattr__` for a package that imports each name from its module."""

    def getattr_(name: str) -> Any:
        if name not in places:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(places[name]), name)

    return getattr_
