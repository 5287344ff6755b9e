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
from r2med.retrieve.bm25.scorers import Collection
from r2med.store import Artefact, Store, digest
from r2med.store.files import write_array
from r2med.text.english import analyse_chunks

VERSION = 1
"""Raised whenever analysis or the files change, so that an older index is not taken for a new one."""

FEW = 200
"""One term in so many of a vocabulary is found by halving it as soon as by hashing all of it (measured: 127 to 205)."""

BLOCK = 4096
"""Documents analysed at a time by one thread."""

SEGMENT = 1 << 18
"""Documents of one index segment: bounds the memory of building, and keeps offsets within 32 bits."""

NEVER_AT_EDGE = '()[]{}<>.,:;!?"/\\|=+&%$@^~`-'
"""Not the apostrophe (it may end a Hebrew word), the underscore (it joins), nor * and # (keycap emoji)."""

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
    """The postings of one stretch of rows, term after term, documents ascending within each."""

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
    counted = map_threads(lambda pair: _count(*pair, terms), zip(blocks, numbering, strict=True))
    return _merge(start, terms.terms, [*counted])


def cut_chunks(texts: pa.Array) -> Block:
    """Return texts as chunks between white space, those of one analysis as one."""
    # Segmentation never joins across ASCII white space, so chunks can be told apart first, in Arrow, and only
    # the distinct ones meet Python: bare of case and of marks that are never part of a term at a chunk's edge.
    lists = pc.ascii_split_whitespace(texts)
    written = lists.flatten().dictionary_encode()
    bare = pc.ascii_trim(pc.ascii_lower(written.dictionary), characters=NEVER_AT_EDGE).dictionary_encode()
    chunks = bare.indices.to_numpy()[written.indices.to_numpy()]
    return Block(bare.dictionary, chunks, np.diff(lists.offsets.to_numpy()))


def _analyse(chunks: list[str]) -> Terms:
    analysed = analyse_chunks(chunks)
    encoded = pa.array([term for terms in analysed for term in terms], pa.string()).dictionary_encode()
    counts = np.fromiter(map(len, analysed), np.int32, len(analysed))
    return Terms(encoded.dictionary, counts, encoded.indices.to_numpy())


def _count(block: Block, numbering: Ints, terms: Terms) -> tuple[Ints, Ints, Ints, Ints]:
    """Return (term, document, frequency) of each posting of a block, and the length of each document."""
    size = len(block.chunks_per_document)
    chunks = numbering[block.chunks]
    counts = terms.counts[chunks]
    starts = np.cumsum(terms.counts, dtype=np.int32) - terms.counts
    tokens = terms.numbers[_spread(starts[chunks], counts)]
    owners = np.repeat(np.repeat(np.arange(size, dtype=np.int32), block.chunks_per_document), counts)
    pairs = tokens * np.int64(size) + owners
    pairs.sort()
    first = np.flatnonzero(np.diff(pairs, prepend=-1))
    term, document = np.divmod(pairs[first], size)
    frequencies = np.diff(first, append=len(pairs))
    lengths = np.bincount(owners, minlength=size)
    return tuple(a.astype(np.int32) for a in (term, document, frequencies, lengths))  # type: ignore[return-value]


def _spread(starts: Ints, counts: Ints) -> Ints:
    """Return start, start+1, … (count of them) for each pair, all in one array."""
    ends = np.cumsum(counts, dtype=np.int32)
    return np.asarray(np.arange(counts.sum(), dtype=np.int32) + np.repeat(starts - (ends - counts), counts))


def _merge(start: int, terms: pa.Array, blocks: list[tuple[Ints, Ints, Ints, Ints]]) -> Segment:
    sizes = [len(lengths) for _, _, _, lengths in blocks]
    firsts = np.cumsum([0, *sizes[:-1]], dtype=np.int32)
    rows = np.concatenate([term for term, _, _, _ in blocks])
    columns = np.concatenate([block[1] + first for block, first in zip(blocks, firsts, strict=True)])
    frequencies = np.concatenate([frequency for _, _, frequency, _ in blocks])
    # A counting sort by term that keeps the documents of each in order: SciPy's COO -> CSR, in compiled code.
    triples = sparse.coo_array((frequencies, (rows, columns)), shape=(len(terms), sum(sizes)))
    matrix = triples.tocsr()
    return Segment(
        start=start,
        terms=terms,
        offsets=matrix.indptr.astype(np.int32),
        documents=matrix.indices.astype(np.int32),
        frequencies=matrix.data.astype(np.min_scalar_type(matrix.data.max(initial=0))),
        lengths=np.concatenate([lengths for _, _, _, lengths in blocks]),
    )


@dataclass(frozen=True)
class Index:
    """Segments, and the numbers a scorer needs of all of them together."""

    key: str
    segments: tuple[Segment, ...]
    collection: Collection
    seconds: float
    orders: tuple[Ints, ...] = ()
    """Each segment's terms in ascending order, by their positions; only where single queries have to be fast."""
    repeats: tuple[Segment, ...] = ()
    """Rows that are no documents but count in the statistics."""

    def sorted(self) -> Index:
        """Return it for queries that come one by one: its vocabulary is sorted now, not hashed for each."""
        orders = [pc.sort_indices(segment.terms).to_numpy().astype(np.int32) for segment in self.segments]
        return replace(self, orders=tuple(orders))

    def positions(self, terms: pa.Array) -> list[Positions]:
        """Return for each segment where each term stands in it, -1 for those it does not have."""
        positions = []
        for number, segment in enumerate(self.segments):
            if self.orders and len(terms) * FEW <= len(segment.terms):
                positions.append(_sought(terms.to_pylist(), segment.terms, self.orders[number]))
            else:
                positions.append(_hashed(terms, segment.terms))
        return positions

    def df(self, terms: pa.Array, positions: list[Positions] | None = None) -> npt.NDArray[np.int64]:
        """Return in how many documents each term stands; 0 for those the corpus does not have."""
        total = np.zeros(len(terms), dtype=np.int64)
        positions = [
            *(positions or self.positions(terms)),
            *(_hashed(terms, segment.terms) for segment in self.repeats),
        ]
        for segment, here in zip((*self.segments, *self.repeats), positions, strict=True):
            known = here >= 0
            total[known] += segment.offsets[here[known] + 1] - segment.offsets[here[known]]
        return total


def _hashed(terms: pa.Array, vocabulary: pa.Array) -> Positions:
    return np.asarray(pc.fill_null(pc.index_in(terms, value_set=vocabulary), -1), dtype=np.int64)


def _sought(words: list[str], vocabulary: pa.Array, order: Ints) -> Positions:
    positions = np.full(len(words), -1, dtype=np.int64)
    for number, word in enumerate(words):
        # Arrow sorts bytes of UTF-8, Python compares code points: the same order.
        rank = bisect_left(order, word, key=lambda position: vocabulary[int(position)].as_py())
        if rank < len(order) and vocabulary[int(order[rank])].as_py() == word:
            positions[number] = order[rank]
    return positions


def open_index(corpus: Corpus, store: Store, counts_repeats: bool = False) -> Index:
    """Return the index of a corpus; segments that are in the store are mapped, the others built."""
    key = digest(["bm25 index", VERSION, corpus.fingerprint])
    segments, seconds = _segments(corpus, key, store)
    repeats: tuple[Segment, ...] = ()
    if counts_repeats and corpus.repeats is not None:
        repeats, more = _segments(corpus.repeats, digest([key, "repeats"]), store)
        seconds += more
    counted = (*segments, *repeats)
    collection = Collection(
        documents=sum(len(segment.lengths) for segment in counted),
        filled=sum(int(np.count_nonzero(segment.lengths)) for segment in counted),
        tokens=sum(int(segment.lengths.sum(dtype=np.int64)) for segment in counted),
    )
    return Index(key, segments, collection, seconds, repeats=repeats)


def _segments(corpus: Corpus, key: str, store: Store) -> tuple[tuple[Segment, ...], float]:
    """Return the segments of a corpus and the seconds that building them took."""
    segments = []
    seconds = 0.0
    for start in range(0, len(corpus), SEGMENT):

        def build(folder: Any, start: int = start) -> dict[str, Any]:
            return build_segment(corpus, start, min(start + SEGMENT, len(corpus))).save(folder)

        artefact = store.make("bm25-postings", digest([key, start]), build)
        segments.append(Segment.open(artefact))
        seconds += artefact.meta["seconds"]
    return tuple(segments), seconds
