"""Import names when they are first used, so that the package starts fast."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any


def loaded(path: str) -> Any:
    """Return the object at "module:name". Its module is imported now."""
    module, _, name = path.partition(":")
    return getattr(import_module(module), name)


def lazily(package: str) -> Callable[[str], Any]:
    """Return a `__getattr__` for a package that imports each name of its block `if TYPE_CHECKING:` when it is used."""

    def getattr_(name: str) -> Any:
        if name.startswith("__") or name not in (places := _places(package)):
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(places[name]), name)

    return getattr_


@cache
def _places(package: str) -> dict[str, str]:
    """Return name -> module for what a package imports for types alone."""
    import ast

    spec = sys.modules[package].__spec__
    source = spec.loader.get_source(package)  # type: ignore[union-attr]  # every loader of source code has it
    blocks = [node for node in ast.parse(source).body if isinstance(node, ast.If)]
    for_types = [block for block in blocks if ast.unparse(block.test) == "TYPE_CHECKING"]
    imports = [node for block in for_types for node in block.body if isinstance(node, ast.ImportFrom)]
    return {alias.name: str(node.module) for node in imports for alias in node.names}
