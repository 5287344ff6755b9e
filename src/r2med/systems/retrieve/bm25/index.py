"""BM25 index of a corpus: how often each term occurs in each document. It does not depend on the scorer.

The index consists of segments, which are made on the cores of this machine or on a cluster, and kept in the store.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from scipy import sparse

from r2med.data.corpus import Corpus
from r2med.foundation.engine import cores, map_threads
from r2med.foundation.engine.work import Key, WorkNeeds
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.store import Artefact, Store, digest
from r2med.foundation.store.files import write_array
from r2med.foundation.text.analysers import analyser
from r2med.foundation.text.search_languages import ENGLISH
from r2med.systems.retrieve.bm25.chunks import Block, Ints, cut_chunks
from r2med.systems.retrieve.bm25.scorers import Collection

VERSION = 1
"""Version of the English text analysis. Increase it when the analysis changes, because scores change too."""

LAYOUT_VERSION = 3
"""Version of the index files. Increase it when the files change, so that an old index is not read as a new one."""

POSTINGS_KIND = "bm25-postings"

SEGMENT_DOCUMENTS, SEGMENT_BYTES = 1 << 18, 224 << 20
"""Limits of one segment: its documents, and the size of their texts. They keep offsets within 32 bits.

Building takes about eight bytes of memory per byte of text, so never more than about 2 GiB.
"""

BLOCK_DOCUMENTS = 8192
"""Maximum number of documents that one thread analyses at a time."""

BLOCKS_BYTES = 32 << 20
"""Size of the texts that all threads together analyse at a time. It takes 64 bytes of memory per byte of text."""

VOCABULARY_RATIO = 200
"""If a query has fewer than one term per this many terms of the vocabulary, binary search is faster than hashing.

Measured values are 127 to 205.
"""

Positions = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Segment:
    """The postings of a range of rows, with terms in descending and documents in ascending order.

    Terms are descending so that a search can select columns of this matrix without copying (`Impacts`).
    """

    start: int
    terms: pa.Array
    offsets: Ints
    documents: Ints
    frequencies: npt.NDArray[Any]
    lengths: Ints

    @classmethod
    def open(cls, artefact: Artefact) -> Segment:
        """Open a segment from the store, memory-mapped."""
        with pa.memory_map(str(artefact.path / "terms.arrow")) as source:
            terms = pa.ipc.open_file(source).get_batch(0).column(0)
        arrays = {name: artefact.array(name) for name in ("offsets", "documents", "frequencies", "lengths")}
        return cls(artefact.meta["start"], terms, **arrays)

    def positions(self, terms: pa.Array) -> Positions:
        """Return the position of each term, or -1 if the segment does not contain the term."""
        if len(terms) * VOCABULARY_RATIO > len(self.terms):
            return np.asarray(pc.fill_null(pc.index_in(terms, value_set=self.terms), -1), dtype=np.int64)
        return np.array([self._position(term) for term in terms.to_pylist()], dtype=np.int64)

    def _position(self, term: str) -> int:
        # Arrow sorts by UTF-8 bytes and Python by code points. Both give the same order.
        terms = self.terms
        position = bisect_left(range(len(terms)), True, key=lambda number: terms[number].as_py() <= term)
        return position if position < len(terms) and terms[position].as_py() == term else -1


@dataclass(frozen=True)
class Index:
    """Segments of postings, and the statistics that a scorer needs."""

    key: str
    segments: tuple[Segment, ...]
    repeats: tuple[Segment, ...]
    """Rows with a repeated id. They are not documents, but they count in the statistics."""
    collection: Collection
    seconds: float
    """Time that it took to build the segments."""

    def lookup(self, terms: pa.Array) -> tuple[list[Positions], npt.NDArray[np.int64]]:
        """Return the positions of terms in each segment, and in how many documents each term occurs."""
        df = np.zeros(len(terms), dtype=np.int64)
        positions = [segment.positions(terms) for segment in (*self.segments, *self.repeats)]
        for segment, here in zip((*self.segments, *self.repeats), positions, strict=True):
            known = here >= 0
            df[known] += segment.offsets[here[known] + 1] - segment.offsets[here[known]]
        return positions[: len(self.segments)], df


def open_index(corpus: Corpus, runtime: Runtime, language: str = ENGLISH, counts_repeats: bool = False) -> Index:
    """Return the index of a corpus. Segments in the store are memory-mapped, and others are built."""
    key = digest(["bm25 index", VERSION, LAYOUT_VERSION, corpus.fingerprint, analyser(language).key])
    artefacts, repeats = _segments(corpus, key, language, runtime), []
    if counts_repeats and corpus.repeats is not None:
        repeats = _segments(corpus.repeats, digest([key, "repeats"]), language, runtime)
    segments = [Segment.open(artefact) for artefact in (*artefacts, *repeats)]
    collection = Collection(
        documents=sum(len(segment.lengths) for segment in segments),
        filled=sum(int(np.count_nonzero(segment.lengths)) for segment in segments),
        tokens=sum(int(segment.lengths.sum(dtype=np.int64)) for segment in segments),
    )
    seconds = sum(artefact.meta["seconds"] for artefact in (*artefacts, *repeats))
    return Index(key, tuple(segments[: len(artefacts)]), tuple(segments[len(artefacts) :]), collection, seconds)


@dataclass(frozen=True)
class DocumentShard:
    """Consecutive documents of a corpus, with the key of their postings."""

    key: str
    start: int
    documents: Corpus


def _segments(corpus: Corpus, key: str, language: str, runtime: Runtime) -> list[Artefact]:
    """Return the segments of a corpus. Those that the store does not have are built, on a cluster if there is one."""
    bounds = [
        bound
        for start in range(0, len(corpus), SEGMENT_DOCUMENTS)
        for bound in corpus.stretches(SEGMENT_BYTES, start=start, stop=start + SEGMENT_DOCUMENTS)
    ]
    keys = {start: digest([key, start, stop]) for start, stop in bounds}
    segments = {start: runtime.store.get(POSTINGS_KIND, key) for start, key in keys.items()}
    missing = (
        DocumentShard(keys[start], start, corpus.part(start, stop)) for start, stop in bounds if segments[start] is None
    )
    build = partial(build_segment, language=language)
    for shard, artefact in runtime.engine.map(build, missing, runtime.store, WorkNeeds()):
        segments[shard.start] = artefact
    return [artefact for artefact in segments.values() if artefact is not None]


def build_segment(shard: DocumentShard, store: Store, language: str) -> tuple[Key, Artefact]:
    """Return the postings of documents from a store, and build them first if they are missing. No model takes part."""
    return {}, store.make(POSTINGS_KIND, shard.key, partial(_write_segment, shard, language))


def _write_segment(shard: DocumentShard, language: str, folder: Path) -> dict[str, Any]:
    """Analyse documents on all cores, write how often each term occurs in each document, and return the metadata."""
    documents = shard.documents

    def cut(stretch: tuple[int, int]) -> Block:
        return cut_chunks(pa.concat_arrays([texts for _, _, texts in documents.batches(*stretch)]))

    blocks = [*map_threads(cut, documents.stretches(BLOCKS_BYTES // cores(), BLOCK_DOCUMENTS))]
    pa.default_memory_pool().release_unused()
    distinct = pa.concat_arrays([block.distinct for block in blocks]).dictionary_encode()
    terms, terms_of_chunks = _analyse(distinct.dictionary.to_pylist(), language)
    numbering = np.split(distinct.indices.to_numpy(), np.cumsum([len(block.distinct) for block in blocks])[:-1])
    counted = map_threads(lambda pair: _count(*pair, terms_of_chunks), zip(blocks, numbering, strict=True))
    matrix = sparse.hstack([*counted], format="csr")
    with pa.OSFile(str(folder / "terms.arrow"), "wb") as sink, pa.ipc.new_file(sink, terms.schema) as writer:
        writer.write_batch(terms)
    write_array(folder / "offsets.npy", matrix.indptr)
    write_array(folder / "documents.npy", matrix.indices)
    write_array(folder / "frequencies.npy", matrix.data.astype(np.min_scalar_type(matrix.data.max(initial=0))))
    write_array(folder / "lengths.npy", matrix.sum(axis=0).astype(np.int32))
    return {"start": shard.start, "postings": matrix.nnz, "terms": len(terms)}


def _analyse(chunks: list[str], language: str) -> tuple[pa.RecordBatch, sparse.csr_array]:
    """Return the terms of all chunks, descending, and how often each chunk (line) has each term (column)."""
    analysed = analyser(language).analyse_chunks(chunks)
    encoded = pa.array([term for terms in analysed for term in terms], pa.string()).dictionary_encode()
    order = pc.sort_indices(encoded.dictionary, sort_keys=[("", "descending")])
    numbers = np.empty(len(order), np.int32)
    numbers[order.to_numpy()] = np.arange(len(order))
    bounds = np.append(0, np.cumsum([*map(len, analysed)]))
    columns = numbers[encoded.indices.to_numpy()]
    matrix = sparse.csr_array((np.ones(len(columns), np.int32), columns, bounds), (len(chunks), len(order)))
    return pa.record_batch([encoded.dictionary.take(order)], names=["term"]), matrix


def _count(block: Block, numbers: Ints, terms_of_chunks: sparse.csr_array) -> sparse.csr_array:
    """Return how often each term (line) occurs in each document of a block (column).

    `numbers` are those of the block's distinct chunks among all chunks.
    """
    bounds = np.append(0, np.cumsum(block.chunks_per_document))
    shape = (len(block.chunks_per_document), terms_of_chunks.shape[0])
    chunks_of_documents = sparse.csr_array(
        (np.ones(len(block.chunks), np.int32), numbers.take(block.chunks), bounds), shape
    )
    return (chunks_of_documents @ terms_of_chunks).T.tocsr()
