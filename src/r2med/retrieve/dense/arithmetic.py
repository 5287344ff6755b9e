"""Arithmetic on whole matrices of scores: by NumPy in each of our threads, or by torch on all cores at once.

With a few cores, each multiplies and chooses for itself. With many, our threads would wait for the interpreter more
than they work: then one thread leads, and each step of it is spread over the cores by torch, if that is installed.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib.util
import threading
import warnings
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from r2med.encoders.encoder import Vectors
from r2med.engine import cores

Value = TypeVar("Value")
Rows = npt.NDArray[np.int32]
Positions = npt.NDArray[np.int64]
Exact = npt.NDArray[np.float64]
Cells = tuple[Positions, Positions, Vectors]
"""Lines, columns and scores."""

FEW = 4
"""Cores up to which each multiplies for itself."""
AHEAD = 3
"""Threads of ours where the BLAS has its own: while one multiplies on all cores, the others choose."""


class Arithmetic:
    """NumPy, on the thread that calls."""

    spread = False
    """Whether each step is spread over all cores by itself."""

    def multiply(self, queries: Vectors, documents: Vectors, out: Vectors) -> None:
        """Write the scores of all queries with some documents."""
        with np.errstate(all="ignore"):  # what is not finite is found in the scores, and named
            np.matmul(queries, documents.T, out=out)

    def maxima(self, scores: Vectors, size: int) -> Vectors:
        """Return the largest of every bundle of scores of a line; bundle i has columns i, i + n, … of n bundles."""
        return np.asarray(_bundles(scores, size).max(axis=1))

    def kth_largest(self, scores: Vectors, k: int) -> Vectors:
        """Return the k-th largest score of each line."""
        cut = scores.shape[1] - k
        return np.asarray(np.partition(scores, cut, axis=1)[:, cut])

    def largest(self, scores: Vectors, count: int) -> Positions:
        """Return the columns of the largest scores of each line, best first."""
        # Score and column in one integer: sorting those takes half as long as sorting columns by their scores.
        bits = scores.view(np.int32)
        keys = (~(bits ^ ((bits >> 31) & 0x7FFFFFFF))).astype(np.int64) << 32 | np.arange(scores.shape[1])
        keys.sort(axis=1)
        return np.asarray(keys[:, :count] & 0xFFFFFFFF)

    def above(self, scores: Vectors, floors: Exact, mask: npt.NDArray[np.bool_]) -> Cells:
        """Return (lines, columns, scores) of the scores that are not below the floor of their line, ascending."""
        flat = np.flatnonzero(np.greater_equal(scores, _below(floors), out=mask))
        lines, columns = np.divmod(flat, scores.shape[1])
        return lines, columns, scores[lines, columns]

    def squares(self, documents: Vectors) -> Vectors:
        """Return the sums of squares of vectors."""
        return np.asarray(np.einsum("ij,ij->i", documents, documents))

    def scale(self, scores: Vectors, factors: Vectors) -> None:
        """Multiply the scores of every document by its factor."""
        scores *= factors

    def take(self, array: npt.NDArray[Any], columns: Positions) -> npt.NDArray[Any]:
        """Return the columns of each line."""
        return np.take_along_axis(array, columns, axis=1)

    def put(self, array: npt.NDArray[Any], lines: Positions, columns: Positions, values: npt.NDArray[Any]) -> None:
        """Write values, each to its line and column."""
        array[lines, columns] = values


class SpreadArithmetic(Arithmetic):
    """torch, on all cores."""

    spread = True

    def multiply(self, queries: Vectors, documents: Vectors, out: Vectors) -> None:
        """Write the scores of all queries with some documents."""
        import torch

        torch.mm(tensor(queries), tensor(documents).T, out=tensor(out))

    def maxima(self, scores: Vectors, size: int) -> Vectors:
        """Return the largest of every bundle of scores of a line."""
        return np.asarray(tensor(_bundles(scores, size)).amax(1))

    def kth_largest(self, scores: Vectors, k: int) -> Vectors:
        """Return the k-th largest score of each line."""
        return np.asarray(tensor(scores).topk(k, dim=1, sorted=False).values.amin(1))

    def largest(self, scores: Vectors, count: int) -> Positions:
        """Return the columns of the largest scores of each line, best first."""
        return np.asarray(tensor(scores).topk(count, dim=1).indices)

    def above(self, scores: Vectors, floors: Exact, mask: npt.NDArray[np.bool_]) -> Cells:
        """Return (lines, columns, scores) of the scores that are not below the floor of their line, by line."""
        size = BUNDLE if scores.shape[1] % BUNDLE == 0 else 1
        parts = zip(*reaching(tensor(scores), tensor(_below(floors)), size), strict=True)
        lines, columns, values = (np.concatenate(part) for part in parts)
        return lines, columns, values

    def squares(self, documents: Vectors) -> Vectors:
        """Return the sums of squares of vectors."""
        return np.asarray(tensor(documents).norm(dim=1).square_())

    def scale(self, scores: Vectors, factors: Vectors) -> None:
        """Multiply the scores of every document by its factor."""
        tensor(scores).mul_(tensor(factors))

    def take(self, array: npt.NDArray[Any], columns: Positions) -> npt.NDArray[Any]:
        """Return the columns of each line."""
        return np.asarray(tensor(array).gather(1, tensor(columns)))

    def put(self, array: npt.NDArray[Any], lines: Positions, columns: Positions, values: npt.NDArray[Any]) -> None:
        """Write values, each to its line and column."""
        tensor(array)[tensor(lines), tensor(columns)] = tensor(values)


BUNDLE = 8
"""Scores of which only the largest is compared with a floor."""
PART = 1 << 18
"""Bundles that are looked at together."""


def reaching(scores: Any, floors: Any, size: int) -> Iterator[tuple[Any, Any, Any]]:
    """Yield (lines, columns, scores) of the scores of a tensor that reach the floors, a column of them, of their lines.

    The largest of each bundle is compared first: there are few that reach the floor, once one is known.
    """
    import torch

    stride = scores.stride(0)
    flat = scores.as_strided((stride * (len(scores) - 1) + scores.shape[1],), (1,))
    bundles = scores.unflatten(1, (size, -1))
    count = bundles.shape[2]
    within = torch.arange(size, device=scores.device) * count
    for hits in (bundles.amax(1) >= floors).view(-1).nonzero().split(PART):
        lines = hits // count
        positions = lines * (stride - count) + hits + within
        some = flat[positions]
        chosen = (some >= floors[lines[:, 0]]).view(-1).nonzero()[:, 0]
        lines = lines.view(-1)[chosen // size]
        yield lines, positions.view(-1)[chosen] - lines * stride, some.view(-1)[chosen]


def tensor(array: npt.NDArray[Any]) -> Any:
    """Return a tensor over the same memory. torch warns of arrays that are not to be written; these are read."""
    import torch

    if array.flags.writeable:
        return torch.from_numpy(array)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return torch.from_numpy(array)


def _bundles(scores: Vectors, size: int) -> Vectors:
    """Return scores by line, place within its bundle, and bundle; what does not fill a bundle is left out."""
    lines, width = scores.shape
    return scores[:, : width // size * size].reshape(lines, size, width // size)


def _below(floors: Exact) -> Vectors:
    """Return floors as a column in single precision: a comparison with float64 would convert every score."""
    return np.nextafter(floors.astype(np.float32), np.float32(-np.inf))[:, None]


class _Shared(Generic[Value]):
    """A setting of the whole process that searches need: the first of them changes it, the last one puts it back."""

    def __init__(self, read: Callable[[], Value], write: Callable[[Value], object], needed: Value) -> None:
        self._read, self._write, self._needed = read, write, needed
        self._lock, self._searches = threading.Lock(), 0

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Have it as searches need it."""
        with self._lock:
            if not self._searches:
                self._before = self._read()
                self._write(self._needed)
            self._searches += 1
        try:
            yield
        finally:
            with self._lock:
                self._searches -= 1
                if not self._searches:
                    self._write(self._before)


@contextlib.contextmanager
def arithmetic() -> Iterator[tuple[Arithmetic, int]]:
    """Yield how to calculate, and how many of our threads do it at a time; NumPy's BLAS then starts none of its own."""
    if cores() > FEW and importlib.util.find_spec("torch"):
        with full_precision():
            yield SpreadArithmetic(), 1
        return
    with _one_blas_thread() as threads:
        yield Arithmetic(), threads


@contextlib.contextmanager
def full_precision() -> Iterator[None]:
    """Have torch multiply and add in full precision, whatever the program around us chose for its models."""
    import torch

    kept = torch.autocast("cuda", enabled=False), torch.autocast("cpu", enabled=False)
    with _torch_precision().held(), torch.inference_mode(), kept[0], kept[1]:
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
def _one_blas_thread() -> Iterator[int]:
    """Have NumPy's BLAS multiply on the thread that calls, if it can be told to; yield how many threads may call."""
    openblas = _openblas()
    if openblas is None:
        yield AHEAD
        return
    with openblas.held():
        yield cores()


@cache
def _openblas() -> _Shared[int] | None:
    """Return the number of threads of the OpenBLAS in NumPy's wheels; None if it has none."""
    folder = Path(np.__file__).parent
    for path in [*folder.parent.glob("numpy.libs/*openblas*"), *folder.glob(".dylibs/*openblas*")]:
        library = ctypes.CDLL(str(path))
        for name in ("scipy_openblas_{}_num_threads64_", "scipy_openblas_{}_num_threads", "openblas_{}_num_threads64_"):
            if hasattr(library, name.format("set")):
                return _Shared(getattr(library, name.format("get")), getattr(library, name.format("set")), 1)
    return None
