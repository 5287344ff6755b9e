"""A shard of stored vectors: those of consecutive documents, in its own folder and in those of earlier corpora.

A folder has an array for each part of a representation: `vectors`, or `terms` and `weights`. If some text does not have
exactly one row, `offsets` says where the rows of each text begin. Vectors of texts that were encoded for an earlier
corpus are not stored again: `origins` says for each document in which folder its vectors are (0 is the shard's own),
and at which place.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from r2med.foundation.core.cost import Cost
from r2med.foundation.store import Artefact, Store
from r2med.foundation.store.files import write_array
from r2med.foundation.store.library_versions import listed, note_versions, noted_versions
from r2med.foundation.store.reads import unnoted_reads
from r2med.models.encoders.encoder import Vectors
from r2med.models.encoders.ragged import Origins, Ragged, gathered

MAX_PARTS = 64
"""Number of parts of a shard that are searched where they are, as slices of memory-mapped files.

A search would lose its time with smaller parts, so they are copied to one array in memory when the shard is opened.
"""


@dataclass(frozen=True)
class VectorShard:
    """The vectors of consecutive documents."""

    own: Artefact
    """The folder of the shard."""
    sources: tuple[Artefact, ...] = ()
    """Folders of earlier corpora that have vectors of this shard's texts."""

    @property
    def key(self) -> str:
        """The key in the store."""
        return self.own.path.name

    @property
    def start(self) -> int:
        """The row of the first document in the corpus."""
        return int(self.own.meta["start"])

    @property
    def cost(self) -> Cost:
        """The cost of making all its vectors."""
        return Cost.from_dict(self.own.meta["cost"])

    def __len__(self) -> int:
        return len(self.own.array("origins")) if self.sources else len(read_ragged(self.own))

    @cached_property
    def parts(self) -> tuple[Ragged, ...]:
        """The vectors of all documents in their order, memory-mapped where they are."""
        folders = [read_ragged(folder) for folder in (self.own, *self.sources)]
        if not self.sources:
            return tuple(folders)
        origins = np.array(self.own.array("origins"))
        follows = (origins[1:, 0] == origins[:-1, 0]) & (origins[1:, 1] == origins[:-1, 1] + 1)
        firsts = [0, *(np.flatnonzero(~follows) + 1).tolist()]
        if len(firsts) > MAX_PARTS:
            return (gathered(folders, origins),)
        ends = [*firsts[1:], len(origins)]
        spans = [(*origins[first].tolist(), end - first) for first, end in zip(firsts, ends, strict=True)]
        return tuple(folders[number].part(place, place + size) for number, place, size in spans)

    @property
    def blocks(self) -> tuple[tuple[int, Vectors], ...]:
        """Pairs of (first row in the corpus, vectors), if each document has one vector."""
        ends = np.cumsum([self.start, *map(len, self.parts)]).tolist()
        return tuple((first, part.arrays["vectors"]) for first, part in zip(ends, self.parts, strict=False))

    def write_whole(self, folder: Path) -> dict[str, Any]:
        """Write all vectors into one folder, as if all texts had been encoded for this corpus. Return its metadata."""
        folders, origins = (self.own, *self.sources), np.asarray(self.own.array("origins"))
        _write(gathered([read_ragged(each) for each in folders], origins), folder)
        write_array(folder / "digests.npy", digests_of(folders, origins))
        with noted_versions() as versions:
            for each in folders:
                note_versions(each.meta)
        meta = {name: value for name, value in self.own.meta.items() if name not in ("sources", "own_cost")}
        return {**meta, **({"versions": listed(versions)} if versions else {})}


def open_shard(store: Store, kind: str, key: str) -> VectorShard | None:
    """Return a shard of the store; None if it is missing, or if vectors that it took from another shard are."""
    own = store.get(kind, key)
    if own is None:
        return None
    sources = []
    for source, texts in own.meta.get("sources", ()):
        with unnoted_reads():  # a pack gets the vectors of this shard only, and not those of other texts
            found = store.get(kind, source)
        if found is None or texts_digest(found) != texts:
            return None
        sources.append(found)
    return VectorShard(own, tuple(sources))


def texts_digest(folder: Artefact) -> str:
    """Return a digest of the texts whose vectors a folder has, in their order."""
    return hashlib.sha256(folder.array("digests").tobytes()).hexdigest()[:32]


def digests_of(folders: tuple[Artefact, ...], origins: Origins) -> Any:
    """Return the digests of the texts of a shard."""
    return gathered([Ragged.single(folder.array("digests")) for folder in folders], origins).arrays["vectors"]


def read_ragged(folder: Artefact) -> Ragged:
    """Return the vectors in a folder, memory-mapped."""
    arrays = {name: folder.array(name) for name in folder.meta.get("arrays", ["vectors"])}
    if not (folder.path / "offsets.npy").exists():
        offsets = np.arange(len(next(iter(arrays.values()))) + 1, dtype=np.int64)
    else:
        offsets = np.array(folder.array("offsets"))
    return Ragged(arrays, offsets, Cost.from_dict(folder.meta["cost"]))


def write_ragged(ragged: Ragged, folder: Path) -> dict[str, Any]:
    """Write vectors into a folder and return what its metadata must say about them."""
    _write(ragged, folder)
    return {"arrays": sorted(ragged.arrays)} if list(ragged.arrays) != ["vectors"] else {}


def _write(ragged: Ragged, folder: Path) -> None:
    for name, array in ragged.arrays.items():
        write_array(folder / f"{name}.npy", array)
    if not ragged.is_single:
        write_array(folder / "offsets.npy", ragged.offsets)
