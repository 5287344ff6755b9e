"""Digests of code outside this package, as part of keys. Without them, results of an edited stage would be reused."""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import inspect
import sys
import uuid
from collections.abc import Iterator
from functools import cache, lru_cache
from importlib import metadata
from pathlib import Path
from types import ModuleType

from r2med.foundation.core.version import code_files_digest

INSTALLED_FOLDERS = {"site-packages", "dist-packages"}
"""Folders that installers write to. A package in one of them is identified by its version."""

DIGITS = 40
"""Number of hex digits of a digest of modules."""


@cache
def foreign_code(kind: type) -> dict[str, str]:
    """Return {"code": digest} of the source of a class and its bases; empty for a class of this package.

    All files of the class's own package count, and the modules of the user that they import. A base class of another
    installed package, such as torch, counts by the version of that package: its files may be thousands.
    """
    own = _top(kind.__module__)
    foreign = [each for each in kind.__mro__ if _is_foreign(_top(each.__module__))]
    digests = [_class_digest(each, whole=_top(each.__module__) == own) for each in foreign]
    return {"code": hashlib.sha256("".join(digests).encode()).hexdigest()[:16]} if digests else {}


def code_digest(module: ModuleType | None) -> str:
    """Return a digest of a module's source and of the modules of the user that it imports; empty without a file.

    Installed packages do not count: their versions are stored with the results.
    """
    file = _file(module)
    if module is None or file is None:
        return ""
    return _digest([file] if _is_installed(file) else _imported_files([file]))[:DIGITS]


def _class_digest(kind: type, whole: bool) -> str:
    """Return a digest of the package or the module of a class."""
    top = _top(kind.__module__)
    file = _file(sys.modules.get(top))
    if file is None:
        return _without_file(kind)
    if _is_installed(file) and not whole:
        return f"{top} {_version(top)}"
    files = sorted(file.parent.rglob("*.py")) if file.name == "__init__.py" else [file]
    return _digest(files if _is_installed(file) else _imported_files(files))


def _without_file(kind: type) -> str:
    """Return a digest of a class without a file. If its source is not known, the digest identifies this process."""
    file = _file(sys.modules.get(kind.__module__))
    if file is not None:  # a namespace package
        return _digest(_imported_files([file]))
    try:
        return hashlib.sha256(inspect.getsource(kind).encode()).hexdigest()
    except (OSError, TypeError):
        return _this_process()


def _imported_files(files: list[Path]) -> list[Path]:
    """Return files and those of the user's modules that they import, also inside functions. Imports come first."""
    found: dict[Path, None] = {}
    visited: set[Path] = set()

    def visit(file: Path) -> None:
        if file in visited:
            return
        visited.add(file)
        for each in _imports(file):
            visit(each)
        found[file] = None

    for file in files:
        visit(file.resolve())
    return list(found)


def _imports(file: Path) -> Iterator[Path]:
    """Yield the files of the user's modules that a file imports. Nothing is imported."""
    for level, name in _imported_names(file.read_bytes()):
        if level == 0:
            yield from _module_files(name, file.parent)
        elif level <= len(file.parents):
            yield from _files_below(file.parents[level - 1], name.split("."))


@lru_cache(maxsize=256)
def _imported_names(source: bytes) -> tuple[tuple[int, str], ...]:
    """Return (level, name) of everything that a file imports, also inside functions. Level 0 is an absolute name."""
    try:
        nodes = list(ast.walk(ast.parse(source)))
    except (SyntaxError, ValueError):  # Python says so when it imports the file
        return ()
    found = {(0, name.name) for node in nodes if isinstance(node, ast.Import) for name in node.names}
    for node in nodes:
        if isinstance(node, ast.ImportFrom):  # each name may be a module
            found |= {(node.level, f"{node.module or ''}.{name.name}".strip(".")) for name in node.names}
    return tuple(sorted(found))


def _module_files(name: str, beside: Path) -> Iterator[Path]:
    """Yield the files of a module of the user and of the packages around it, found as Python finds them or `beside`."""
    top, *parts = name.split(".")
    if not _is_foreign(top):
        return
    for folder in (*_places(top), beside):
        if files := list(_files_below(folder, [top, *parts])):
            yield from files
            return


def _places(top: str) -> list[Path]:
    """Return the folders in which Python finds a top-level module, without those of installed packages."""
    try:
        spec = importlib.util.find_spec(top)
    except (ImportError, ValueError, AttributeError):  # no such module, or one without a spec such as __main__
        return []
    if spec is None:
        return []
    packages = [Path(each) for each in spec.submodule_search_locations or ()]
    found = [each.parent for each in packages] or (
        [Path(spec.origin).parent] if spec.has_location and spec.origin else []
    )
    return [each.resolve() for each in found if not _is_installed(each)]


def _files_below(folder: Path, parts: list[str]) -> Iterator[Path]:
    """Yield the files that importing a dotted name from a folder would run."""
    for part in ("", *parts):
        for file in (folder / part / "__init__.py", folder / f"{part}.py"):
            if file.is_file() and not _is_installed(file):
                yield file.resolve()
        folder = folder / part


def _file(module: ModuleType | None) -> Path | None:
    name = getattr(module, "__file__", None)
    return Path(name).resolve() if isinstance(name, str) and Path(name).is_file() else None


def _digest(files: list[Path]) -> str:
    return code_files_digest((each.name, each) for each in sorted(files))


def _top(module: str) -> str:
    return module.partition(".")[0]


def _is_foreign(top: str) -> bool:
    return top not in ("r2med", "pydantic", "typing_extensions") and top not in sys.stdlib_module_names


def _is_installed(file: Path) -> bool:
    return not INSTALLED_FOLDERS.isdisjoint(file.parts)


@cache
def _version(top: str) -> str:
    """Return the version of an installed package; empty if it has none."""
    if isinstance(version := getattr(sys.modules.get(top), "__version__", None), str):
        return version
    names = metadata.packages_distributions().get(top, ())
    return " ".join(f"{name} {metadata.version(name)}" for name in sorted(names))


@cache
def _this_process() -> str:
    return uuid.uuid4().hex
