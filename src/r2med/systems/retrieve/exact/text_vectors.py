"""The vectors of consecutive texts: one for each text, or several. The best vector of a document counts."""

from __future__ import annotations

from collections.abc import Iterator
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


@dataclass(frozen=True)
class TextVectors:
    """Vectors of consecutive texts, one text after the other."""

    vectors: npt.NDArray[Any]
    offsets: Offsets | None = None
    """Where the vectors of each text begin, and where those of the last one end. None if each text has one vector."""

    @classmethod
    def of(cls, block: npt.NDArray[Any] | Ragged) -> TextVectors:
        """Return the vectors of an array with a row for each text, or of texts with any number of rows."""
        if not isinstance(block, Ragged):
            return cls(np.ascontiguousarray(block))
        vectors = block.arrays["vectors"] if len(block.offsets) > 1 else np.empty((0, 0), np.float32)
        return cls(vectors, None if block.is_single else block.offsets)

    def __len__(self) -> int:
        return len(self.vectors) if self.offsets is None else len(self.offsets) - 1

    @property
    def sizes(self) -> Offsets:
        """The number of vectors of each text."""
        return np.ones(len(self.vectors), np.int64) if self.offsets is None else np.diff(self.offsets)

    def text_of(self, vector: int) -> int:
        """Return the number of the text that has a vector."""
        return vector if self.offsets is None else int(np.searchsorted(self.offsets, vector, side="right")) - 1

    def span(self, begin: int, end: int) -> slice:
        """Return where the vectors of some consecutive texts are."""
        return slice(begin, end) if self.offsets is None else slice(int(self.offsets[begin]), int(self.offsets[end]))

    def part(self, begin: int, end: int) -> TextVectors:
        """Return some consecutive texts. Their vectors are not copied."""
        here = self.span(begin, end)
        offsets = None if self.offsets is None else self.offsets[begin : end + 1] - here.start
        return TextVectors(self.vectors[here], offsets)

    def parts(self, vectors: int, texts: int = 1 << 62) -> Iterator[tuple[int, int]]:
        """Yield the begin and the end of parts with at most this many vectors and texts, or with one text."""
        begin = 0
        while begin < len(self):
            end = begin + vectors
            if self.offsets is not None:
                end = int(np.searchsorted(self.offsets, self.offsets[begin] + vectors, side="right")) - 1
            end = max(begin + 1, min(end, begin + texts, len(self)))
            yield begin, end
            begin = end

    def taken(self, places: Places) -> TextVectors:
        """Return a copy of some texts."""
        if self.offsets is None:
            return TextVectors(np.take(self.vectors, places, axis=0))
        offsets = starts(self.sizes[places])
        vectors = np.repeat(self.offsets[places] - offsets[:-1], np.diff(offsets)) + np.arange(offsets[-1])
        return TextVectors(np.take(self.vectors, vectors, axis=0), offsets)

    def reduced(self, operation: np.ufunc, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return for each text the largest or the sum of the values of its vectors, along lines; 0 without a vector."""
        if self.offsets is None:
            return values
        filled = np.flatnonzero(self.offsets[1:] > self.offsets[:-1])
        out = np.zeros((len(values), len(self)), values.dtype)
        if len(filled):
            # Along the lines of a matrix NumPy holds the interpreter lock. The end of a line ends its last part.
            begins = values.shape[1] * np.arange(len(values))[:, None] + self.offsets[filled]
            out[:, filled] = operation.reduceat(values.ravel(), begins.ravel()).reshape(begins.shape)
        return out


Tile = list[tuple[Rows, TextVectors]]
"""Documents that are searched together: some rows, and the vectors of each."""


def joined_rows(tile: Tile) -> tuple[Rows, Offsets | None]:
    """Return the rows of all documents of a tile, and where their vectors begin and end."""
    rows = np.concatenate([rows for rows, _ in tile])
    is_single = all(texts.offsets is None for _, texts in tile)
    return rows, None if is_single else starts(np.concatenate([texts.sizes for _, texts in tile]))


def starts(sizes: Offsets) -> Offsets:
    """Return where the vectors of each text begin, and where those of the last one end."""
    return np.append(np.int64(0), np.cumsum(sizes))
