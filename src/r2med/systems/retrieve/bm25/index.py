"""BM25 index of a corpus: segments of postings in the store, and their statistics."""

from __future__ import annotations

import logging
from bisect import bisect_left
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from r2med.data.corpus import Corpus
from r2med.foundation.engine.work import THREADS, Engine, Key, WorkNeeds
from r2med.foundation.store import Artefact, Store, digest
from r2med.foundation.text.analysers import analyser
from r2med.foundation.text.search_languages import ENGLISH
from r2med.systems.retrieve.bm25.postings import MEMORY, MIN_MEMORY, Segment, write_segment
from r2med.systems.retrieve.bm25.scorers import Collection

log = logging.getLogger("r2med")

VERSION = 1
"""Version of the English text analysis. Increase it when the analysis changes, because scores change too."""

LAYOUT_VERSION = 2
"""Version of the index files. Increase it when the files change, so that an old index is not read as a new one."""

VOCABULARY_RATIO = 200
"""If a query has fewer than one term per this many terms of the vocabulary, binary search is faster than hashing.

Measured values are 127 to 205.
"""

SEGMENT_DOCUMENTS = 1 << 18
"""Number of documents of one index segment. It limits the memory of building and keeps offsets within 32 bits."""

Positions = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Index:
    """Segments of postings, and the statistics that a scorer needs."""

    key: str
    segments: tuple[Segment, ...]
    collection: Collection
    seconds: float
    repeats: tuple[Segment, ...] = ()
    """Rows with a repeated id. They are not documents, but they count in the statistics."""

    def positions(self, terms: pa.Array) -> list[Positions]:
        """Return the position of each term in each segment, or -1 if the segment does not contain the term."""
        return [_positions(terms, segment.terms) for segment in self.segments]

    def df(self, terms: pa.Array, positions: list[Positions] | None = None) -> npt.NDArray[np.int64]:
        """Return the document frequency of each term, or 0 if the corpus does not contain the term."""
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
    if len(terms) * VOCABULARY_RATIO > len(vocabulary):
        return np.asarray(pc.fill_null(pc.index_in(terms, value_set=vocabulary), -1), dtype=np.int64)
    return np.array([_sought(term, vocabulary) for term in terms.to_pylist()], dtype=np.int64)


def _sought(term: str, vocabulary: pa.Array) -> int:
    # Arrow sorts by UTF-8 bytes and Python by code points. Both give the same order.
    position = bisect_left(range(len(vocabulary)), True, key=lambda number: vocabulary[number].as_py() <= term)
    return position if position < len(vocabulary) and vocabulary[position].as_py() == term else -1


def open_index(
    corpus: Corpus,
    store: Store,
    counts_repeats: bool = False,
    engine: Engine = THREADS,
    memory: int = MEMORY,
    language: str = ENGLISH,
) -> Index:
    """Return the index of a corpus. Segments in the store are memory-mapped; others are built within `memory` bytes."""
    key = digest(["bm25 index", VERSION, LAYOUT_VERSION, corpus.fingerprint, analyser(language).key])
    work = BuildSegment(memory, language)
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


POSTINGS_KIND = "bm25-postings"


@dataclass(frozen=True)
class DocumentShard:
    """Consecutive documents of a corpus, with the key of their postings."""

    key: str
    start: int
    documents: Corpus


@dataclass(frozen=True)
class BuildSegment:
    """Work that builds segments on any machine."""

    memory: int
    language: str = ENGLISH

    def __call__(self, shard: DocumentShard, store: Store) -> tuple[Key, Artefact]:
        """Return the segment from the store, and build it first if it is missing. No model takes part in it."""
        build = partial(write_segment, shard.documents, shard.start, memory=self.memory, language=self.language)
        return {}, store.make(POSTINGS_KIND, shard.key, build)


def _segments(
    corpus: Corpus, key: str, store: Store, engine: Engine, work: BuildSegment
) -> tuple[tuple[Segment, ...], float]:
    """Return the segments of a corpus and the time in seconds that it took to build them."""
    keys = {start: digest([key, start]) for start in range(0, len(corpus), SEGMENT_DOCUMENTS)}
    made = {start: store.get(POSTINGS_KIND, key) for start, key in keys.items()}
    missing = (
        DocumentShard(keys[start], start, corpus.part(start, start + SEGMENT_DOCUMENTS))
        for start, artefact in made.items()
        if artefact is None
    )
    if work.memory < MIN_MEMORY and None in made.values():
        log.warning("building a BM25 index needs %d MiB; the smaller memory limit is not used", MIN_MEMORY >> 20)
        work = replace(work, memory=MIN_MEMORY)
    for shard, artefact in engine.map(work, missing, store, WorkNeeds()):
        made[shard.start] = artefact
    artefacts = [artefact for artefact in made.values() if artefact is not None]
    return tuple(map(Segment.open, artefacts)), sum(artefact.meta["seconds"] for artefact in artefacts)
