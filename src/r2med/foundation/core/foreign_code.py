"""Digests of code outside this package, as part of keys. Without them, results of an edited stage would be reused."""

from __future__ import annotations

import hashlib
import inspect
import sys
import uuid
from collections.abc import Iterable
from functools import cache
from importlib import metadata
from pathlib import Path
from types import CodeType, ModuleType

from r2med.foundation.core.version import code_files_digest

INSTALLED_FOLDERS = {"site-packages", "dist-packages"}
"""Folders that installers write to. A package in one of them is identified by its version."""

DIGITS = 40
"""Number of hex digits of a digest of modules."""


@cache
def foreign_code(kind: type) -> dict[str, str]:
    """Return {"code": digest} of the source of a class and its bases; empty for a class of this package.

    All files of the class's own package count, and the user's modules that its module imported. A base class of another
    installed package, such as torch, counts by the version of that package: its files may be thousands.
    """
    own = _top(kind.__module__)
    foreign = [each for each in kind.__mro__ if _is_foreign(_top(each.__module__))]
    digests = [_class_digest(each, whole=_top(each.__module__) == own) for each in foreign]
    return {"code": hashlib.sha256("".join(digests).encode()).hexdigest()[:16]} if digests else {}


def code_digest(module: ModuleType | None) -> str:
    """Return a digest of a module's source and of the user's modules that it imported; empty without a file.

    Installed packages do not count: their versions are stored with the results.
    """
    file = _file(module)
    if module is None or file is None:
        return ""
    return _digest({file} if _is_installed(file) else {file, *_imported_files(module)})[:DIGITS]


def _class_digest(kind: type, whole: bool) -> str:
    """Return a digest of the package or the module of a class."""
    top = _top(kind.__module__)
    file = _file(sys.modules.get(top))
    if file is None:
        return _without_file(kind)
    if _is_installed(file) and not whole:
        return f"{top} {_version(top)}"
    files = {*file.parent.rglob("*.py")} if file.name == "__init__.py" else {file}
    return _digest(files if _is_installed(file) else {*files, *_imported_files(sys.modules.get(kind.__module__))})


def _without_file(kind: type) -> str:
    """Return a digest of a class without a file. If its source is not known, the digest identifies this process."""
    file = _file(sys.modules.get(kind.__module__))
    if file is not None:  # a namespace package
        return _digest({file, *_imported_files(sys.modules.get(kind.__module__))})
    try:
        return hashlib.sha256(inspect.getsource(kind).encode()).hexdigest()
    except (OSError, TypeError):
        return _this_process()


@cache
def _imported_files(module: ModuleType | None) -> frozenset[Path]:
    """Return the files of a module of the user and of those that it imported, and so on.

    They are looked up once: what is loaded later, by a function that imports, must not change a digest.
    """
    known = {name: file for name, each in [*sys.modules.items()] if (file := _file(each)) and _is_of_user(name, file)}
    found: set[str] = set()
    waiting = [module.__name__] if module else []
    while waiting:
        name = waiting.pop()
        if name in found or name not in known:
            continue
        found.add(name)
        used = _names_in(known[name])
        waiting += [other for other in known if _is_imported(other, used, name)]
        waiting.append(name.rpartition(".")[0])  # importing a module runs the packages around it
    return frozenset(known[name] for name in found)


def _is_imported(other: str, used: set[str], name: str) -> bool:
    """Return True if a module with this name, whose code uses these names, imports the other one."""
    package, _, last = other.rpartition(".")
    return other in used or (last in used and (package in used or _top(other) == _top(name)))


def _names_in(file: Path) -> set[str]:
    """Return the names that the code of a file uses. Those of the modules that it imports are among them."""
    try:
        waiting = [compile(file.read_bytes(), file, "exec", dont_inherit=True)]
    except (SyntaxError, ValueError):  # a library in C, or a file that was changed after Python loaded it
        return set()
    names: set[str] = set()
    while waiting:
        code = waiting.pop()
        names.update(code.co_names)
        waiting += [each for each in code.co_consts if isinstance(each, CodeType)]
    return names


def _file(module: ModuleType | None) -> Path | None:
    name = getattr(module, "__file__", None)
    return Path(name).resolve() if isinstance(name, str) and Path(name).is_file() else None


def _digest(files: Iterable[Path]) -> str:
    return code_files_digest((each.name, each) for each in sorted(files))


def _top(module: str) -> str:
    return module.partition(".")[0]


def _is_foreign(top: str) -> bool:
    return top not in ("r2med", "pydantic", "typing_extensions") and top not in sys.stdlib_module_names


def _is_of_user(name: str, file: Path) -> bool:
    return _is_foreign(_top(name)) and not _is_installed(file)


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
