"""What searches of the same documents leave to the next ones."""

from __future__ import annotations

import numpy as np

from r2med.encoders.encoder import Vectors
from r2med.retrieve.dense.exact.gpu_loader import Chunk


class Kept:
    """Vectors on a GPU, if they fit there, and what makes products of documents cosines."""

    def __init__(self) -> None:
        self.chunks: list[Chunk] = []
        self._factors: Vectors = np.empty(0, np.float32)

    def factors(self, count: int) -> Vectors:
        """Return a factor for each of so many documents, NaN where it is not known; searches write it there."""
        if len(self._factors) != count:
            self._factors = np.full(count, np.nan, np.float32)
        return self._factors
