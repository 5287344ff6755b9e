"""Functions that numba compiles for this machine.

What is compiled runs without the interpreter's lock. It is kept beside its file, or in the user's cache, and read by
the next process.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import numba

from r2med.store.files import write_atomically

Function = TypeVar("Function", bound=Callable[..., Any])

_functions: list[Any] = []


def compiled(function: Function, **settings: Any) -> Function:
    """Return a function compiled on its first call, and kept if there is a folder for that."""
    with contextlib.suppress(RuntimeError):
        _functions.append(numba.njit(nogil=True, cache=True, error_model="numpy", **settings)(function))
        return cast(Function, _functions[-1])
    return cast(Function, numba.njit(nogil=True, error_model="numpy", **settings)(function))


def compiled_sum(function: Function) -> Function:
    """Return a function compiled so that it adds up in the order that is fastest here."""
    return compiled(function, fastmath={"reassoc", "contract"})


def forget() -> None:
    """Forget what was kept: of another version of its file it may not be readable."""
    for function in _functions:
        with contextlib.suppress(Exception):
            function._cache.flush()


def forget_others() -> None:
    """Forget what was kept of other code than this: numba itself looks only at the file that a function is in."""
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in sorted(Path(__file__).parent.glob("*.py"))))
    with contextlib.suppress(Exception):  # nothing is kept here
        note = Path(_functions[0]._cache.cache_path) / f"{Path(__file__).parent.name}.digest"
        if not note.exists() or note.read_text() != digest.hexdigest():
            forget()
            write_atomically(note, digest.hexdigest().encode())
