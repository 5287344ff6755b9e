"""Embeddings in the store: a corpus in shards, written as they come, and sets of queries.

A shard's key holds the corpus, its rows and all that a document's vector depends on. A run that dies is
therefore never paid for twice: the next one encodes the shards that are missing. Changing what only queries
depend on leaves every shard valid.

An encoder sorts a shard's texts by length and finishes them batch by batch. What is finished is kept in parts, every
minute, each with the positions of its texts. A run that goes on encodes the other texts, in the very batches in which
an undisturbed run would have encoded them.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from r2med.cost import Cost, total
from r2med.data.corpus import Corpus
from r2med.encoders.encoder import Encoded, Encoder, NotFiniteError, Role, Vectors, check_finite, receiving
from r2med.engine.reporting import Reporter
from r2med.errors import UserError
from r2med.store import Artefact, Store, digest
from r2med.store.files import write_array

VERSION = 2
"""Of what is kept with the vectors."""

SHARD = 4096
"""Documents a shard: enough for batches of even lengths, few enough for a file."""

EVERY = 60.0
"""Seconds between two parts: what a kill loses at most."""

PARTS = "vector-parts"


@dataclass(frozen=True)
class Embeddings:
    """The vectors of a corpus, memory-mapped shard by shard."""

    shards: tuple[Artefact, ...]
    cost: Cost
    """What they took when they were made."""

    def blocks(self) -> Iterator[tuple[int, Vectors]]:
        """Yield (first row, vectors) in the order of the corpus."""
        for shard in self.shards:
            yield shard.meta["start"], shard.array("vectors")

    @property
    def dimension(self) -> int:
        """The length of a vector."""
        return int(self.shards[0].array("vectors").shape[1])


def embed_corpus(corpus: Corpus, encoder: Encoder, store: Store) -> Embeddings:
    """Return the vectors of every document, encoding the shards that the store does not have."""
    described = encoder.describe("document")
    starts = range(0, len(corpus), SHARD)
    keys = {start: digest([VERSION, described, corpus.fingerprint, start, SHARD]) for start in starts}
    shards = {start: store.get("vectors", key) for start, key in keys.items()}
    missing = [start for start, shard in shards.items() if shard is None]
    known = len(corpus) - sum(
        min(SHARD, len(corpus) - start) - len(PartialVectors(store, keys[start])) for start in missing
    )
    reporter = Reporter("documents", len(corpus), before=known)
    for start in missing:
        build = partial(_encode_shard, corpus, start, encoder, store, keys[start], reporter)
        shards[start] = store.make("vectors", keys[start], build)
        PartialVectors(store, keys[start]).discard()
    made = tuple(shard for shard in shards.values() if shard is not None)
    sizes = {shard.array("vectors").shape[1] for shard in made}
    if len(sizes) > 1:
        raise UserError(f"the model returned vectors of different lengths, {sorted(sizes)}: is it one model?")
    return Embeddings(made, total(Cost.from_dict(shard.meta["cost"]) for shard in made))


def embed_texts(texts: Sequence[str], role: Role, encoder: Encoder, store: Store | None) -> Encoded:
    """Return the vectors of queries or generated texts, from the store if these very texts are there."""

    def name(index: int) -> str:
        return f"query number {index + 1}"

    if store is None:
        return _encoded(encoder, texts, role, name)
    key = digest([VERSION, encoder.describe(role), list(texts)])

    def build(folder: Path) -> dict[str, Any]:
        encoded = _kept_encoded(encoder, texts, role, name, store, key, Reporter("queries", len(texts)))
        write_array(folder / "vectors.npy", encoded.vectors)
        return {"cost": encoded.cost.as_dict()}

    made = store.make("query-vectors", key, build)
    PartialVectors(store, key).discard()
    return Encoded(made.array("vectors"), Cost.from_dict(made.meta["cost"]))


def _encode_shard(
    corpus: Corpus, start: int, encoder: Encoder, store: Store, key: str, reporter: Reporter, folder: Path
) -> dict[str, Any]:
    texts = [text for _, _, batch in corpus.batches(start, start + SHARD) for text in batch.to_pylist()]

    def name(index: int) -> str:
        return f"document {corpus.id(start + index)!r}"

    encoded = _kept_encoded(encoder, texts, "document", name, store, key, reporter)
    write_array(folder / "vectors.npy", encoded.vectors)
    return {"start": start, "cost": encoded.cost.as_dict()}


def _kept_encoded(
    encoder: Encoder,
    texts: Sequence[str],
    role: Role,
    name: Callable[[int], str],
    store: Store,
    key: str,
    reporter: Reporter,
) -> Encoded:
    """Return the vectors of texts; what was finished when an earlier run died is not encoded again."""
    parts = PartialVectors(store, key)
    missing = parts.missing(len(texts))
    reported = 0

    def receive(positions: Sequence[int], encoded: Encoded | None) -> None:
        nonlocal reported
        reporter.advance(len(positions))
        reported += len(positions)
        if encoded is not None:
            parts.add([missing[position] for position in positions], encoded)

    if texts and not missing:
        return parts.joined(len(texts), missing, Encoded(np.empty((0, 0), dtype=np.float32)))
    try:
        with receiving(receive):
            encoded = _encoded(encoder, [texts[index] for index in missing], role, lambda i: name(missing[i]))
    except BaseException:
        with contextlib.suppress(OSError):  # a full disk, which the other error tells
            parts.write()  # all that is finished: Ctrl-C is no reason to lose a minute
        raise
    if len(missing) > reported:  # an encoder need not tell of its batches
        reporter.advance(len(missing) - reported)
    return parts.joined(len(texts), missing, encoded)


def _encoded(encoder: Encoder, texts: Sequence[str], role: Role, name: Callable[[int], str]) -> Encoded:
    """Return the vectors, checked. Raises UserError that names the text whose vector is not finite."""
    try:
        encoded = encoder.encode(texts, role)
        vectors = np.asarray(encoded.vectors, dtype=np.float32)
        if vectors.ndim != 2 or len(vectors) != len(texts):
            raise UserError(f"the model returned an array of shape {vectors.shape} for {len(texts)} texts")
        check_finite(vectors)
    except NotFiniteError as error:
        raise UserError(f"the vector of {name(error.index)} has NaN or infinite entries: {error.hint}") from None
    return Encoded(vectors, encoded.cost)


class PartialVectors:
    """The finished part of the vectors of some texts, in the store under a key."""

    def __init__(self, store: Store, key: str) -> None:
        self._store = store
        self._key = key
        self._parts: list[Artefact] = []
        while (part := store.get(PARTS, self._name(len(self._parts)))) is not None:
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

        self._parts.append(self._store.make(PARTS, self._name(len(self._parts)), build))
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
                self._store.discard(PARTS, self._name(number))

    def _name(self, number: int) -> str:
        return f"{self._key}-{number}"
