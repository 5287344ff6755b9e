"""Embeddings in the store: a corpus in shards, written as they come, and sets of queries.

A shard's key holds the corpus, its rows and all that a document's vector depends on. A run that dies is
therefore never paid for twice: the next one encodes the shards that are missing. Changing what only queries
depend on leaves every shard valid.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from r2med.cost import Cost, total
from r2med.data.corpus import Corpus
from r2med.encoders.contracts import Encoder, Role, Vectors
from r2med.encoders.vectors import NotFiniteError, check_finite
from r2med.engine.progress import Reporter
from r2med.errors import UserError
from r2med.store import Artefact, Store, digest
from r2med.store.files import write_array

SHARD = 4096
"""Documents a shard: enough for batches of even lengths, few enough to lose little."""


@dataclass(frozen=True)
class Embeddings:
    """The vectors of a corpus, memory-mapped shard by shard."""

    shards: tuple[Artefact, ...]
    cost: Cost
    """What encoding took when it was done."""

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
    keys = {start: digest([described, corpus.fingerprint, start, SHARD]) for start in range(0, len(corpus), SHARD)}
    there = {start: store.get("vectors", key) for start, key in keys.items()}
    known = sum(min(SHARD, len(corpus) - start) for start, shard in there.items() if shard is not None)
    reporter = Reporter("documents", len(corpus), before=known)
    for start, key in keys.items():
        if there[start] is None:
            there[start] = store.make("vectors", key, partial(_encode_shard, corpus, start, encoder))
            reporter.advance(min(SHARD, len(corpus) - start))
    shards = tuple(shard for shard in there.values() if shard is not None)
    sizes = {shard.array("vectors").shape[1] for shard in shards}
    if len(sizes) > 1:
        raise UserError(f"the model returned vectors of different lengths, {sorted(sizes)}: is it one model?")
    return Embeddings(shards, total(_cost(shard.meta["seconds"], shard.meta["usage"]) for shard in shards))


@dataclass(frozen=True)
class Embedded:
    """The vectors of some texts, and what they took when they were made."""

    vectors: Vectors
    cost: Cost


def embed_texts(texts: Sequence[str], role: Role, encoder: Encoder, store: Store | None) -> Embedded:
    """Return the vectors of queries or generated texts, from the store if these very texts are there."""

    def name(place: int) -> str:
        return f"query number {place + 1}"

    def build(folder: Path) -> dict[str, Any]:
        vectors, usage = _encoded(encoder, texts, role, name)
        write_array(folder / "vectors.npy", vectors)
        return {"usage": usage}

    if store is None:
        started = time.perf_counter()
        vectors, usage = _encoded(encoder, texts, role, name)
        return Embedded(vectors, _cost(time.perf_counter() - started, usage))
    made = store.make("query-vectors", digest([encoder.describe(role), list(texts)]), build)
    return Embedded(made.array("vectors"), _cost(made.meta["seconds"], made.meta["usage"]))


def _cost(seconds: float, usage: Mapping[str, float]) -> Cost:
    return Cost(
        seconds=seconds,
        encoder_seconds=seconds,
        texts=int(usage.get("texts", 0)),
        tokens=int(usage.get("tokens", 0)),
        cut=int(usage.get("truncated", 0)),
        dollars=usage.get("cost_usd", 0.0),
    )


def _encode_shard(corpus: Corpus, start: int, encoder: Encoder, folder: Path) -> dict[str, Any]:
    texts = [text for _, _, batch in corpus.batches(start, start + SHARD) for text in batch.to_pylist()]
    vectors, usage = _encoded(encoder, texts, "document", lambda place: f"document {corpus.id(start + place)!r}")
    write_array(folder / "vectors.npy", vectors)
    return {"start": start, "usage": usage}


def _encoded(
    encoder: Encoder, texts: Sequence[str], role: Role, name: Callable[[int], str]
) -> tuple[Vectors, dict[str, float]]:
    """Return the vectors, checked, and what the encoder used for them; a fault is told by the text's name."""
    before = encoder.usage()
    try:
        vectors = np.asarray(encoder.encode(texts, role), dtype=np.float32)
        if vectors.ndim != 2 or len(vectors) != len(texts):
            raise UserError(f"the model returned an array of shape {vectors.shape} for {len(texts)} texts")
        check_finite(vectors)
    except NotFiniteError as error:
        raise UserError(f"the vector of {name(error.index)} has NaN or infinite entries: {error.hint}") from None
    return vectors, {key: amount - before.get(key, 0.0) for key, amount in encoder.usage().items()}
