"""What a model makes of a corpus in the store, when a text has many rows: in shards, written as they come."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from r2med.data.corpus import Corpus
from r2med.foundation.core.cost import Cost
from r2med.foundation.engine.reporting import Reporter
from r2med.foundation.engine.work import HERE, THREADS, Engine, Needs, Work
from r2med.foundation.store import Artefact, Store, digest
from r2med.foundation.store.files import write_array
from r2med.foundation.store.library_versions import versions_of
from r2med.models.encoders.encoder import Role, check_same_key, receiving
from r2med.models.encoders.ragged import Ragged, RaggedEncoder

VERSION = 1
SHARD = 512
"""Documents of a shard: what a kill loses. With 300 tokens of 128 numbers they take 40 MB."""


@dataclass(frozen=True)
class RaggedShard:
    """Consecutive documents, and the key of their rows."""

    key: str
    start: int
    documents: Corpus

    def __len__(self) -> int:
        return len(self.documents)

    def read(self) -> list[str]:
        """Return the texts."""
        return [text for _, _, batch in self.documents.batches() for text in batch.to_pylist()]


@dataclass(frozen=True)
class EncodeRagged(Work[RaggedShard, Artefact]):
    """Encodes shards of texts, on any machine that opens the encoder as this one did."""

    encoder: RaggedEncoder
    key: dict[str, Any]
    reporter: Reporter

    @property
    def needs(self) -> Needs:
        """Where it can be done."""
        needs: Needs = getattr(self.encoder, "needs", HERE)
        return needs

    def check(self) -> None:
        """Raise UserError if the encoder has a different key on this machine."""
        check_same_key(self.key, self.encoder.key("document"))

    def __call__(self, shard: RaggedShard, store: Store) -> Artefact:
        """Return the rows in the store, encoded if they are not there."""
        return store.make(self.encoder.shards_in, shard.key, partial(self._build, shard))

    def _build(self, shard: RaggedShard, folder: Path) -> dict[str, Any]:
        with receiving(lambda positions, encoded: self.reporter.advance(len(positions))):
            meta = _write(self.encoder.encode_ragged(shard.read(), "document"), folder)
        return {**meta, "start": shard.start, "versions": versions_of(self.encoder)}


def _write(ragged: Ragged, folder: Path) -> dict[str, Any]:
    for name, array in ragged.arrays.items():
        write_array(folder / f"{name}.npy", array)
    write_array(folder / "offsets.npy", ragged.offsets)
    return {"cost": ragged.cost.as_dict(), "arrays": sorted(ragged.arrays)}


def encode_corpus(corpus: Corpus, encoder: RaggedEncoder, store: Store, engine: Engine = THREADS) -> list[Artefact]:
    """Return the shards of a corpus in their order, encoding those that the store does not have."""
    key = encoder.key("document")
    starts = range(0, len(corpus), SHARD)
    keys = {start: digest([VERSION, key, corpus.fingerprint, start, SHARD]) for start in starts}
    made = {start: store.get(encoder.shards_in, key) for start, key in keys.items()}
    missing = [start for start, shard in made.items() if shard is None]
    left = sum(min(SHARD, len(corpus) - start) for start in missing)
    work = EncodeRagged(encoder, key, Reporter("documents", len(corpus), before=len(corpus) - left))
    shards = (RaggedShard(keys[start], start, corpus.part(start, start + SHARD)) for start in missing)
    done = len(corpus) - left
    for shard, artefact in engine.map(work, shards, store, work.needs):
        made[shard.start] = artefact
        done += len(shard)
        work.reporter.reach(done)
    return [shard for shard in made.values() if shard is not None]


def encode_texts(texts: Sequence[str], role: Role, encoder: RaggedEncoder, store: Store | None) -> Ragged:
    """Return the rows of queries, from the store if these very texts are there."""
    if store is None:
        return encoder.encode_ragged(texts, role)

    def build(folder: Path) -> dict[str, Any]:
        return {**_write(encoder.encode_ragged(texts, role), folder), "versions": versions_of(encoder)}

    key = digest([VERSION, encoder.key(role), list(texts)])
    return opened(store.make(f"query-{encoder.shards_in}", key, build))


def opened(artefact: Artefact) -> Ragged:
    """Return the rows of an artefact, memory-mapped."""
    arrays = {name: artefact.array(name) for name in artefact.meta["arrays"]}
    return Ragged(arrays, np.asarray(artefact.array("offsets")), Cost.from_dict(artefact.meta["cost"]))
