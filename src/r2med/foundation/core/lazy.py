"""Import names when they are first used, so that the package starts fast."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any


def lazily(package: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return `__getattr__` and `__dir__` of a module that imports what stands below its `if TYPE_CHECKING:` when used.

    `__all__` has these names too, without submodules, unless the module says otherwise.
    """

    def getattr_(name: str) -> Any:
        if name == "__all__":
            return sorted(name for name, module in _places(package).items() if module != package)
        if name.startswith("__") or name not in (places := _places(package)):
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        if places[name] == package:
            return import_module(f"{package}.{name}")
        return getattr(import_module(places[name]), name)

    return getattr_, lambda: sorted({*vars(sys.modules[package]), *_places(package)})


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
