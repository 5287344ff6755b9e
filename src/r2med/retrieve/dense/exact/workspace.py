"""Memory that one search leaves to the next: the system takes as long to give fresh memory as a product takes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt


class Workspace:
    """Arrays by name, for one search at a time."""

    def __init__(self) -> None:
        self._arrays: dict[str, npt.NDArray[Any]] = {}

    def take(self, name: str, shape: tuple[int, ...], kind: type[np.generic]) -> npt.NDArray[Any]:
        """Return an array with whatever was left in it. A name has always the same kind of numbers."""
        size = math.prod(shape)
        array = self._arrays.get(name)
        if array is None or len(array) < size:
            array = self._arrays[name] = np.empty(size, kind)
        return array[:size].reshape(shape)

    @property
    def size(self) -> int:
        """Bytes of memory."""
        return sum(array.nbytes for array in self._arrays.values())
