"""Find vectors of texts that were encoded for another corpus, such as an earlier version of this one.

Texts are compared by their digests, which are saved beside each shard of vectors. This needs 16 bytes of memory for
each earlier document. At most `MAX_DOCUMENTS` documents are used, the newest first.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from r2med.foundation.core.cost import Cost, total
from r2med.foundation.store import Artefact, Store, about
from r2med.foundation.store.files import text_digest
from r2med.foundation.store.manifest import MANIFEST
from r2med.models.encoders.encoder import Vectors

MAX_DOCUMENTS = 10_000_000
"""Maximum number of earlier documents that are kept in memory."""

Digests = npt.NDArray[np.uint64]
"""Two numbers for each text: the first 16 bytes of its SHA-256."""


def text_digests(texts: Iterable[str]) -> Digests:
    """Return the digests of texts."""
    return np.frombuffer(b"".join(text_digest(text)[:16] for text in texts), dtype="<u8").reshape(-1, 2)


@dataclass(frozen=True)
class KnownVectors:
    """Vectors that need not be computed: positions of the texts, their vectors, and the cost of making these."""

    positions: npt.NDArray[np.int64]
    vectors: Vectors
    cost: Cost


class EarlierVectors:
    """The vectors of other corpora by one encoder."""

    def __init__(self, shards: Sequence[Artefact]) -> None:
        self._shards = shards
        firsts = [np.array(shard.array("digests")[:, 0]) for shard in shards]
        self._starts = np.cumsum([0, *map(len, firsts)])
        joined = np.concatenate(firsts)
        self._order = np.argsort(joined, kind="stable")
        self._sorted = joined[self._order]

    @classmethod
    def find(cls, store: Store, encoder: str, corpus: str) -> EarlierVectors | None:
        """Return the vectors of an encoder for all corpora except this one.

        `encoder` is the digest of its key. `corpus` is the fingerprint of the current corpus. It is left out
        because its own shards are found by their keys.
        """
        shards, documents = [], 0
        for path in _newest_first((store.root / "vectors").glob(f"*/{MANIFEST}")):
            meta = _meta(path)
            if meta.get("encoder") != encoder or meta.get("corpus") == corpus:
                continue
            with about(alone=True):  # The vectors are copied, so the shard still belongs to its own dataset only.
                shard = store.get("vectors", path.parent.name)
            if shard is None:
                continue
            documents += len(shard.array("digests"))
            if documents > MAX_DOCUMENTS:
                break
            shards.append(shard)
        return cls(shards) if shards else None

    def take(self, texts: Sequence[str]) -> KnownVectors | None:
        """Return the vectors of the known texts, or None if no text is known."""
        digests = text_digests(texts)
        at = np.minimum(np.searchsorted(self._sorted, digests[:, 0]), len(self._sorted) - 1)
        found = np.flatnonzero(self._sorted[at] == digests[:, 0])
        rows = self._order[at[found]]
        numbers = np.searchsorted(self._starts, rows, side="right") - 1
        parts = []
        for number in np.unique(numbers):
            positions, own = found[numbers == number], rows[numbers == number] - self._starts[number]
            parts.append(_known(self._shards[number], own, positions, digests))
        parts = [part for part in parts if len(part.positions)]
        if not parts:
            return None
        positions = np.concatenate([part.positions for part in parts])
        vectors = np.concatenate([part.vectors for part in parts])
        return KnownVectors(positions, vectors, total(part.cost for part in parts))


def _known(
    shard: Artefact, rows: npt.NDArray[np.int64], positions: npt.NDArray[np.int64], digests: Digests
) -> KnownVectors:
    """Return the vectors of rows of a shard, without texts that match only the first half of the digest."""
    same = shard.array("digests")[rows, 1] == digests[positions, 1]
    share = float(same.sum()) / len(shard.array("digests"))
    cost = Cost.from_dict(shard.meta["cost"])
    return KnownVectors(positions[same], np.array(shard.array("vectors")[rows[same]]), _share(cost, share))


def _share(cost: Cost, share: float) -> Cost:
    return Cost(
        seconds=cost.seconds * share,
        encoder_seconds=cost.encoder_seconds * share,
        texts=round(cost.texts * share),
        tokens=round(cost.tokens * share),
        cut=round(cost.cut * share),
        dollars=cost.dollars * share,
        unpriced=round(cost.unpriced * share),
    )


def _newest_first(manifests: Iterable[Path]) -> list[Path]:
    finished = [path for path in manifests if "~" not in path.parent.name]
    return sorted(finished, key=lambda path: (-path.stat().st_mtime_ns, path.parent.name))


def _meta(manifest: Path) -> dict[str, Any]:
    try:
        meta: dict[str, Any] = json.loads(manifest.read_bytes())["meta"]
    # The shard is damaged. It is made again when its own corpus is searched.
    except (OSError, ValueError, KeyError, TypeError):
        return {}
    return meta if isinstance(meta, dict) else {}
