"""What searches of the same documents leave to the next ones."""

from __future__ import annotations

import numpy as np

from r2med.encoders.encoder import Vectors
from r2med.retrieve.dense.exact.gpu_loader import Chunk


class Kept:
    """Vectors on a GPU, if they fit there, and what makes products of documents cosines."""

    def __init__(self) -> None:
        self._chunks: dict[tuple[str, bool], list[Chunk]] = {}
        self._factors: Vectors = np.empty(0, np.float32)

    def chunks(self, device: str, cosine: bool) -> list[Chunk]:
        """Return what is on a device: for cosines, vectors of length 1."""
        return self._chunks.setdefault((device, cosine), [])

    def factors(self, count: int) -> Vectors:
        """Return a factor for each of so many documents, NaN where none is known.

        Searches, several at a time, write numbers over NaN, and nothing else.
        """
        if len(self._factors) != count:
            self._factors = np.full(count, np.nan, np.float32)
        return self._factors
