"""Matrix products by NumPy's BLAS, at the same time as our own threads choose from the products before."""

from __future__ import annotations

import contextlib
import ctypes
import threading
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import numpy as np

from r2med.encoders.encoder import Vectors
from r2med.engine import cores


def multiply(queries: Vectors, documents: Vectors, out: Vectors) -> None:
    """Write the scores of all queries with some documents."""
    with np.errstate(all="ignore"):  # what is not finite is found in the scores, and named
        np.matmul(queries, documents.T, out=out)


FEW = 4
"""Cores up to which each multiplies for itself: more of our threads would wait for the interpreter, step by step."""
AHEAD = 3
"""Threads beyond that: while one multiplies on all cores, the others choose."""

_lock = threading.Lock()
_searches = 0
_threads_before = 0


@contextlib.contextmanager
def product_threads() -> Iterator[int]:
    """Yield how many of our threads multiply and choose: with few cores all of them, and the BLAS starts none."""
    global _searches, _threads_before
    openblas = _openblas()
    if openblas is None or cores() > FEW:
        yield AHEAD
        return
    threads, set_threads = openblas
    with _lock:
        if not _searches:
            _threads_before = threads()
            set_threads(1)
        _searches += 1
    try:
        yield cores()
    finally:
        with _lock:
            _searches -= 1
            if not _searches:
                set_threads(_threads_before)


@cache
def _openblas() -> tuple[Callable[[], int], Callable[[int], None]] | None:
    """Return what tells and what sets the number of threads of the OpenBLAS in NumPy's wheels; None if it has none."""
    folder = Path(np.__file__).parent
    for path in [*folder.parent.glob("numpy.libs/*openblas*"), *folder.glob(".dylibs/*openblas*")]:
        library = ctypes.CDLL(str(path))
        for name in ("scipy_openblas_{}_num_threads64_", "scipy_openblas_{}_num_threads", "openblas_{}_num_threads64_"):
            if hasattr(library, name.format("set")):
                return getattr(library, name.format("get")), getattr(library, name.format("set"))
    return None
