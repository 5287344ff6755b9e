"""Embeddings in the store: the shards of a corpus and sets of queries.

The key of a shard contains the corpus, its rows and everything that a document's vector depends on. So after an
interrupted run, the next one encodes only the missing shards. Settings that affect only queries leave every shard
valid.

An encoder sorts the texts of a shard by length and encodes them in batches. Finished vectors are saved every minute as
parts, each with the positions of its texts. A run that continues encodes the remaining texts in exactly the batches
that an uninterrupted run would have used.

If a user's dataset has changed, texts of an earlier version keep their vectors and only new texts are encoded. Such a
vector comes from a different batch, so its last bits may differ from those of a full encoding. Datasets of the
benchmark are always encoded in full, so their scores do not depend on other data in the store. The same holds for a run
that starts over.
"""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from r2med.data.corpus import Corpus
from r2med.foundation.core.cost import Cost, total
from r2med.foundation.core.errors import UserError
from r2med.foundation.engine.reporting import Reporter
from r2med.foundation.engine.work import HERE, THREADS, Engine, Needs, Work
from r2med.foundation.store import Artefact, Store, digest
from r2med.foundation.store.files import allow_open_files, write_array
from r2med.foundation.store.library_versions import Versions, versions_of
from r2med.models.encoders.encoder import (
    Encoded,
    Encoder,
    NotFiniteError,
    Role,
    Vectors,
    check_finite,
    check_same_key,
    receiving,
)
from r2med.systems.retrieve.dense.earlier_vectors import EarlierVectors, text_digests

log = logging.getLogger("r2med")

VERSION = 2
"""Version of the data that is saved with the vectors."""

SHARD_DOCUMENTS = 4096
"""Number of documents in a shard. Large enough for batches of similar lengths, small enough for a file."""

PART_SECONDS = 60.0
"""Seconds between two parts. A kill loses at most the work of this time."""

PARTS_KIND = "vector-parts"


@dataclass(frozen=True)
class Embeddings:
    """The vectors of a corpus as memory-mapped shards."""

    shards: tuple[Artefact, ...]
    cost: Cost
    """Cost of making the vectors."""

    @cached_property
    def blocks(self) -> tuple[tuple[int, Vectors], ...]:
        """Pairs of (first row, vectors) in the order of the corpus."""
        allow_open_files(len(self.shards))
        return tuple((shard.meta["start"], shard.array("vectors")) for shard in self.shards)

    @property
    def dimension(self) -> int:
        """Number of dimensions of a vector."""
        return int(self.shards[0].array("vectors").shape[1])


@dataclass(frozen=True)
class TextShard:
    """Texts that are encoded together, and the key of their vectors."""

    key: str
    texts: Corpus | tuple[str, ...]
    start: int = 0
    """Row of the first document. 0 for queries."""
    corpus: str = ""
    """Fingerprint of the corpus. Empty for queries."""

    def __len__(self) -> int:
        return len(self.texts)

    def read(self) -> list[str]:
        """Return the texts."""
        if isinstance(self.texts, tuple):
            return list(self.texts)
        return [text for _, _, batch in self.texts.batches() for text in batch.to_pylist()]

    def name(self, index: int) -> str:
        """Return the name of one of the texts for messages."""
        return f"query number {index + 1}" if isinstance(self.texts, tuple) else f"document {self.texts.id(index)!r}"


@dataclass(frozen=True)
class EncodeShard(Work[TextShard, Artefact]):
    """Work that encodes shards of texts on any machine that opens the same encoder."""

    kind: str
    role: Role
    encoder: Encoder
    key: dict[str, Any]
    reporter: Reporter

    @property
    def needs(self) -> Needs:
        """Where the work can run. Encoders that do not declare this, such as paid APIs, run on this machine."""
        needs: Needs = getattr(self.encoder, "needs", HERE)
        return needs

    def check(self) -> None:
        """Raise UserError if the encoder on this machine has a different key."""
        check_same_key(self.key, self.encoder.key(self.role))

    def __call__(self, shard: TextShard, store: Store) -> Artefact:
        """Return the vectors from the store, and encode them first if they are missing."""
        artefact = store.make(self.kind, shard.key, partial(self._build, shard, store))
        PartialVectors(store, shard.key).discard()
        return artefact

    def _build(self, shard: TextShard, store: Store, folder: Path) -> dict[str, Any]:
        encoded = _kept_encoded(self.encoder, shard, self.role, store, self.reporter)
        write_array(folder / "vectors.npy", encoded.vectors)
        zeros = int((~encoded.vectors.any(axis=1)).sum())
        meta = {
            "start": shard.start,
            "cost": encoded.cost.as_dict(),
            "zeros": zeros,
            "versions": versions_of(self.encoder),
        }
        if not shard.corpus:
            return meta
        write_array(folder / "digests.npy", text_digests(shard.read()))
        return {**meta, "encoder": digest(self.key), "corpus": shard.corpus}


def embed_corpus(
    corpus: Corpus, encoder: Encoder, store: Store, engine: Engine = THREADS, *, reuse: bool = False
) -> Embeddings:
    """Return the vectors of all documents. Shards that are not in the store are encoded.

    With `reuse`, texts that the same encoder encoded for another corpus keep those vectors.
    """
    key = encoder.key("document")
    starts = range(0, len(corpus), SHARD_DOCUMENTS)
    keys = {start: digest([VERSION, key, corpus.fingerprint, start, SHARD_DOCUMENTS]) for start in starts}
    sizes = {start: min(SHARD_DOCUMENTS, len(corpus) - start) for start in starts}
    shards = {start: _known(store, "vectors", keys[start], sizes[start]) for start in starts}
    missing = [start for start, shard in shards.items() if shard is None]
    known = len(corpus) - sum(
        min(SHARD_DOCUMENTS, len(corpus) - start) - len(PartialVectors(store, keys[start])) for start in missing
    )
    reporter = Reporter("documents", len(corpus), before=known)
    work = EncodeShard("vectors", "document", encoder, key, reporter)
    texts = (
        TextShard(keys[start], corpus.part(start, start + SHARD_DOCUMENTS), start, corpus.fingerprint)
        for start in missing
    )
    done = len(corpus) - sum(min(SHARD_DOCUMENTS, len(corpus) - start) for start in missing)
    # An encoder behind an API saves the vector of every text itself.
    reuse = reuse and bool(missing) and not getattr(encoder, "keeps_vectors", False)
    earlier = EarlierVectors.find(store, digest(key), corpus.fingerprint) if reuse else None
    for shard, artefact in _mapped(engine, work, texts, store, earlier):
        shards[shard.start] = artefact
        done += len(shard)
        reporter.reach(done)
    made = tuple(shard for shard in shards.values() if shard is not None)
    widths = {shard.array("vectors").shape[1] for shard in made}
    if len(widths) > 1:
        raise UserError(f"the model returned vectors of different lengths, {sorted(widths)}; use one model for all")
    _report_zeros(made, len(corpus), "documents")
    return Embeddings(made, total(Cost.from_dict(shard.meta["cost"]) for shard in made))


def _mapped(
    engine: Engine, work: EncodeShard, shards: Iterable[TextShard], store: Store, earlier: EarlierVectors | None
) -> Iterator[tuple[TextShard, Artefact]]:
    """Yield each shard with its vectors. The engine gets only shards with texts that have no vector yet."""
    if earlier is None:
        yield from engine.map(work, shards, store, work.needs)
        return
    complete: list[tuple[TextShard, Artefact]] = []

    def unfinished() -> Iterator[TextShard]:
        for shard in shards:
            if _take_over(shard, earlier, store, work.reporter):
                complete.append((shard, work(shard, store)))
            else:
                yield shard

    for shard, artefact in engine.map(work, unfinished(), store, work.needs):
        PartialVectors(store, shard.key).discard()  # A node without access to this store did not use the parts.
        yield shard, artefact
        yield from complete
        complete.clear()
    yield from complete


def _take_over(shard: TextShard, earlier: EarlierVectors, store: Store, reporter: Reporter) -> bool:
    """Save known vectors of a shard's texts as a finished part. Return True if all texts have a vector."""
    parts = PartialVectors(store, shard.key)
    if not len(parts) and (known := earlier.take(shard.read())) is not None:
        parts.keep(known.positions, known.vectors, known.cost)
        reporter.skip(len(known.positions))
    return not PartialVectors(store, shard.key).missing(len(shard))


def embed_texts(
    texts: Sequence[str], role: Role, encoder: Encoder, store: Store | None, engine: Engine = THREADS
) -> Encoded:
    """Return the vectors of queries or generated texts, from the store if exactly these texts are there."""
    if store is None:
        return _encoded(encoder, texts, role, TextShard("", tuple(texts)).name)
    key = encoder.key(role)
    shard = TextShard(digest([VERSION, key, list(texts)]), tuple(texts))
    work = EncodeShard("query-vectors", role, encoder, key, Reporter("queries", len(texts)))
    made = _known(store, work.kind, shard.key, len(texts))
    if made is None:
        [(_, made)] = engine.map(work, [shard], store, work.needs)
    _report_zeros([made], len(texts), "queries" if role == "query" else "generated texts")
    return Encoded(made.array("vectors"), Cost.from_dict(made.meta["cost"]))


def _known(store: Store, kind: str, key: str, texts: int) -> Artefact | None:
    """Return stored vectors, one for each text. Others, which a pack may have brought, are reported and removed."""
    artefact = store.get(kind, key)
    if artefact is None or _are_vectors(artefact.array("vectors"), texts):
        return artefact
    log.warning("%s %s is damaged (not %s vectors): making it again", kind, key[:8], f"{texts:,}")
    store.discard(kind, key)
    return None


def _are_vectors(array: npt.NDArray[Any], texts: int) -> bool:
    # The values of a corpus are not read again: `unpack` has checked that they are finite.
    return array.dtype == np.float32 and array.ndim == 2 and len(array) == texts


def _report_zeros(made: Sequence[Artefact], count: int, what: str) -> None:
    """Log a warning if vectors are all zero. Such a text scores 0 with everything, which is never intended."""
    if zeros := sum(int(artefact.meta.get("zeros", 0)) for artefact in made):
        log.warning("%s of %s %s have a vector of zeros and match nothing", f"{zeros:,}", f"{count:,}", what)


def _kept_encoded(encoder: Encoder, shard: TextShard, role: Role, store: Store, reporter: Reporter) -> Encoded:
    """Return the vectors of texts. Texts that an interrupted run finished are not encoded again."""
    texts, parts = shard.read(), PartialVectors(store, shard.key, versions_of(encoder))
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
            encoded = _encoded(encoder, [texts[index] for index in missing], role, lambda i: shard.name(missing[i]))
    except BaseException:
        with contextlib.suppress(OSError):  # Ignores a full disk, because the other error is reported.
            parts.write()  # Saves all finished vectors, so that Ctrl-C does not lose a minute of work.
        raise
    if len(missing) > reported:  # An encoder may not report its batches.
        reporter.advance(len(missing) - reported)
    return parts.joined(len(texts), missing, encoded)


def _encoded(encoder: Encoder, texts: Sequence[str], role: Role, name: Callable[[int], str]) -> Encoded:
    """Return the checked vectors. Raises UserError that names the text if a vector is not finite."""
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
    """The finished part of the vectors of some texts, saved in the store under a key."""

    def __init__(self, store: Store, key: str, versions: Versions | None = None) -> None:
        self._store = store
        self._key = key
        self._versions = versions  # of the libraries that make new parts
        self._parts: list[Artefact] = []
        while (part := store.get(PARTS_KIND, self._name(len(self._parts)))) is not None:
            self._parts.append(part)
        self._earlier = tuple(self._parts)
        self._waiting: list[tuple[Sequence[int], Encoded]] = []
        self._written = time.perf_counter()

    def __len__(self) -> int:
        return sum(len(part.array("positions")) for part in self._earlier)

    def missing(self, count: int) -> list[int]:
        """Return the positions among `count` texts that no earlier run has saved."""
        done = np.zeros(count, dtype=bool)
        for part in self._earlier:
            done[part.array("positions")] = True
        return [int(position) for position in np.flatnonzero(~done)]

    def add(self, positions: Sequence[int], encoded: Encoded) -> None:
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
        positions = np.concatenate([np.asarray(positions, dtype=np.int64) for positions, _ in self._waiting])
        vectors = np.concatenate([encoded.vectors for _, encoded in self._waiting])
        self.keep(positions, vectors, cost)
        self._waiting.clear()
        self._written = now

    def keep(self, positions: npt.NDArray[np.int64], vectors: Vectors, cost: Cost) -> None:
        """Write a finished part."""

        def build(folder: Path) -> dict[str, Any]:
            write_array(folder / "positions.npy", positions)
            write_array(folder / "vectors.npy", vectors)
            return {"cost": cost.as_dict(), **({"versions": self._versions} if self._versions else {})}

        self._parts.append(self._store.make(PARTS_KIND, self._name(len(self._parts)), build))

    def joined(self, count: int, missing: Sequence[int], encoded: Encoded) -> Encoded:
        """Return the vectors of `count` texts: those of earlier runs and those of the missing texts."""
        if not self._earlier:
            return encoded
        width = self._earlier[0].array("vectors").shape[1]
        if missing and encoded.vectors.shape[1] != width:
            raise UserError(
                f"the model returned vectors of {encoded.vectors.shape[1]} entries; earlier vectors have {width}"
            )
        vectors: Vectors = np.empty((count, width), dtype=np.float32)
        cost = encoded.cost
        for part in self._earlier:
            vectors[part.array("positions")] = part.array("vectors")
            cost += Cost.from_dict(part.meta["cost"])
        if missing:
            vectors[np.asarray(missing, dtype=np.int64)] = encoded.vectors
        return Encoded(vectors, cost)

    def discard(self) -> None:
        """Remove the parts, because the complete vectors are in the store."""
        with contextlib.suppress(UserError):  # Without locks the parts stay. They are correct, but no longer needed.
            for number in range(len(self._parts)):
                self._store.discard(PARTS_KIND, self._name(number))

    def _name(self, number: int) -> str:
        return f"{self._key}-{number}"
