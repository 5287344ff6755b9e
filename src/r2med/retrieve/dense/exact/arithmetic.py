"""What the libraries that calculate are told while searches run, which is a matter of the whole process."""

from __future__ import annotations

import contextlib
import ctypes
import os
import threading
import warnings
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from r2med.engine import cores

Value = TypeVar("Value")
_making = threading.Lock()
"""Of what is made once, by one of several searches at a time."""


def tensor(array: npt.NDArray[Any]) -> Any:
    """Return a tensor over the same memory. torch warns of arrays that are not to be written; these are read."""
    import torch

    if array.flags.writeable:
        return torch.from_numpy(array)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return torch.from_numpy(array)


_settings: list[_Shared[Any]] = []


class _Shared(Generic[Value]):
    """A setting of the whole process that searches need: the first of them changes it, the last one puts it back."""

    def __init__(self, read: Callable[[], Value], write: Callable[[Value], object], needed: Value) -> None:
        self._read, self._write, self._needed = read, write, needed
        self._lock = threading.Lock()
        self._searches: set[object] = set()
        self._before: list[Value] = []
        _settings.append(self)

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Have it as searches need it."""
        search = object()
        try:  # from here on a Ctrl-C finds its way back
            with self._lock:
                self._searches.add(search)
                if len(self._searches) == 1:
                    self._before = self._before or [self._read()]
                    self._write(self._needed)
            yield
        finally:
            with self._lock:
                self._searches.discard(search)
                if self._before and not self._searches:
                    self._write(self._before[0])
                    self._before = []

    def forget_other_threads(self) -> None:
        """Have a lock of its own in a forked process, and no searches: the next one puts back what was before."""
        self._lock, self._searches = threading.Lock(), set()


@contextlib.contextmanager
def full_precision() -> Iterator[None]:
    """Have torch multiply and add in full precision, whatever the program around us chose for its models."""
    import torch

    with _making:
        precision = _torch_precision()
    kept = torch.autocast("cuda", enabled=False), torch.autocast("cpu", enabled=False)
    with precision.held(), torch.inference_mode(), kept[0], kept[1]:
        yield


@cache
def _torch_precision() -> _Shared[tuple[str, bool]]:
    import torch

    flags = torch.backends.cuda.matmul

    def write(value: tuple[str, bool]) -> None:
        torch.set_float32_matmul_precision(value[0])
        flags.allow_fp16_reduced_precision_reduction = value[1]

    def read() -> tuple[str, bool]:
        return torch.get_float32_matmul_precision(), flags.allow_fp16_reduced_precision_reduction

    return _Shared(read, write, ("highest", False))


@contextlib.contextmanager
def own_threads() -> Iterator[tuple[int, int]]:
    """Yield how many threads of ours may multiply at a time by NumPy, and do other work.

    Its BLAS then multiplies on the thread that calls, if it can be told to; else it has threads of its own.
    """
    with _making:
        openblas = _openblas()
    if openblas is None:
        yield 1, cores()
        return
    with openblas.held():
        yield cores(), cores()


@cache
def _openblas() -> _Shared[int] | None:
    """Return the number of threads of the OpenBLAS in NumPy's wheels; None if it has none."""
    if (library := _openblas_library()) is not None:
        for name in ("scipy_openblas_{}_num_threads64_", "scipy_openblas_{}_num_threads", "openblas_{}_num_threads64_"):
            if hasattr(library, name.format("set")):
                return _Shared(getattr(library, name.format("get")), getattr(library, name.format("set")), 1)
    return None


@cache
def _openblas_library() -> ctypes.CDLL | None:
    folder = Path(np.__file__).parent
    for path in [*folder.parent.glob("numpy.libs/*openblas*"), *folder.glob(".dylibs/*openblas*")]:
        return ctypes.CDLL(str(path))
    return None


def _after_fork() -> None:
    """Make locks anew in a child: threads that held one in the parent do not come along."""
    global _making
    _making = threading.Lock()
    for setting in _settings:
        setting.forget_other_threads()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
