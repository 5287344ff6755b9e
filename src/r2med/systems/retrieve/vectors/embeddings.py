"""Encode a corpus or some queries, with the store: one vector for each text, or several, or weights of terms.

The key of a shard contains the corpus, its rows and everything that a document's vectors depend on. So after an
interrupted run, the next one encodes only the missing shards. Settings that affect only queries leave every shard
valid.

An encoder sorts the texts of a shard by length and encodes them in batches. A kill loses the shard that was being
encoded; the next run encodes it in the same batches.

If a user's dataset has changed, the vectors of texts that an earlier version had are copied, and only new texts are
encoded. Such a vector comes from a different batch, so its last bits may differ from those of a full encoding. Datasets
of the benchmark are always encoded in full, so their scores do not depend on other data in the store. The same holds
for a run that starts over.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np

from r2med.data.corpus import Corpus
from r2med.foundation.core.cost import Cost, total
from r2med.foundation.core.errors import UserError
from r2med.foundation.engine.reporting import Reporter
from r2med.foundation.engine.work import THREADS, Engine, Key
from r2med.foundation.store import Artefact, Store, digest
from r2med.foundation.store.files import allow_open_files, write_array
from r2med.foundation.store.reads import joined, versions_of
from r2med.models.encoders.encoder import Encoder, NotFiniteError, Role, Vectors, check_finite, receiving
from r2med.models.encoders.passages import encode_passages
from r2med.models.encoders.ragged import Ragged
from r2med.systems.retrieve.vectors.known_vectors import KnownVectors, TakenVectors, text_digests
from r2med.systems.retrieve.vectors.vector_shard import check_shape, read_ragged, write_ragged

log = logging.getLogger("r2med")

MANY_DOCUMENTS = 200_000
"""Number of documents from which shards are large."""

VERSION = 2
"""Version of the data that is saved with the vectors."""


@dataclass(frozen=True)
class Embeddings:
    """The vectors of a corpus as memory-mapped shards."""

    shards: tuple[Artefact, ...]

    @property
    def cost(self) -> Cost:
        """Cost of making the vectors."""
        return total(Cost.from_dict(shard.meta["cost"]) for shard in self.shards)

    @cached_property
    def parts(self) -> tuple[tuple[int, Ragged], ...]:
        """Pairs of (first row, vectors of consecutive documents) in the order of the corpus."""
        allow_open_files(2 * len(self.shards))  # weights and terms are two files
        return tuple((int(shard.meta["start"]), read_ragged(shard)) for shard in self.shards)

    @property
    def blocks(self) -> tuple[tuple[int, Vectors], ...]:
        """Pairs of (first row, vectors) in the order of the corpus, if each document has one vector."""
        return tuple((first, part.vectors) for first, part in self.parts)

    @property
    def dimension(self) -> int:
        """Number of dimensions of a vector."""
        return int(self.parts[0][1].vectors.shape[1])


@dataclass(frozen=True)
class TextShard:
    """Texts that are encoded together, and the key of their vectors."""

    key: str
    texts: Corpus | tuple[str, ...]
    start: int = 0
    """Row of the first document. 0 for queries."""
    corpus: str = ""
    """Fingerprint of the corpus. Empty for queries."""
    taken: TakenVectors | None = None
    """Vectors that were made for another corpus. These texts are not encoded."""

    def read(self) -> list[str]:
        """Return the texts."""
        if isinstance(self.texts, tuple):
            return list(self.texts)
        return [text for _, _, batch in self.texts.batches() for text in batch.to_pylist()]

    def name(self, index: int) -> str:
        """Return the name of one of the texts for messages."""
        return f"query number {index + 1}" if isinstance(self.texts, tuple) else f"document {self.texts.id(index)!r}"


@dataclass(frozen=True)
class EncodeShard:
    """Work that encodes shards of texts on any machine that opens the same encoder."""

    kind: str
    role: Role
    encoder: Encoder
    key: dict[str, Any]
    reporter: Reporter
    passages: int = 0
    """Number of tokens of a passage, if documents are cut into passages."""

    def __call__(self, shard: TextShard, store: Store) -> tuple[Key, Artefact]:
        """Return the encoder's key and the vectors from the store. They are encoded first if they are missing."""
        key = vectors_key(self.encoder, self.role, self.passages)
        return key, store.make(self.kind, shard.key, partial(self._build, shard))

    def _build(self, shard: TextShard, folder: Path) -> dict[str, Any]:
        """Write the vectors of a shard: those that were taken, and those of its other texts.

        Raises UserError that names the text if a vector is not finite.
        """
        texts, taken = shard.read(), shard.taken
        new = list(range(len(texts))) if taken is None else taken.missing(len(texts))
        if taken is None or new:
            new_texts, started = [texts[row] for row in new], time.perf_counter()
            try:
                with receiving(self.reporter.advance):
                    if self.passages:
                        encoded = encode_passages(self.encoder, new_texts, self.passages)
                    else:
                        encoded = self.encoder.encode(new_texts, self.role)
                vectors, versions = checked(encoded, len(new), started), versions_of(self.encoder)
            except NotFiniteError as error:
                name = shard.name(new[error.index])
                raise UserError(f"the vector of {name} has NaN or infinite entries: {error.hint}") from None
            if taken is not None:
                _check_same_width([vectors, taken.vectors])
                vectors, versions = taken.with_others(vectors, new), joined(taken.versions, versions)
        else:
            vectors, versions = taken.vectors, taken.versions
        meta = {"start": shard.start, **write_ragged(vectors, folder), **({"versions": versions} if versions else {})}
        if not shard.corpus:
            return meta
        write_array(folder / "digests.npy", text_digests(texts))
        return {**meta, "encoder": digest(self.key), "corpus": shard.corpus}


def checked(encoded: Ragged, count: int, started: float) -> Ragged:
    """Return what an encoder made of some texts, with the time since `started` if the encoder does not state its own.

    Raises UserError for another number of texts, and NotFiniteError for a vector with NaN or infinity.
    """
    vectors = encoded.arrays.get("vectors")
    if len(encoded) != count or (vectors is not None and vectors.ndim != 2):
        shape = (len(encoded),) if vectors is None else vectors.shape
        raise UserError(f"the model returned an array of shape {shape} for {count} texts")
    if vectors is not None:
        check_finite(vectors, np.repeat(np.arange(count), np.diff(encoded.offsets)).tolist())
    seconds = encoded.cost.seconds or time.perf_counter() - started
    return replace(encoded, cost=replace(encoded.cost, seconds=seconds, encoder_seconds=seconds))


def vectors_key(encoder: Encoder, role: Role, passages: int = 0) -> dict[str, Any]:
    """Return everything that the vectors of a role depend on. Only documents are cut into passages."""
    return {**encoder.key(role), **({"passages": passages} if passages and role == "document" else {})}


def embed_corpus(
    corpus: Corpus,
    encoder: Encoder,
    store: Store,
    engine: Engine = THREADS,
    *,
    reuse: bool = False,
    passages: int = 0,
) -> Embeddings:
    """Return the vectors of all documents, or of their passages. Shards that are not in the store are encoded.

    With `reuse`, the vectors of texts that the same encoder encoded for another corpus are copied.
    """
    key, kind = vectors_key(encoder, "document", passages), encoder.shards_in
    size = encoder.shard_documents if len(corpus) < MANY_DOCUMENTS else encoder.large_shard_documents
    keys = {start: digest([VERSION, key, corpus.fingerprint, start, size]) for start in range(0, len(corpus), size)}
    shards = {start: stored for start in keys if (stored := store.get(kind, keys[start])) is not None}
    done = sum(len(corpus.part(start, start + size)) for start in shards)
    work = EncodeShard(kind, "document", encoder, key, Reporter("documents", len(corpus), before=done), passages)
    missing = [start for start in keys if start not in shards]
    known = KnownVectors.find(store, kind, digest(key), corpus.fingerprint) if reuse and missing else None

    def missing_shards() -> Iterator[TextShard]:
        for start in missing:
            shard = TextShard(keys[start], corpus.part(start, start + size), start, corpus.fingerprint)
            taken = known.take(shard.read()) if known is not None else None
            work.reporter.skip(len(taken.positions) if taken else 0)
            yield replace(shard, taken=taken)

    for shard, artefact in engine.map(work, missing_shards(), store, encoder.needs, key):
        shards[shard.start] = artefact
        done += len(shard.texts)
        work.reporter.reach(done)  # an encoder may not report its batches
    embeddings = Embeddings(tuple(shards[start] for start in keys))
    for start, shard_folder, (_, part) in zip(keys, embeddings.shards, embeddings.parts, strict=True):
        check_shape(shard_folder, part, len(corpus.part(start, start + size)))
    _check_same_width([part for _, part in embeddings.parts])
    _report_zeros(embeddings.shards, len(corpus), "documents")
    return embeddings


def embed_texts(
    texts: Sequence[str], role: Role, encoder: Encoder, store: Store | None, engine: Engine = THREADS
) -> Ragged:
    """Return the vectors of queries or generated texts, from the store if exactly these texts are there."""
    if store is None:
        started = time.perf_counter()
        return checked(encoder.encode(texts, role), len(texts), started)
    key, kind = encoder.key(role), f"query-{encoder.shards_in}"
    shard = TextShard(digest([VERSION, key, list(texts)]), tuple(texts))
    artefact = store.get(kind, shard.key)
    if artefact is None:
        work = EncodeShard(kind, role, encoder, key, Reporter("queries", len(texts)))
        [(_, artefact)] = engine.map(work, [shard], store, encoder.needs, key)
        work.reporter.reach(len(texts))
    vectors = read_ragged(artefact)
    check_shape(artefact, vectors, len(texts))
    _report_zeros([artefact], len(texts), "queries" if role == "query" else "generated texts")
    return vectors


def _check_same_width(parts: Sequence[Ragged]) -> None:
    """Raise UserError if a model returned vectors of different lengths."""
    widths = {part.vectors.shape[1] for part in parts if "vectors" in part.arrays}
    if len(widths) > 1:
        raise UserError(f"the model returned vectors of different lengths, {sorted(widths)}; use one model for all")


def _report_zeros(shards: Sequence[Artefact], count: int, what: str) -> None:
    """Log a warning if vectors are all zero. Such a text scores 0 with everything, which is never intended."""
    if zeros := sum(int(shard.meta.get("zeros", 0)) for shard in shards):
        log.warning("%s of %s %s have a vector of zeros and match nothing", f"{zeros:,}", f"{count:,}", what)
