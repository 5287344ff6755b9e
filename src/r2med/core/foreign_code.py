"""Digests of code outside this package, as part of keys. Without them, results of an edited stage would be reused."""

from __future__ import annotations

import hashlib
import inspect
import sys
import uuid
from functools import cache
from pathlib import Path
from typing import Any

from r2med.core.errors import UserError


def key_of(part: Any, dataset: Any) -> dict[str, Any]:
    """Return the key of a bound stage, with a digest of its code if the code is not part of this package."""
    kind: type = type(part)
    if not hasattr(part, "key"):
        raise UserError(
            f"{kind.__module__}.{kind.__qualname__} has no key(dataset): rename its describe(dataset) to key"
        )
    return {**part.key(dataset), **foreign_code(kind)}


@cache
def foreign_code(kind: type) -> dict[str, str]:
    """Return {"code": digest} of the source of a class and its bases; empty for a class of this package."""
    digests = [_digest(each.__module__, each) for each in kind.__mro__ if _is_foreign(each)]
    return {"code": hashlib.sha256("".join(digests).encode()).hexdigest()[:16]} if digests else {}


def _is_foreign(kind: type) -> bool:
    name = kind.__module__.partition(".")[0]
    return name not in ("r2med", "pydantic", "typing_extensions") and name not in sys.stdlib_module_names


def _digest(module: str, kind: type) -> str:
    """Return a digest of all Python files of the package a module belongs to, or of the module alone."""
    top = sys.modules.get(module.partition(".")[0])
    file = getattr(top, "__file__", None)
    if file is None or not Path(file).is_file():
        return _without_file(module, kind)
    path = Path(file)
    files = sorted(path.parent.rglob("*.py")) if path.name == "__init__.py" else [path]
    digest = hashlib.sha256()
    for each in files:
        digest.update(f"{each.name}\0".encode() + each.read_bytes())
    return digest.hexdigest()


def _without_file(module: str, kind: type) -> str:
    """Return a digest of a class without a file. If its source is not known, the digest identifies this process."""
    loaded = sys.modules.get(module)
    file = getattr(loaded, "__file__", None)
    if file is not None and Path(file).is_file():  # a namespace package
        return hashlib.sha256(Path(file).read_bytes()).hexdigest()
    try:
        return hashlib.sha256(inspect.getsource(kind).encode()).hexdigest()
    except (OSError, TypeError):
        return _this_process()


@cache
def _this_process() -> str:
    return uuid.uuid4().hex
