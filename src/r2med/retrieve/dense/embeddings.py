"""Embeddings in the store: a corpus in shards, written as they come, and sets of queries.

A shard's key holds the corpus, its rows and all that a document's vector depends on. A run that dies is
therefore never paid for twice: the next one encodes the shards that are missing. Changing what only queries
depend on leaves every shard valid.

An encoder sorts a shard's texts by length and finishes them batch by batch. What is finished is kept in parts, every
minute, each with the positions of its texts. A run that goes on encodes the other texts, in the very batches in which
an undisturbed run would have encoded them.

Where a dataset of the user's own changed, texts that an earlier version had keep their vectors, and only new texts are
encoded. A vector is then that of another batch: its last bits may differ from those that encoding the whole corpus
would give. Datasets of the benchmark are always encoded whole, so that their numbers depend on nothing else that is in
the store; so is everything in a run that starts over.
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

from r2med.core.cost import Cost, total
from r2med.core.errors import UserError
from r2med.data.corpus import Corpus
from r2med.encoders.encoder import (
    Encoded,
    Encoder,
    NotFiniteError,
    Role,
    Vectors,
    check_described,
    check_finite,
    receiving,
)
from r2med.engine.reporting import Reporter
from r2med.engine.work import HERE, THREADS, Engine, Needs, Work
from r2med.retrieve.dense.earlier_vectors import EarlierVectors, text_digests
from r2med.store import Artefact, Store, digest
from r2med.store.files import allow_open_files, write_array

log = logging.getLogger("r2med")

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

    @cached_property
    def blocks(self) -> tuple[tuple[int, Vectors], ...]:
        """Pairs of (first row, vectors) in the order of the corpus."""
        allow_open_files(len(self.shards))
        return tuple((shard.meta["start"], shard.array("vectors")) for shard in self.shards)

    @property
    def dimension(self) -> int:
        """The length of a vector."""
        return int(self.shards[0].array("vectors").shape[1])


@dataclass(frozen=True)
class TextShard:
    """Texts that are encoded together, and the key of their vectors."""

    key: str
    texts: Corpus | tuple[str, ...]
    start: int = 0
    """The row of the first, if they are documents."""
    corpus: str = ""
    """The fingerprint of the corpus, if they are documents."""

    def __len__(self) -> int:
        return len(self.texts)

    def read(self) -> list[str]:
        """Return the texts."""
        if isinstance(self.texts, tuple):
            return list(self.texts)
        return [text for _, _, batch in self.texts.batches() for text in batch.to_pylist()]

    def name(self, index: int) -> str:
        """Return what one of the texts is called in a message."""
        return f"query number {index + 1}" if isinstance(self.texts, tuple) else f"document {self.texts.id(index)!r}"


@dataclass(frozen=True)
class EncodeShard(Work[TextShard, Artefact]):
    """Encodes shards of texts, on any machine that opens the encoder as this one did."""

    kind: str
    role: Role
    encoder: Encoder
    described: dict[str, Any]
    reporter: Reporter

    @property
    def needs(self) -> Needs:
        """Where it can be done: encoders that do not say stay here, as those do that ask an API for money."""
        needs: Needs = getattr(self.encoder, "needs", HERE)
        return needs

    def check(self) -> None:
        """Raise UserError if the encoder is described otherwise on this machine."""
        check_described(self.described, self.encoder.describe(self.role))

    def __call__(self, shard: TextShard, store: Store) -> Artefact:
        """Return the vectors in the store, encoded if they are not there."""
        artefact = store.make(self.kind, shard.key, partial(self._build, shard, store))
        PartialVectors(store, shard.key).discard()
        return artefact

    def _build(self, shard: TextShard, store: Store, folder: Path) -> dict[str, Any]:
        encoded = _kept_encoded(self.encoder, shard, self.role, store, self.reporter)
        write_array(folder / "vectors.npy", encoded.vectors)
        zeros = int((~encoded.vectors.any(axis=1)).sum())
        meta = {"start": shard.start, "cost": encoded.cost.as_dict(), "zeros": zeros}
        if not shard.corpus:
            return meta
        write_array(folder / "digests.npy", text_digests(shard.read()))
        return {**meta, "encoder": digest(self.described), "corpus": shard.corpus}


def embed_corpus(
    corpus: Corpus, encoder: Encoder, store: Store, engine: Engine = THREADS, *, reuse: bool = False
) -> Embeddings:
    """Return the vectors of every document, encoding the shards that the store does not have.

    With `reuse`, texts that another corpus has had encoded by the same encoder keep the vectors that they got there.
    """
    described = encoder.describe("document")
    starts = range(0, len(corpus), SHARD)
    keys = {start: digest([VERSION, described, corpus.fingerprint, start, SHARD]) for start in starts}
    shards = {start: store.get("vectors", key) for start, key in keys.items()}
    missing = [start for start, shard in shards.items() if shard is None]
    known = len(corpus) - sum(
        min(SHARD, len(corpus) - start) - len(PartialVectors(store, keys[start])) for start in missing
    )
    reporter = Reporter("documents", len(corpus), before=known)
    work = EncodeShard("vectors", "document", encoder, described, reporter)
    texts = (TextShard(keys[start], corpus.part(start, start + SHARD), start, corpus.fingerprint) for start in missing)
    done = len(corpus) - sum(min(SHARD, len(corpus) - start) for start in missing)
    # An encoder behind an API keeps the vector of every text itself.
    reuse = reuse and bool(missing) and not getattr(encoder, "keeps_vectors", False)
    earlier = EarlierVectors.find(store, digest(described), corpus.fingerprint) if reuse else None
    for shard, artefact in _mapped(engine, work, texts, store, earlier):
        shards[shard.start] = artefact
        done += len(shard)
        reporter.reach(done)
    made = tuple(shard for shard in shards.values() if shard is not None)
    sizes = {shard.array("vectors").shape[1] for shard in made}
    if len(sizes) > 1:
        raise UserError(f"the model returned vectors of different lengths, {sorted(sizes)}: is it one model?")
    _report_zeros(made, len(corpus), "documents")
    return Embeddings(made, total(Cost.from_dict(shard.meta["cost"]) for shard in made))


def _mapped(
    engine: Engine, work: EncodeShard, shards: Iterable[TextShard], store: Store, earlier: EarlierVectors | None
) -> Iterator[tuple[TextShard, Artefact]]:
    """Yield each shard with its vectors; where all of its texts have some already, nothing is asked of the engine."""
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
        PartialVectors(store, shard.key).discard()  # a node without this store did without them
        yield shard, artefact
        yield from complete
        complete.clear()
    yield from complete


def _take_over(shard: TextShard, earlier: EarlierVectors, store: Store, reporter: Reporter) -> bool:
    """Keep the vectors that texts of a shard have already as a finished part of it; return True if all have some."""
    parts = PartialVectors(store, shard.key)
    if not len(parts) and (known := earlier.take(shard.read())) is not None:
        parts.keep(known.positions, known.vectors, known.cost)
        reporter.skip(len(known.positions))
    return not PartialVectors(store, shard.key).missing(len(shard))


def embed_texts(
    texts: Sequence[str], role: Role, encoder: Encoder, store: Store | None, engine: Engine = THREADS
) -> Encoded:
    """Return the vectors of queries or generated texts, from the store if these very texts are there."""
    if store is None:
        return _encoded(encoder, texts, role, TextShard("", tuple(texts)).name)
    described = encoder.describe(role)
    shard = TextShard(digest([VERSION, described, list(texts)]), tuple(texts))
    work = EncodeShard("query-vectors", role, encoder, described, Reporter("queries", len(texts)))
    made = store.get(work.kind, shard.key)
    if made is None:
        [(_, made)] = engine.map(work, [shard], store, work.needs)
    _report_zeros([made], len(texts), "queries" if role == "query" else "generated texts")
    return Encoded(made.array("vectors"), Cost.from_dict(made.meta["cost"]))


def _report_zeros(made: Sequence[Artefact], count: int, what: str) -> None:
    """Write a warning if vectors are all zero: such a text scores 0 with everything, which no model means."""
    if zeros := sum(int(artefact.meta.get("zeros", 0)) for artefact in made):
        log.warning("%s of %s %s have a vector of zeros: they match nothing", f"{zeros:,}", f"{count:,}", what)


def _kept_encoded(encoder: Encoder, shard: TextShard, role: Role, store: Store, reporter: Reporter) -> Encoded:
    """Return the vectors of texts; what was finished when an earlier run died is not encoded again."""
    texts, parts = shard.read(), PartialVectors(store, shard.key)
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
        self.keep(positions, vectors, cost)
        self._waiting.clear()
        self._written = now

    def keep(self, positions: npt.NDArray[np.int64], vectors: Vectors, cost: Cost) -> None:
        """Write a finished part."""

        def build(folder: Path) -> dict[str, Any]:
            write_array(folder / "positions.npy", positions)
            write_array(folder / "vectors.npy", vectors)
            return {"cost": cost.as_dict()}

        self._parts.append(self._store.make(PARTS, self._name(len(self._parts)), build))

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
