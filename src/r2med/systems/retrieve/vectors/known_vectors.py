"""Find vectors of texts that were encoded for another corpus, such as an earlier version of this one.

Texts are compared by their digests, which are saved beside the vectors of each shard. This needs 16 bytes of memory for
each earlier document. At most `MAX_DOCUMENTS` documents are used, the newest first.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from r2med.foundation.core.cost import Cost, total
from r2med.foundation.store import Artefact, Store
from r2med.foundation.store.artefacts import META
from r2med.foundation.store.files import text_digest
from r2med.foundation.store.reads import Versions, joined
from r2med.models.encoders.ragged import Ragged, gathered
from r2med.systems.retrieve.vectors.vector_shard import check_shape, read_ragged

MAX_DOCUMENTS = 10_000_000
"""Maximum number of earlier documents that are kept in memory."""

Digests = npt.NDArray[np.uint64]
"""Two numbers for each text: the first 16 bytes of its SHA-256."""


def text_digests(texts: Iterable[str]) -> Digests:
    """Return the digests of texts."""
    return np.frombuffer(b"".join(text_digest(text)[:16] for text in texts), dtype="<u8").reshape(-1, 2)


@dataclass(frozen=True)
class TakenVectors:
    """Vectors of some texts of a shard, which were made for another corpus."""

    positions: npt.NDArray[np.int64]
    """Positions of the texts in the shard, ascending."""
    vectors: Ragged
    """Their vectors, and what it cost to make them."""
    versions: Versions
    """Versions of the libraries that made them."""

    def missing(self, count: int) -> list[int]:
        """Return the positions of the other texts of a shard of `count` texts."""
        return list(map(int, np.setdiff1d(np.arange(count), self.positions)))

    def with_others(self, encoded: Ragged, positions: Sequence[int]) -> Ragged:
        """Return the vectors of all texts of the shard, with those of the texts at the other positions."""
        origins = np.empty((len(positions) + len(self.positions), 2), dtype=np.int32)
        for number, here in enumerate((np.asarray(positions), self.positions)):
            origins[here, 0] = number
            origins[here, 1] = np.arange(len(here))
        return gathered([encoded, self.vectors], origins, encoded.cost + self.vectors.cost)


class KnownVectors:
    """The vectors of other corpora by one encoder."""

    def __init__(self, shards: Sequence[Artefact]) -> None:
        self._shards = shards
        firsts = [np.array(shard.array("digests")[:, 0]) for shard in shards]
        self._starts = np.cumsum([0, *map(len, firsts)])
        firsts_of_all = np.concatenate(firsts)
        self._order = np.argsort(firsts_of_all, kind="stable")
        self._sorted = firsts_of_all[self._order]

    @classmethod
    def find(cls, store: Store, kind: str, encoder: str, corpus: str) -> KnownVectors | None:
        """Return the vectors of an encoder for all corpora except this one.

        `encoder` is the digest of its key. `corpus` is the fingerprint of the current corpus. It is left out
        because its own shards are found by their keys.
        """
        shards, documents = [], 0
        paths = sorted(
            (store.root / kind).glob(f"*/{META}"), key=lambda path: (-path.stat().st_mtime_ns, path.parent.name)
        )
        for path in paths:  # the newest first
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
        """Return the vectors of known texts, or None if no text is known."""
        digests = text_digests(texts)
        at = np.minimum(np.searchsorted(self._sorted, digests[:, 0]), len(self._sorted) - 1)
        positions = np.flatnonzero(self._sorted[at] == digests[:, 0])
        rows = self._order[at[positions]]
        numbers = np.searchsorted(self._starts, rows, side="right") - 1
        places = rows - self._starts[numbers]
        # A text may match only the first half of the digest.
        same = np.zeros(len(positions), dtype=bool)
        for number in np.unique(numbers):
            here = numbers == number
            same[here] = self._shards[number].array("digests")[places[here], 1] == digests[positions[here], 1]
        if not same.any():
            return None
        used, number_of = np.unique(numbers[same], return_inverse=True)
        sources = [self._shards[number] for number in used]
        origins = np.stack((number_of, places[same]), axis=1).astype(np.int32)
        cost = total(_cost_of(source, int((number_of == number).sum())) for number, source in enumerate(sources))
        versions = joined(*(source.meta.get("versions") for source in sources))
        parts = [read_ragged(source) for source in sources]
        for source, part in zip(sources, parts, strict=True):
            check_shape(source, part, len(source.array("digests")))
        vectors = gathered(parts, origins, cost)
        return TakenVectors(positions[same], vectors, versions)


def _cost_of(source: Artefact, texts: int) -> Cost:
    """Return the cost of making the vectors of some texts of a folder: a share of the cost of all."""
    return Cost.from_dict(source.meta["cost"]).times(texts / len(source.array("digests")))
