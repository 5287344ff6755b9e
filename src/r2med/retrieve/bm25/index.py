"""The index of a corpus: segments of postings in the store, and what they add up to."""

from __future__ import annotations

import logging
from bisect import bisect_left
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from r2med.data.corpus import Corpus
from r2med.engine.work import THREADS, Engine, Needs, Work
from r2med.retrieve.bm25.postings import LEAST_MEMORY, MEMORY, Segment, write_segment
from r2med.retrieve.bm25.scorers import Collection
from r2med.store import Artefact, Store, digest

log = logging.getLogger("r2med")

VERSION = 1
"""Raised whenever analysis changes: scores do."""

LAYOUT = 2
"""Raised whenever the files change, so that an older index is not taken for a new one."""

FEW = 200
"""One term in so many of a vocabulary is found by halving it as soon as by hashing all of it (measured: 127 to 205)."""

SEGMENT = 1 << 18
"""Documents of one index segment: bounds the memory of building, and keeps offsets within 32 bits."""

Positions = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Index:
    """Segments, and the numbers a scorer needs of all of them together."""

    key: str
    segments: tuple[Segment, ...]
    collection: Collection
    seconds: float
    repeats: tuple[Segment, ...] = ()
    """Rows that are no documents but count in the statistics."""

    def positions(self, terms: pa.Array) -> list[Positions]:
        """Return for each segment where each term stands in it, -1 for those it does not have."""
        return [_positions(terms, segment.terms) for segment in self.segments]

    def df(self, terms: pa.Array, positions: list[Positions] | None = None) -> npt.NDArray[np.int64]:
        """Return in how many documents each term stands; 0 for those the corpus does not have."""
        total = np.zeros(len(terms), dtype=np.int64)
        positions = [
            *(positions or self.positions(terms)),
            *(_positions(terms, segment.terms) for segment in self.repeats),
        ]
        for segment, here in zip((*self.segments, *self.repeats), positions, strict=True):
            known = here >= 0
            total[known] += segment.offsets[here[known] + 1] - segment.offsets[here[known]]
        return total


def _positions(terms: pa.Array, vocabulary: pa.Array) -> Positions:
    if len(terms) * FEW > len(vocabulary):
        return np.asarray(pc.fill_null(pc.index_in(terms, value_set=vocabulary), -1), dtype=np.int64)
    return np.array([_sought(term, vocabulary) for term in terms.to_pylist()], dtype=np.int64)


def _sought(term: str, vocabulary: pa.Array) -> int:
    # Arrow sorts bytes of UTF-8, Python compares code points: the same order.
    position = bisect_left(range(len(vocabulary)), True, key=lambda number: vocabulary[number].as_py() <= term)
    return position if position < len(vocabulary) and vocabulary[position].as_py() == term else -1


def open_index(
    corpus: Corpus, store: Store, counts_repeats: bool = False, engine: Engine = THREADS, memory: int = MEMORY
) -> Index:
    """Return the index of a corpus; segments that are in the store are mapped, the others built within `memory`."""
    key = digest(["bm25 index", VERSION, LAYOUT, corpus.fingerprint])
    work = BuildSegment(memory)
    segments, seconds = _segments(corpus, key, store, engine, work)
    repeats: tuple[Segment, ...] = ()
    if counts_repeats and corpus.repeats is not None:
        repeats, more = _segments(corpus.repeats, digest([key, "repeats"]), store, engine, work)
        seconds += more
    counted = (*segments, *repeats)
    collection = Collection(
        documents=sum(len(segment.lengths) for segment in counted),
        filled=sum(int(np.count_nonzero(segment.lengths)) for segment in counted),
        tokens=sum(int(segment.lengths.sum(dtype=np.int64)) for segment in counted),
    )
    return Index(key, segments, collection, seconds, repeats=repeats)


POSTINGS = "bm25-postings"


@dataclass(frozen=True)
class DocumentShard:
    """Consecutive documents of a corpus, and the key of their postings."""

    key: str
    start: int
    documents: Corpus


@dataclass(frozen=True)
class BuildSegment(Work[DocumentShard, Artefact]):
    """Builds segments on any machine."""

    memory: int

    def __call__(self, shard: DocumentShard, store: Store) -> Artefact:
        """Return the segment in the store, built if it is not there."""

        def build(folder: Path) -> dict[str, Any]:
            return write_segment(shard.documents, shard.start, folder, self.memory)

        return store.make(POSTINGS, shard.key, build)


def _segments(
    corpus: Corpus, key: str, store: Store, engine: Engine, work: BuildSegment
) -> tuple[tuple[Segment, ...], float]:
    """Return the segments of a corpus and the seconds that building them took."""
    keys = {start: digest([key, start]) for start in range(0, len(corpus), SEGMENT)}
    made = {start: store.get(POSTINGS, key) for start, key in keys.items()}
    missing = (
        DocumentShard(keys[start], start, corpus.part(start, start + SEGMENT))
        for start, artefact in made.items()
        if artefact is None
    )
    if work.memory < LEAST_MEMORY and None in made.values():
        log.warning("building a BM25 index takes %d MiB, also with less --memory", LEAST_MEMORY >> 20)
        work = BuildSegment(LEAST_MEMORY)
    for shard, artefact in engine.map(work, missing, store, Needs(ahead=0)):
        made[shard.start] = artefact
    artefacts = [artefact for artefact in made.values() if artefact is not None]
    return tuple(map(Segment.open, artefacts)), sum(artefact.meta["seconds"] for artefact in artefacts)
