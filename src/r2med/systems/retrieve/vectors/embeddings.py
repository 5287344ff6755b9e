"""Encode a corpus or some queries, with the store: one vector for each text, or several, or weights of terms.

The key of a shard contains the corpus, its rows and everything that a document's vectors depend on. So after an
interrupted run, the next one encodes only the missing shards. Settings that affect only queries leave every shard
valid.

An encoder sorts the texts of a shard by length and encodes them in batches. A kill loses the shard that was being
encoded; the next run encodes it in the same batches.

If a user's dataset has changed, texts of an earlier version keep their vectors where they are and only new texts are
encoded and stored. Such a vector comes from a different batch, so its last bits may differ from those of a full
encoding. Datasets of the benchmark are always encoded in full, so their scores do not depend on other data in the
store. The same holds for a run that starts over.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np

from r2med.data import Dataset
from r2med.data.corpus import Corpus
from r2med.foundation.core.cost import Cost, total
from r2med.foundation.core.errors import UserError
from r2med.foundation.engine.reporting import Reporter
from r2med.foundation.engine.work import THREADS, Engine, Key, Needs
from r2med.foundation.store import Artefact, Store, digest
from r2med.foundation.store.files import allow_open_files, write_array
from r2med.foundation.store.library_versions import versions_of
from r2med.models.encoders.encoder import Encoder, NotFiniteError, Role, Vectors, receiving
from r2med.models.encoders.ragged import Ragged
from r2med.systems.retrieve.vectors.known_vectors import KnownVectors, TakenVectors, text_digests
from r2med.systems.retrieve.vectors.vector_shard import VectorShard, open_shard, read_ragged, write_ragged

log = logging.getLogger("r2med")

MANY_DOCUMENTS = 200_000
"""Number of documents from which shards are large."""

VERSION = 2
"""Version of the data that is saved with the vectors."""


@dataclass(frozen=True)
class Embeddings:
    """The vectors of a corpus as memory-mapped shards."""

    shards: tuple[VectorShard, ...]
    cost: Cost
    """Cost of making the vectors."""

    @cached_property
    def parts(self) -> tuple[tuple[int, Ragged], ...]:
        """Pairs of (first row, vectors of consecutive documents) in the order of the corpus."""
        allow_open_files(2 * sum(1 + len(shard.sources) for shard in self.shards))  # weights and terms are two files
        found, first = [], 0
        for shard in self.shards:
            for part in shard.parts:
                found.append((first, part))
                first += len(part)
        return tuple(found)

    @property
    def blocks(self) -> tuple[tuple[int, Vectors], ...]:
        """Pairs of (first row, vectors) in the order of the corpus, if each document has one vector."""
        return tuple((first, part.arrays["vectors"]) for first, part in self.parts)

    @property
    def dimension(self) -> int:
        """Number of dimensions of a vector."""
        return int(self.parts[0][1].arrays["vectors"].shape[1])


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
    """Vectors that other shards have. These texts are not encoded."""

    def __len__(self) -> int:
        return len(self.texts)

    def read(self) -> list[str]:
        """Return the texts."""
        if isinstance(self.texts, tuple):
            return list(self.texts)
        return [text for _, _, batch in self.texts.batches() for text in batch.to_pylist()]

    @property
    def own(self) -> list[int]:
        """The positions of the texts that are encoded for this shard."""
        taken = set() if self.taken is None else set(self.taken.positions.tolist())
        return [position for position in range(len(self)) if position not in taken]

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

    @property
    def needs(self) -> Needs:
        """Where the work can run."""
        return self.encoder.needs

    def __call__(self, shard: TextShard, store: Store) -> tuple[Key, Artefact]:
        """Return the encoder's key and the vectors from the store. They are encoded first if they are missing."""
        return self.encoder.key(self.role), self.vectors(shard, store)

    def vectors(self, shard: TextShard, store: Store) -> Artefact:
        """Return the vectors from the store, and encode them first if they are missing."""
        build = partial(self._build, shard, store)
        artefact = store.make(self.kind, shard.key, build)
        if not _takes_from(artefact, shard.taken):  # a node may have it from a time when other vectors were known
            store.discard(self.kind, shard.key)
            artefact = store.make(self.kind, shard.key, build)
        return artefact

    def _build(self, shard: TextShard, store: Store, folder: Path) -> dict[str, Any]:
        texts, own, taken = shard.read(), shard.own, shard.taken
        if own or taken is None:
            encoded = self._encoded(shard, [texts[position] for position in own])
        else:
            encoded = taken.nothing
        meta = {
            "start": shard.start,
            "cost": (encoded.cost + (taken.cost if taken else Cost())).as_dict(),
            "zeros": encoded.zeros() + (taken.zeros if taken else 0),
            **write_ragged(encoded, folder),
            **({"versions": versions_of(self.encoder)} if own else {}),
        }
        if not shard.corpus:
            return meta
        write_array(folder / "digests.npy", text_digests(texts[position] for position in own))
        if taken is not None:
            origins = np.zeros((len(texts), 2), dtype=np.int32)
            origins[own, 1] = range(len(own))
            origins[taken.positions] = taken.origins
            write_array(folder / "origins.npy", origins)
            meta |= {"sources": taken.sources, "own_cost": encoded.cost.as_dict()}
        return {**meta, "encoder": digest(self.key), "corpus": shard.corpus}

    def _encoded(self, shard: TextShard, texts: Sequence[str]) -> Ragged:
        """Return the vectors of a shard's own texts."""
        reported = 0

        def receive(count: int) -> None:
            nonlocal reported
            self.reporter.advance(count)
            reported += count

        with receiving(receive):
            encoded = _checked(self.encoder, texts, self.role, lambda index: shard.name(shard.own[index]))
        if len(texts) > reported:  # An encoder may not report its batches.
            self.reporter.advance(len(texts) - reported)
        return encoded


def may_change(dataset: Dataset) -> bool:
    """Return True for a dataset of the user, which may change.

    A dataset of the hub never changes and is encoded in full.
    """
    return dataset.card is None or dataset.card.hub is None


def embed_corpus(
    corpus: Corpus, encoder: Encoder, store: Store, engine: Engine = THREADS, *, reuse: bool = False
) -> Embeddings:
    """Return the vectors of all documents. Shards that are not in the store are encoded.

    With `reuse`, texts that the same encoder encoded for another corpus keep those vectors, and they are not stored
    again.
    """
    key, kind = encoder.key("document"), encoder.shards_in
    size = encoder.shard_documents if len(corpus) < MANY_DOCUMENTS else encoder.large_shard_documents
    starts = range(0, len(corpus), size)
    keys = {start: digest([VERSION, key, corpus.fingerprint, start, size]) for start in starts}
    sizes = {start: min(size, len(corpus) - start) for start in starts}
    shards = {start: _known(store, kind, keys[start], sizes[start]) for start in starts}
    missing = [start for start, shard in shards.items() if shard is None]
    done = len(corpus) - sum(sizes[start] for start in missing)
    work = EncodeShard(kind, "document", encoder, key, Reporter("documents", len(corpus), before=done))
    texts = (TextShard(keys[start], corpus.part(start, start + size), start, corpus.fingerprint) for start in missing)
    known = KnownVectors.find(store, kind, digest(key), corpus.fingerprint) if reuse and missing else None
    for shard, artefact in _mapped(engine, work, texts, store, known):
        is_whole = "sources" not in artefact.meta
        shards[shard.start] = VectorShard(artefact) if is_whole else open_shard(store, kind, shard.key)
        done += len(shard)
        work.reporter.reach(done)
    made = tuple(shard for shard in shards.values() if shard is not None)
    if len(made) < len(shards):
        raise UserError("vectors of an earlier version of this corpus were removed during the run; start it again")
    embeddings = Embeddings(made, total(shard.cost for shard in made))
    _check_same_width(embeddings)
    _report_zeros([shard.own for shard in made], len(corpus), "documents")
    return embeddings


def _takes_from(artefact: Artefact, taken: TakenVectors | None) -> bool:
    """Return True if a shard has all its vectors itself, or takes the others from these sources."""
    sources = tuple((key, texts) for key, texts in artefact.meta.get("sources", ()))
    return not sources or (taken is not None and sources == taken.sources)


def _mapped(
    engine: Engine, work: EncodeShard, shards: Iterable[TextShard], store: Store, known: KnownVectors | None
) -> Iterator[tuple[TextShard, Artefact]]:
    """Yield each shard with its vectors. The engine gets only shards with texts that have no vector yet."""
    if known is None:
        yield from engine.map(work, shards, store, work.needs, work.key)
        return
    complete: list[tuple[TextShard, Artefact]] = []

    def unfinished() -> Iterator[TextShard]:
        for each in shards:
            shard = replace(each, taken=known.take(each.read()))
            if shard.taken is not None:
                work.reporter.skip(len(shard.taken.positions))
            if shard.own:
                yield shard
            else:
                complete.append((shard, work.vectors(shard, store)))

    for shard, artefact in engine.map(work, unfinished(), store, work.needs, work.key):
        yield shard, artefact
        yield from complete
        complete.clear()
    yield from complete


def embed_texts(
    texts: Sequence[str], role: Role, encoder: Encoder, store: Store | None, engine: Engine = THREADS
) -> Ragged:
    """Return the vectors of queries or generated texts, from the store if exactly these texts are there."""
    if store is None:
        return _checked(encoder, texts, role, TextShard("", tuple(texts)).name)
    key = encoder.key(role)
    shard = TextShard(digest([VERSION, key, list(texts)]), tuple(texts))
    work = EncodeShard(f"query-{encoder.shards_in}", role, encoder, key, Reporter("queries", len(texts)))
    known = _known(store, work.kind, shard.key, len(texts))
    if known is None:
        [(_, made)] = engine.map(work, [shard], store, work.needs, work.key)
    else:
        made = known.own
    _report_zeros([made], len(texts), "queries" if role == "query" else "generated texts")
    return read_ragged(made)


def _known(store: Store, kind: str, key: str, texts: int) -> VectorShard | None:
    """Return the stored vectors of this number of texts. Others, which a pack may have brought, are removed."""
    shard = open_shard(store, kind, key)
    if shard is not None and _are_vectors(shard, kind, texts):
        return shard
    if shard is not None:
        log.warning("%s %s is damaged (not vectors of %s texts): making it again", kind, key[:8], f"{texts:,}")
    if shard is not None or store.get(kind, key) is not None:  # the second: vectors that it took were removed
        store.discard(kind, key)
    return None


def _are_vectors(shard: VectorShard, kind: str, texts: int) -> bool:
    # The values of a corpus are not read again, which are gigabytes.
    if kind in ("vectors", "query-vectors"):
        array = shard.own.array("vectors")
        if array.dtype != np.float32 or array.ndim != 2:
            return False
    return len(shard) == texts


def _check_same_width(embeddings: Embeddings) -> None:
    """Raise UserError if a model returned vectors of different lengths."""
    widths = {part.arrays["vectors"].shape[1] for _, part in embeddings.parts if "vectors" in part.arrays}
    if len(widths) > 1:
        raise UserError(f"the model returned vectors of different lengths, {sorted(widths)}; use one model for all")


def _report_zeros(made: Sequence[Artefact], count: int, what: str) -> None:
    """Log a warning if vectors are all zero. Such a text scores 0 with everything, which is never intended."""
    if zeros := sum(int(artefact.meta.get("zeros", 0)) for artefact in made):
        log.warning("%s of %s %s have a vector of zeros and match nothing", f"{zeros:,}", f"{count:,}", what)


def _checked(encoder: Encoder, texts: Sequence[str], role: Role, name: Callable[[int], str]) -> Ragged:
    """Return the checked vectors. Raises UserError that names the text if a vector is not finite."""
    try:
        return encoder.encode_ragged(texts, role)
    except NotFiniteError as error:
        raise UserError(f"the vector of {name(error.index)} has NaN or infinite entries: {error.hint}") from None
