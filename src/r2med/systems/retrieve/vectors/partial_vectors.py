"""The finished part of the vectors of some texts, so that an interrupted run loses at most a minute of encoding."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from r2med.foundation.core.cost import Cost, total
from r2med.foundation.core.errors import UserError
from r2med.foundation.store import Artefact, Store
from r2med.foundation.store.files import write_array
from r2med.foundation.store.library_versions import Versions
from r2med.models.encoders.ragged import Ragged, gathered
from r2med.systems.retrieve.vectors.vector_shard import read_ragged, write_ragged

PART_SECONDS = 60.0
"""Seconds between two parts. A kill loses at most the work of this time."""

PARTS_KIND = "vector-parts"


class PartialVectors:
    """The finished part of the vectors of a shard, saved in the store under the shard's key."""

    def __init__(self, store: Store, key: str, versions: Versions | None = None) -> None:
        self._store = store
        self._key = key
        self._versions = versions  # of the libraries that make new parts
        self._parts: list[Artefact] = []
        while (part := store.get(PARTS_KIND, self._name(len(self._parts)))) is not None:
            self._parts.append(part)
        self._earlier = tuple(self._parts)
        self._waiting: list[tuple[Sequence[int], Ragged]] = []
        self._written = time.perf_counter()

    def __len__(self) -> int:
        return sum(len(part.array("positions")) for part in self._earlier)

    def missing(self, wanted: Sequence[int]) -> list[int]:
        """Return those positions of texts that no earlier run has saved."""
        done = {int(position) for part in self._earlier for position in part.array("positions")}
        return [position for position in wanted if position not in done]

    def add(self, positions: Sequence[int], encoded: Ragged) -> None:
        """Add a finished batch. Batches are written together, once a minute."""
        self._waiting.append((positions, encoded))
        if time.perf_counter() - self._written >= PART_SECONDS:
            self.write()

    def write(self) -> None:
        """Write the batches added since the last write."""
        if not self._waiting:
            return
        now = time.perf_counter()
        seconds = now - self._written
        cost = sum((encoded.cost for _, encoded in self._waiting), Cost(seconds=seconds, encoder_seconds=seconds))
        batches = [encoded for _, encoded in self._waiting]
        ends = [(number, place) for number, batch in enumerate(batches) for place in range(len(batch))]
        vectors = gathered(batches, np.array(ends, dtype=np.int32))

        def build(folder: Path) -> dict[str, Any]:
            positions = np.concatenate([np.asarray(positions, dtype=np.int64) for positions, _ in self._waiting])
            write_array(folder / "positions.npy", positions)
            versions = {"versions": self._versions} if self._versions else {}
            return {"cost": cost.as_dict(), **versions, **write_ragged(vectors, folder)}

        self._parts.append(self._store.make(PARTS_KIND, self._name(len(self._parts)), build))
        self._waiting.clear()
        self._written = now

    def joined(self, wanted: Sequence[int], missing: Sequence[int], encoded: Ragged | None) -> Ragged:
        """Return the vectors of wanted positions: those of earlier runs and those of the missing texts."""
        parts = [read_ragged(part) for part in self._earlier]
        if encoded is not None:
            if not parts:
                return encoded
            _check_width(encoded, parts[0])
            parts.append(encoded)
        origin = {
            int(position): (number, place)
            for number, part in enumerate([*(part.array("positions") for part in self._earlier), missing])
            for place, position in enumerate(part)
        }
        origins = np.array([origin[position] for position in wanted], dtype=np.int32).reshape(-1, 2)
        found = gathered(parts, origins)
        return Ragged(found.arrays, found.offsets, total(part.cost for part in parts))

    def discard(self) -> None:
        """Remove the parts, because the complete vectors are in the store."""
        with contextlib.suppress(UserError):  # Without locks the parts stay. They are correct, but no longer needed.
            for number in range(len(self._parts)):
                self._store.discard(PARTS_KIND, self._name(number))

    def _name(self, number: int) -> str:
        return f"{self._key}-{number}"


def _check_width(encoded: Ragged, earlier: Ragged) -> None:
    """Raise UserError if a model returned vectors of another length than before."""
    for name, array in encoded.arrays.items():
        now, before = (each.shape[1:] for each in (array, earlier.arrays[name]))
        if now != before:
            raise UserError(f"the model returned vectors of {now[0]} entries; earlier vectors have {before[0]}")
