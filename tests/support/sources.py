"""What the files of the package import and define, parsed once for all tests of a process."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import cache
from pathlib import Path


@dataclass(frozen=True)
class Source:
    """Names that a file imports, on top, within functions and for types alone, and the classes that it defines."""

    modules: tuple[str, ...]
    """Of `import a.b`."""
    members: tuple[tuple[str, str], ...]
    """(module, name) of `from module import name`, without relative ones."""
    classes: tuple[str, ...]


@cache
def source(path: Path) -> Source:
    nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
    return Source(
        tuple(alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names),
        tuple(
            (node.module, alias.name)
            for node in nodes
            if isinstance(node, ast.ImportFrom) and node.module
            for alias in node.names
        ),
        tuple(node.name for node in nodes if isinstance(node, ast.ClassDef)),
    )
