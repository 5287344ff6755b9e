"""Texts whose representations have different sizes: one vector, a vector for each token, or a weight for some terms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from r2med.foundation.core.cost import Cost

Offsets = npt.NDArray[np.int64]
Origins = npt.NDArray[np.int32]
"""Two numbers for each text: the number of a part, and the place of the text in it."""


@dataclass(frozen=True)
class Ragged:
    """Some rows for each text, one text after the other, in one or several arrays of the same length."""

    arrays: Mapping[str, npt.NDArray[Any]]
    offsets: Offsets
    """Where the rows of each text begin, and where those of the last one end."""
    cost: Cost = field(default_factory=Cost)

    @classmethod
    def single(cls, vectors: npt.NDArray[Any], cost: Cost | None = None) -> Ragged:
        """Return the rows of texts that have one vector each."""
        vectors = np.asarray(vectors, dtype=np.float32)
        return cls({"vectors": vectors}, np.arange(len(vectors) + 1, dtype=np.int64), cost or Cost())

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def is_single(self) -> bool:
        """True if each text has one row."""
        return bool((np.diff(self.offsets) == 1).all())

    @property
    def vectors(self) -> npt.NDArray[Any]:
        """The vectors of all texts, one text after the other."""
        return self.arrays["vectors"]

    def rows(self, name: str, text: int) -> npt.NDArray[Any]:
        """Return the rows of one text in one of the arrays."""
        return self.arrays[name][self.offsets[text] : self.offsets[text + 1]]

    def part(self, first: int, end: int) -> Ragged:
        """Return some consecutive texts, without a copy of their rows. Their cost is not known."""
        rows = slice(int(self.offsets[first]), int(self.offsets[end]))
        return Ragged(
            {name: array[rows] for name, array in self.arrays.items()}, self.offsets[first : end + 1] - rows.start
        )

    def zeros(self) -> int:
        """Return the number of texts whose rows are all zero. They score 0 with everything."""
        values = self.arrays["vectors" if "vectors" in self.arrays else "weights"]
        counts = np.append(0, np.cumsum(values.any(axis=1) if values.ndim > 1 else values != 0))
        return int((counts[self.offsets[1:]] == counts[self.offsets[:-1]]).sum())


def joined(parts: Sequence[Mapping[str, npt.NDArray[Any]]], cost: Cost) -> Ragged:
    """Return the rows of texts that were encoded one by one."""
    sizes = [len(next(iter(part.values()))) for part in parts]
    arrays = {name: np.concatenate([part[name] for part in parts]) for name in (parts[0] if parts else ())}
    return Ragged(arrays, np.append(np.int64(0), np.cumsum(sizes, dtype=np.int64)), cost)


def gathered(parts: Sequence[Ragged], origins: Origins, cost: Cost) -> Ragged:
    """Return a copy of texts that lie in several parts. Parts without texts may have arrays of another width."""
    numbers, places = origins[:, 0], origins[:, 1]
    chosen = [(part, np.flatnonzero(numbers == number)) for number, part in enumerate(parts)]
    used = [(part, at, places[at]) for part, at in chosen if len(at)]
    sizes = np.zeros(len(origins), dtype=np.int64)
    for part, at, wanted in used:
        sizes[at] = np.diff(part.offsets)[wanted]
    offsets = np.append(np.int64(0), np.cumsum(sizes))
    models = (used[0][0] if used else parts[0]).arrays
    arrays = {name: np.empty((offsets[-1], *each.shape[1:]), each.dtype) for name, each in models.items()}
    for part, at, wanted in used:
        into, rows = _spans(offsets[at], sizes[at]), _spans(part.offsets[wanted], sizes[at])
        for name, array in arrays.items():
            array[into] = part.arrays[name][rows]
    return Ragged(arrays, offsets, cost)


def _spans(starts: Offsets, sizes: Offsets) -> Offsets:
    """Return the numbers of all rows of some texts, from their first rows and their numbers of rows."""
    before = np.cumsum(sizes) - sizes
    return np.repeat(starts - before, sizes) + np.arange(int(sizes.sum()), dtype=np.int64)
