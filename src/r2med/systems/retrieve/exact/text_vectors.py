"""The vectors of consecutive texts: one for each text, or several. The best vector of a document counts."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from r2med.models.encoders.encoder import Vectors
from r2med.models.encoders.ragged import Offsets, Ragged

Rows = npt.NDArray[np.int32]
Places = npt.NDArray[np.int64]
Exact = npt.NDArray[np.float64]
Hits = tuple[Rows, Vectors]
"""The rows and scores of the documents that a query found."""
Block = tuple[int, npt.NDArray[Any] | Ragged]
"""The row of the first document, and vectors in float32 or float16: a row for each document, or several rows."""


class Buffers(threading.local):
    """Arrays that a thread uses again. The system gives out fresh memory more slowly than the work on it takes."""

    def __init__(self) -> None:
        self._arrays: dict[str, npt.NDArray[Any]] = {}

    def array(self, name: str, shape: tuple[int, ...], kind: npt.DTypeLike) -> npt.NDArray[Any]:
        """Return an array with any content. The next one of this name and thread overwrites it."""
        size = math.prod(shape)
        if name not in self._arrays or len(self._arrays[name]) < size:
            self._arrays[name] = np.empty(size, kind)
        return self._arrays[name][:size].reshape(shape)

    def taken(self, name: str, vectors: npt.NDArray[Any], rows: Places) -> npt.NDArray[Any]:
        """Return a copy of some vectors. The next one of this name and thread overwrites it."""
        out = self.array(f"{name} {vectors.dtype}", (len(rows), vectors.shape[1]), vectors.dtype)
        return np.take(vectors, rows, axis=0, out=out, mode="clip")


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
        vectors = given.arrays["vectors"] if len(given.offsets) > 1 else np.empty((0, 0), np.float32)
        return cls(vectors, None if given.is_single else given.offsets)

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

    def parts(self, vectors: int) -> Iterator[tuple[int, int]]:
        """Yield the begin and the end of parts with at most this many vectors or one text."""
        begin = 0
        while begin < len(self):
            end = self.end_of_part(begin, len(self), vectors)
            yield begin, end
            begin = end

    def taken(self, places: Places, buffers: Buffers) -> TextVectors:
        """Return a copy of some texts in float64, which the next ones of this thread overwrite."""
        offsets = None
        if self.offsets is not None:
            sizes = self.sizes[places]
            offsets = np.append(np.int64(0), np.cumsum(sizes))
            places = np.repeat(self.offsets[places] - offsets[:-1], sizes) + np.arange(offsets[-1])
        stored = buffers.taken("stored", self.vectors, places)
        doubles = buffers.array("doubles", stored.shape, np.float64)
        doubles[:] = stored
        return TextVectors(doubles, offsets)

    def largest(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return for each text the largest of the values of its vectors, along lines; 0 without a vector."""
        if self.offsets is None:
            return values
        filled = np.flatnonzero(self.offsets[1:] > self.offsets[:-1])
        out = np.zeros((len(values), len(self)), values.dtype)
        if len(filled):
            # Along the lines of a matrix NumPy holds the interpreter lock. The end of a line ends its last part.
            starts = values.shape[1] * np.arange(len(values))[:, None] + self.offsets[filled]
            largest = np.maximum.reduceat(np.ascontiguousarray(values).ravel(), starts.ravel())
            out[:, filled] = largest.reshape(starts.shape)
        return out

    def sums(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return for each text the sum of the values of its vectors, along columns; 0 without a vector."""
        if self.offsets is None:
            return values
        filled = np.flatnonzero(self.offsets[1:] > self.offsets[:-1])
        out = np.zeros((len(self), *values.shape[1:]), values.dtype)
        if len(filled):
            out[filled] = np.add.reduceat(values, self.offsets[filled], axis=0)
        return out


Part = tuple[int, TextVectors]
"""The row of the first of some documents, and their vectors."""


def rows_of(parts: Sequence[Part]) -> Rows:
    """Return the rows of all documents of some parts."""
    return np.concatenate([np.arange(first, first + len(texts), dtype=np.int32) for first, texts in parts])
