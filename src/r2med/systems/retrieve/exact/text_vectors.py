"""The vectors of consecutive texts: one for each text, or several. The best vector of a document counts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from r2med.models.encoders.encoder import Vectors
from r2med.models.encoders.ragged import Offsets, Ragged

Rows = npt.NDArray[np.int32]
Positions = npt.NDArray[np.int64]
Exact = npt.NDArray[np.float64]
Hits = tuple[Rows, Vectors]
"""The rows and scores of the documents that a query found."""
Buffers = dict[str, npt.NDArray[Any]]
"""Name of a buffer -> an array with a row for each vector."""
DOUBLE = np.dtype(np.float64)


@dataclass(frozen=True)
class TextVectors:
    """Vectors of consecutive texts, one text after the other."""

    vectors: npt.NDArray[Any]
    offsets: Offsets | None = None
    """Where the vectors of each text begin, and where those of the last one end. None if each text has one vector."""

    @classmethod
    def of(cls, given: npt.NDArray[Any] | Ragged) -> TextVectors:
        """Return the vectors of an array with a row for each text, or of texts with any number of rows."""
        if not isinstance(given, Ragged):
            return cls(given)
        single = bool((np.diff(given.offsets) == 1).all())
        vectors = given.arrays["vectors"] if len(given.offsets) > 1 else np.empty((0, 0), np.float32)
        return cls(vectors, None if single else given.offsets)

    def __len__(self) -> int:
        return len(self.vectors) if self.offsets is None else len(self.offsets) - 1

    @property
    def starts(self) -> Offsets:
        """Where the vectors of each text begin, and where those of the last one end."""
        return np.arange(len(self.vectors) + 1) if self.offsets is None else self.offsets

    @property
    def sizes(self) -> Offsets:
        """The number of vectors of each text."""
        return np.diff(self.starts)

    def span(self, begin: int, end: int) -> slice:
        """Return where the vectors of some consecutive texts are."""
        return slice(begin, end) if self.offsets is None else slice(int(self.offsets[begin]), int(self.offsets[end]))

    def part(self, begin: int, end: int) -> TextVectors:
        """Return some consecutive texts. Their vectors are not copied."""
        here = self.span(begin, end)
        offsets = None if self.offsets is None else self.offsets[begin : end + 1] - here.start
        return TextVectors(self.vectors[here], offsets)

    def end_of_part(self, begin: int, texts: int, vectors: int) -> int:
        """Return the end of a part with at most this many texts and vectors, but with at least one text."""
        end = min(begin + texts, len(self))
        if self.offsets is None:
            return max(begin + 1, min(end, begin + vectors))
        fitting = int(np.searchsorted(self.offsets, self.offsets[begin] + vectors, side="right")) - 1
        return max(begin + 1, min(end, fitting))

    def taken(self, texts: Rows, vectors: int, buffers: Buffers) -> Iterator[TextVectors]:
        """Yield copies of some texts in float64, at most this many vectors or one text at a time.

        They are in buffers, which the next ones overwrite.
        """
        width = self.vectors.shape[1]
        if self.offsets is None:
            rows = min(vectors, len(texts))
            stored = buffer_of(buffers, self.vectors.dtype.char, self.vectors.dtype, rows, width)
            doubles = buffer_of(buffers, "doubles", DOUBLE, rows, width)
            for at in range(0, len(texts), vectors):
                some = texts[at : at + vectors]
                np.take(self.vectors, some, axis=0, out=stored[: len(some)], mode="clip")
                doubles[: len(some)] = stored[: len(some)]
                yield TextVectors(doubles[: len(some)])
            return
        ends, at = np.cumsum(self.sizes[texts]), 0
        while at < len(texts):
            done = ends[at - 1] if at else 0
            stop = max(at + 1, int(np.searchsorted(ends, done + vectors, side="right")))
            offsets = np.append(np.int64(0), ends[at:stop] - done)
            doubles = buffer_of(buffers, "doubles", DOUBLE, int(offsets[-1]), width)
            firsts = self.offsets[texts[at:stop]].tolist()
            for first, (begin, end) in zip(firsts, pairwise(offsets.tolist()), strict=True):
                doubles[begin:end] = self.vectors[first : first + end - begin]
            yield TextVectors(doubles, offsets)
            at = stop

    def largest(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return for each text the largest of the values of its vectors, along the last axis; 0 without a vector."""
        return self._reduced(np.maximum, values, -1)

    def sums(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return for each text the sum of the values of its vectors, along the first axis; 0 without a vector."""
        return self._reduced(np.add, values, 0)

    def _reduced(self, combine: np.ufunc, values: npt.NDArray[Any], axis: int) -> npt.NDArray[Any]:
        if self.offsets is None:
            return values
        filled = np.flatnonzero(self.offsets[1:] > self.offsets[:-1])
        if len(filled) == len(self):
            return _reduced(combine, values, self.offsets[:-1], axis)
        shape = (*values.shape[:-1], len(self)) if axis else (len(self), *values.shape[1:])
        out = np.zeros(shape, values.dtype)
        if len(filled):
            out[(..., filled) if axis else filled] = _reduced(combine, values, self.offsets[filled], axis)
        return out


def _reduced(combine: np.ufunc, values: npt.NDArray[Any], starts: Offsets, axis: int) -> npt.NDArray[Any]:
    if axis == 0 or values.ndim == 1:
        reduced: npt.NDArray[Any] = combine.reduceat(values, starts, axis=axis)
        return reduced
    # Along the lines of a matrix, NumPy holds the interpreter lock. The end of a line ends its last part.
    lines, width = values.shape
    flat = (width * np.arange(lines)[:, None] + starts).ravel()
    reduced = combine.reduceat(np.ascontiguousarray(values).ravel(), flat)
    return reduced.reshape(lines, len(starts))


def buffer_of(buffers: Buffers, name: str, kind: np.dtype[Any], rows: int, width: int) -> npt.NDArray[Any]:
    """Return an array of one of the buffers. A buffer that is too small is replaced."""
    if name not in buffers or len(buffers[name]) < rows:
        buffers[name] = np.empty((rows, width), kind)
    return buffers[name][:rows]


@dataclass(frozen=True)
class Piece:
    """Consecutive documents that are multiplied together."""

    first: int
    """Row of the first document."""
    texts: TextVectors
    block: tuple[int, TextVectors]
    """The block that they are in, and the row of its first document."""

    @property
    def rows(self) -> Rows:
        """Rows of the documents."""
        return np.arange(self.first, self.first + len(self.texts), dtype=np.int32)
