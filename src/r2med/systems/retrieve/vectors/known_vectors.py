"""Find vectors of texts that were encoded for another corpus, such as an earlier version of this one.

Texts are compared by their digests, which are saved beside the vectors of each shard. This needs 16 bytes of memory for
each earlier document. At most `MAX_DOCUMENTS` documents are used, the newest first.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from r2med.foundation.core.cost import Cost, total
from r2med.foundation.store import Artefact, Store
from r2med.foundation.store.artefacts import META
from r2med.foundation.store.files import text_digest
from r2med.models.encoders.ragged import Origins, Ragged, gathered
from r2med.systems.retrieve.vectors.vector_shard import read_ragged, texts_digest

MAX_DOCUMENTS = 10_000_000
"""Maximum number of earlier documents that are kept in memory."""

Digests = npt.NDArray[np.uint64]
"""Two numbers for each text: the first 16 bytes of its SHA-256."""


def text_digests(texts: Iterable[str]) -> Digests:
    """Return the digests of texts."""
    return np.frombuffer(b"".join(text_digest(text)[:16] for text in texts), dtype="<u8").reshape(-1, 2)


@dataclass(frozen=True)
class TakenVectors:
    """Vectors of a shard's texts that other shards have."""

    positions: npt.NDArray[np.int64]
    """Positions of the texts in the shard, ascending."""
    sources: tuple[tuple[str, str], ...]
    """The key of each other shard that is used, and a digest of its texts."""
    origins: Origins
    """The number of the source of each text, from 1, and its place there."""
    cost: Cost
    """What it cost to make these vectors."""
    zeros: int
    """Number of these texts whose vectors are all zero."""
    nothing: Ragged
    """Vectors of no text, of the same form."""


class KnownVectors:
    """The vectors of other corpora by one encoder."""

    def __init__(self, shards: Sequence[Artefact]) -> None:
        self._shards = shards
        firsts = [np.array(shard.array("digests")[:, 0]) for shard in shards]
        self._starts = np.cumsum([0, *map(len, firsts)])
        joined = np.concatenate(firsts)
        self._order = np.argsort(joined, kind="stable")
        self._sorted = joined[self._order]

    @classmethod
    def find(cls, store: Store, kind: str, encoder: str, corpus: str) -> KnownVectors | None:
        """Return the vectors of an encoder for all corpora except this one.

        `encoder` is the digest of its key. `corpus` is the fingerprint of the current corpus. It is left out
        because its own shards are found by their keys.
        """
        shards, documents = [], 0
        for path in _newest_first((store.root / kind).glob(f"*/{META}")):
            meta = json.loads(path.read_bytes())
            if meta.get("encoder") != encoder or meta.get("corpus") == corpus:
                continue
            # It belongs to the datasets whose texts are found in it, which is not known yet.
            shard = store.about(alone=True).get(kind, path.parent.name)
            if shard is None or not len(shard.array("digests")):
                continue
            documents += len(shard.array("digests"))
            if documents > MAX_DOCUMENTS:
                break
            shards.append(shard)
        return cls(shards) if shards else None

    def take(self, texts: Sequence[str]) -> TakenVectors | None:
        """Return where the vectors of known texts are, or None if no text is known."""
        digests = text_digests(texts)
        at = np.minimum(np.searchsorted(self._sorted, digests[:, 0]), len(self._sorted) - 1)
        found = np.flatnonzero(self._sorted[at] == digests[:, 0])
        rows = self._order[at[found]]
        numbers = np.searchsorted(self._starts, rows, side="right") - 1
        places = rows - self._starts[numbers]
        # A text may match only the first half of the digest.
        same = np.zeros(len(found), dtype=bool)
        for number in np.unique(numbers):
            mine = numbers == number
            same[mine] = self._shards[number].array("digests")[places[mine], 1] == digests[found[mine], 1]
        found, numbers, places = found[same], numbers[same], places[same]
        if not len(found):
            return None
        used, of_used = np.unique(numbers, return_inverse=True)
        sources = [self._shards[number] for number in used]
        origins = np.stack((of_used, places), axis=1).astype(np.int32)
        return TakenVectors(
            found,
            tuple((source.path.name, texts_digest(source)) for source in sources),
            origins + np.array([1, 0], dtype=np.int32),
            total(_cost_of(source, int((of_used == number).sum())) for number, source in enumerate(sources)),
            _zeros(sources, origins),
            gathered([read_ragged(sources[0])], origins[:0]),
        )


def _zeros(sources: Sequence[Artefact], origins: Origins) -> int:
    if not any(source.meta.get("zeros") for source in sources):
        return 0
    return gathered([read_ragged(source) for source in sources], origins).zeros()


def _cost_of(source: Artefact, texts: int) -> Cost:
    """Return the cost of making the vectors of some texts of a folder: a share of the cost of all."""
    cost = Cost.from_dict(source.meta.get("own_cost", source.meta["cost"]))
    return cost.times(texts / len(source.array("digests")))


def _newest_first(files: Iterable[Path]) -> list[Path]:
    return sorted(files, key=lambda path: (-path.stat().st_mtime_ns, path.parent.name))
