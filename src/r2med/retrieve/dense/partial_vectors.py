"""The vectors of a shard that is not finished yet: kept every minute, so that a kill loses no more than that.

An encoder sorts a shard's texts by length and finishes them batch by batch. What is finished is kept in parts, each
with the positions of its texts. A run that goes on encodes the other texts, in the very batches in which an undisturbed
run would have encoded them.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from r2med.cost import Cost
from r2med.encoders.encoder import Encoded, Vectors
from r2med.errors import UserError
from r2med.store import Artefact, Store
from r2med.store.files import write_array

EVERY = 60.0
"""Seconds between two parts."""

KIND = "vector-parts"


class PartialVectors:
    """The finished part of the vectors of some texts, in the store under a key."""

    def __init__(self, store: Store, key: str) -> None:
        self._store = store
        self._key = key
        self._parts: list[Artefact] = []
        while (part := store.get(KIND, self._name(len(self._parts)))) is not None:
            self._parts.append(part)
        self._earlier = tuple(self._parts)
        self._waiting: list[tuple[Sequence[int], Encoded]] = []
        self._written = time.perf_counter()

    def __len__(self) -> int:
        return sum(len(part.array("positions")) for part in self._earlier)

    def missing(self, count: int) -> list[int]:
        """Return the positions, of so many texts, that no earlier run kept."""
        done = np.zeros(count, dtype=bool)
        for part in self._earlier:
            done[part.array("positions")] = True
        return [int(position) for position in np.flatnonzero(~done)]

    def add(self, positions: Sequence[int], encoded: Encoded) -> None:
        """Take in a finished batch; it is written with others, once a minute."""
        self._waiting.append((positions, encoded))
        if time.perf_counter() - self._written >= EVERY:
            self.write()

    def write(self) -> None:
        """Write what was taken in since the last time."""
        if not self._waiting:
            return
        now = time.perf_counter()
        seconds = now - self._written
        cost = sum((encoded.cost for _, encoded in self._waiting), Cost(seconds=seconds, encoder_seconds=seconds))
        positions = np.concatenate([np.asarray(positions, dtype=np.int64) for positions, _ in self._waiting])
        vectors = np.concatenate([encoded.vectors for _, encoded in self._waiting])

        def build(folder: Path) -> dict[str, Any]:
            write_array(folder / "positions.npy", positions)
            write_array(folder / "vectors.npy", vectors)
            return {"cost": cost.as_dict()}

        self._parts.append(self._store.make(KIND, self._name(len(self._parts)), build))
        self._waiting.clear()
        self._written = now

    def joined(self, count: int, missing: Sequence[int], encoded: Encoded) -> Encoded:
        """Return the vectors of so many texts: those of earlier runs, and those of the texts that were missing."""
        if not self._earlier:
            return encoded
        width = self._earlier[0].array("vectors").shape[1]
        if missing and encoded.vectors.shape[1] != width:
            raise UserError(f"the model returned vectors of {encoded.vectors.shape[1]} entries after some of {width}")
        vectors: Vectors = np.empty((count, width), dtype=np.float32)
        cost = encoded.cost
        for part in self._earlier:
            vectors[part.array("positions")] = part.array("vectors")
            cost += Cost.from_dict(part.meta["cost"])
        if missing:
            vectors[np.asarray(missing, dtype=np.int64)] = encoded.vectors
        return Encoded(vectors, cost)

    def discard(self) -> None:
        """Remove the parts: the whole is in the store."""
        with contextlib.suppress(UserError):  # without locks they stay; they are right, only superfluous
            for number in range(len(self._parts)):
                self._store.discard(KIND, self._name(number))

    def _name(self, number: int) -> str:
        return f"{self._key}-{number}"
