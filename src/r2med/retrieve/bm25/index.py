"""The index of a corpus: segments of postings in the store, and what they add up to.

Postings say which documents hold each term how often, for a stretch of the corpus. No scorer is in here yet.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from scipy import sparse

from r2med.data.corpus import Corpus
from r2med.engine import map_threads
from r2med.engine.work import THREADS, Engine, Needs, Work
from r2med.retrieve.bm25.scorers import Collection
from r2med.store import Artefact, Store, digest
from r2med.store.files import write_array
from r2med.text.english import analyse_chunks

VERSION = 1
"""Raised whenever analysis changes: scores do."""

LAYOUT = 2
"""Raised whenever the files change, so that an older index is not taken for a new one."""

FEW = 200
"""One term in so many of a vocabulary is found by halving it as soon as by hashing all of it (measured: 127 to 205)."""

BLOCK = 8192
"""Documents analysed at a time by one thread."""

SEGMENT = 1 << 18
"""Documents of one index segment: bounds the memory of building, and keeps offsets within 32 bits."""

NEVER_AT_EDGE = '.,:;"'
"""Marks that are no part of a term at a chunk's edge, but may join inside one. Not the apostrophe (it may end a Hebrew
word), the underscore (it joins), nor * and # (keycap emoji)."""

BLANKED = bytes(32 if chr(c) in "\t\n\v\f\r()[]{}<>!?/\\|=+&%$@^~`-" else c + 32 * (65 <= c <= 90) for c in range(256))
"""Bytes of UTF-8 in lower case where they are ASCII, with blanks for what is outside of terms wherever it stands."""

Ints = npt.NDArray[np.int32]
Positions = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Block:
    """A few documents as chunks: the distinct ones, and for each position in the text which of them stands there."""

    distinct: pa.Array
    chunks: Ints
    chunks_per_document: Ints


@dataclass(frozen=True)
class Terms:
    """The analysis of all distinct chunks: how many terms each has, and their numbers in a row."""

    terms: pa.Array
    counts: Ints
    numbers: Ints


@dataclass(frozen=True)
class Segment:
    """The postings of one stretch of rows: terms descending, documents ascending within each.

    Descending, so that the search can name any columns of this matrix without copying one (`searcher.add_columns`).
    """

    start: int
    terms: pa.Array
    offsets: Ints
    documents: Ints
    frequencies: npt.NDArray[Any]
    lengths: Ints

    @classmethod
    def open(cls, artefact: Artefact) -> Segment:
        """Map a segment from the store."""
        with pa.memory_map(str(artefact.file("terms.arrow"))) as source:
            terms = pa.ipc.open_file(source).get_batch(0).column(0)
        arrays = {name: artefact.array(name) for name in ("offsets", "documents", "frequencies", "lengths")}
        return cls(artefact.meta["start"], terms, **arrays)

    def save(self, folder: Path) -> dict[str, Any]:
        """Write the segment's files; returns its metadata."""
        batch = pa.record_batch([self.terms], names=["term"])
        with (
            pa.OSFile(str(folder / "terms.arrow"), "wb") as sink,
            pa.ipc.new_file(sink, batch.schema) as writer,
        ):
            writer.write_batch(batch)
        for name in ("offsets", "documents", "frequencies", "lengths"):
            write_array(folder / f"{name}.npy", getattr(self, name))
        return {"start": self.start, "postings": len(self.documents), "terms": len(self.terms)}


def build_segment(corpus: Corpus, start: int, stop: int) -> Segment:
    """Analyse and invert a stretch of the corpus, on all cores."""

    def cut(first: int) -> Block:
        return cut_chunks(pa.concat_arrays([texts for _, _, texts in corpus.batches(first, min(first + BLOCK, stop))]))

    blocks = [*map_threads(cut, range(start, stop, BLOCK))]
    distinct = pa.chunked_array([block.distinct for block in blocks], pa.large_string()).dictionary_encode()
    terms = _analyse(distinct.chunk(0).dictionary.to_pylist())
    numbering = [chunk.indices.to_numpy() for chunk in distinct.chunks]
    counted = [*map_threads(lambda pair: _count(*pair, terms), zip(blocks, numbering, strict=True))]
    matrix = sparse.hstack(counted, format="csr")
    frequencies = matrix.data.astype(np.min_scalar_type(matrix.data.max(initial=0)))
    lengths = np.concatenate([counts.sum(axis=0, dtype=np.int32) for counts in counted])
    return Segment(start, terms.terms, matrix.indptr, matrix.indices, frequencies, lengths)


def cut_chunks(texts: pa.Array) -> Block:
    """Return texts as chunks between white space, those of one analysis as one."""
    # Segmentation never joins across ASCII white space, so chunks can be told apart first, in Arrow, and only
    # the distinct ones meet Python: bare of case and of marks that are never part of a term.
    _, offsets, letters = texts.buffers()
    blanked = pa.py_buffer(letters.to_pybytes().translate(BLANKED) if letters else b"")
    texts = pa.LargeStringArray.from_buffers(len(texts), offsets, blanked, offset=texts.offset)
    lists = pc.ascii_split_whitespace(texts)
    written = lists.flatten().dictionary_encode()
    bare = pc.ascii_trim(written.dictionary, characters=NEVER_AT_EDGE).dictionary_encode()
    chunks = bare.indices.to_numpy()[written.indices.to_numpy()]
    return Block(bare.dictionary, chunks, np.diff(lists.offsets.to_numpy()))


def _analyse(chunks: list[str]) -> Terms:
    analysed = analyse_chunks(chunks)
    encoded = pa.array([term for terms in analysed for term in terms], pa.string()).dictionary_encode()
    counts = np.fromiter(map(len, analysed), np.int32, len(analysed))
    order = pc.sort_indices(encoded.dictionary, sort_keys=[("", "descending")])
    numbers = np.empty(len(order), dtype=np.int32)
    numbers[order.to_numpy()] = np.arange(len(order), dtype=np.int32)
    return Terms(encoded.dictionary.take(order), counts, numbers[encoded.indices.to_numpy()])


def _count(block: Block, numbering: Ints, terms: Terms) -> sparse.csr_array:
    """Return how often each term stands in each document of a block."""
    chunks = numbering[block.chunks]
    counts = terms.counts[chunks]
    starts = np.cumsum(terms.counts, dtype=np.int32) - terms.counts
    tokens = terms.numbers[_spread(starts[chunks], counts)]
    size = len(block.chunks_per_document)
    owners = np.repeat(np.repeat(np.arange(size, dtype=np.int32), block.chunks_per_document), counts)
    # A counting sort by term that keeps the documents of each in order, in compiled code; then equal pairs are one.
    ones = np.ones(len(tokens), dtype=np.int32)
    return sparse.coo_array((ones, (tokens, owners)), shape=(len(terms.terms), size)).tocsr()


def _spread(starts: Ints, counts: Ints) -> Ints:
    """Return start, start+1, … (count of them) for each pair, all in one array."""
    ends = np.cumsum(counts, dtype=np.int32)
    return np.asarray(np.arange(counts.sum(), dtype=np.int32) + np.repeat(starts - (ends - counts), counts))


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


def open_index(corpus: Corpus, store: Store, counts_repeats: bool = False, engine: Engine = THREADS) -> Index:
    """Return the index of a corpus; segments that are in the store are mapped, the others built."""
    key = digest(["bm25 index", VERSION, LAYOUT, corpus.fingerprint])
    segments, seconds = _segments(corpus, key, store, engine)
    repeats: tuple[Segment, ...] = ()
    if counts_repeats and corpus.repeats is not None:
        repeats, more = _segments(corpus.repeats, digest([key, "repeats"]), store, engine)
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

    def __call__(self, shard: DocumentShard, store: Store) -> Artefact:
        """Return the segment in the store, built if it is not there."""

        def build(folder: Path) -> dict[str, Any]:
            return replace(build_segment(shard.documents, 0, len(shard.documents)), start=shard.start).save(folder)

        return store.make(POSTINGS, shard.key, build)


def _segments(corpus: Corpus, key: str, store: Store, engine: Engine) -> tuple[tuple[Segment, ...], float]:
    """Return the segments of a corpus and the seconds that building them took."""
    keys = {start: digest([key, start]) for start in range(0, len(corpus), SEGMENT)}
    made = {start: store.get(POSTINGS, key) for start, key in keys.items()}
    missing = (
        DocumentShard(keys[start], start, corpus.part(start, start + SEGMENT))
        for start, artefact in made.items()
        if artefact is None
    )
    for shard, artefact in engine.map(BuildSegment(), missing, store, Needs(ahead=0)):
        made[shard.start] = artefact
    artefacts = [artefact for artefact in made.values() if artefact is not None]
    return tuple(map(Segment.open, artefacts)), sum(artefact.meta["seconds"] for artefact in artefacts)
