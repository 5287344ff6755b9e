"""Postings of a stretch of the corpus: which documents hold each term how often. No scorer is in here yet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from scipy import sparse

from r2med.data.corpus import Corpus
from r2med.engine import cores, map_threads
from r2med.retrieve.bm25.chunks import Block, Ints, cut_chunks
from r2med.store import Artefact
from r2med.store.files import array_file, let_go, write_array
from r2med.text.english import analyse_chunks

BLOCK = 8192
"""Documents analysed at a time by one thread, at most."""

MEMORY = 2 << 30
"""Bytes that building may take, unless it is told otherwise."""

LEAST_MEMORY = 768 << 20
"""Bytes that it takes in any case."""

LIBRARIES = 256 << 20
"""Bytes of them that are taken by libraries and by the stems of common words."""

BLOCK_SHARE, PART_SHARE, MERGED_SHARE = 64, 8, 64
"""Bytes that a byte of text takes while its block is cut (by all threads together) and while its part is inverted, and
a posting while parts are merged (measured)."""


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
        for name in ("documents", "frequencies"):
            write_array(folder / f"{name}.npy", getattr(self, name))
        return _save_terms(folder, self.start, self.terms, self.offsets, self.lengths)


def _save_terms(folder: Path, start: int, terms: pa.Array, offsets: Ints, lengths: Ints) -> dict[str, Any]:
    batch = pa.record_batch([terms], names=["term"])
    with pa.OSFile(str(folder / "terms.arrow"), "wb") as sink, pa.ipc.new_file(sink, batch.schema) as writer:
        writer.write_batch(batch)
    write_array(folder / "offsets.npy", offsets)
    write_array(folder / "lengths.npy", lengths)
    return {"start": start, "postings": int(offsets[-1]), "terms": len(terms)}


def write_segment(corpus: Corpus, start: int, folder: Path, memory: int = MEMORY) -> dict[str, Any]:
    """Write the segment of a corpus that is a stretch of another and starts there; returns its metadata.

    What does not fit into memory is built in parts; the files are the same, byte by byte.
    """
    stretches = [*corpus.stretches((memory - LIBRARIES) // PART_SHARE)]
    if len(stretches) == 1:
        return replace(build_segment(corpus, *stretches[0], memory), start=start).save(folder)
    with TemporaryDirectory(dir=folder) as scratch:
        parts = []
        for first, stop in stretches:
            path = Path(scratch) / str(first)
            path.mkdir()
            parts.append(Segment.open(Artefact(path, build_segment(corpus, first, stop, memory).save(path))))
        return _merge(parts, start, folder, memory // MERGED_SHARE)


def build_segment(corpus: Corpus, start: int, stop: int, memory: int = MEMORY) -> Segment:
    """Analyse and invert a stretch of the corpus, on all cores."""

    def cut(stretch: tuple[int, int]) -> Block:
        return cut_chunks(pa.concat_arrays([texts for _, _, texts in corpus.batches(*stretch)]))

    blocks = [*map_threads(cut, corpus.stretches(memory // BLOCK_SHARE // cores(), BLOCK, start, stop))]
    pa.default_memory_pool().release_unused()
    distinct = pa.concat_arrays([block.distinct for block in blocks]).dictionary_encode()
    terms = _analyse(distinct.dictionary.to_pylist())
    numbering = np.split(distinct.indices.to_numpy(), np.cumsum([len(block.distinct) for block in blocks])[:-1])
    counted = [*map_threads(lambda pair: _count(*pair, terms), zip(blocks, numbering, strict=True))]
    del blocks
    lengths = np.concatenate([lengths for _, lengths in counted])
    matrix = sparse.hstack([counts for counts, _ in counted], format="csr")
    frequencies = matrix.data.astype(np.min_scalar_type(matrix.data.max(initial=0)))
    return Segment(start, terms.terms, matrix.indptr, matrix.indices, frequencies, lengths)


def _analyse(chunks: list[str]) -> Terms:
    analysed = analyse_chunks(chunks)
    encoded = pa.array([term for terms in analysed for term in terms], pa.string()).dictionary_encode()
    counts = np.fromiter(map(len, analysed), np.int32, len(analysed))
    order = _descending(encoded.dictionary)
    numbers = np.empty(len(order), dtype=np.int32)
    numbers[order.to_numpy()] = np.arange(len(order), dtype=np.int32)
    return Terms(encoded.dictionary.take(order), counts, numbers[encoded.indices.to_numpy()])


def _descending(terms: pa.Array) -> pa.Array:
    return pc.sort_indices(terms, sort_keys=[("", "descending")])


def _count(block: Block, numbering: Ints, terms: Terms) -> tuple[sparse.csr_array, Ints]:
    """Return how often each term stands in each document of a block, and how many terms each document has."""
    chunks = numbering.take(block.chunks)
    counts = terms.counts.take(chunks)
    starts = np.cumsum(terms.counts, dtype=np.int32) - terms.counts
    tokens = terms.numbers.take(_spread(starts.take(chunks), counts))
    size = len(block.chunks_per_document)
    owners = np.repeat(np.repeat(np.arange(size, dtype=np.int32), block.chunks_per_document), counts)
    # A counting sort by term that keeps the documents of each in order, in compiled code; then equal pairs are one.
    ones = np.ones(len(tokens), dtype=np.int32)
    matrix = sparse.coo_array((ones, (tokens, owners)), shape=(len(terms.terms), size)).tocsr()
    return matrix, np.bincount(owners, minlength=size).astype(np.int32)


def _spread(starts: Ints, counts: Ints) -> Ints:
    """Return start, start+1, … (count of them) for each pair, all in one array."""
    ends = np.cumsum(counts, dtype=np.int32)
    return np.asarray(np.arange(counts.sum(), dtype=np.int32) + np.repeat(starts - (ends - counts), counts))


def _merge(parts: Sequence[Segment], start: int, folder: Path, at_once: int) -> dict[str, Any]:
    """Write consecutive parts as one segment, so many postings at a time; returns its metadata."""
    terms = pa.chunked_array([part.terms for part in parts]).unique()
    terms = terms.take(_descending(terms))
    rows = [np.asarray(pc.index_in(part.terms, value_set=terms)) for part in parts]
    counts = np.zeros(len(terms), np.int32)
    for part, numbers in zip(parts, rows, strict=True):
        counts[numbers] += np.diff(part.offsets)
    offsets = np.append(np.int32(0), np.cumsum(counts, dtype=np.int32))
    shape = (int(offsets[-1]),)
    kind = np.result_type(*(part.frequencies.dtype for part in parts))
    with (
        array_file(folder / "documents.npy", offsets.dtype, shape) as add_documents,
        array_file(folder / "frequencies.npy", kind, shape) as add_frequencies,
    ):
        # A term's postings are at most as many as documents, so a range of terms holds little more than was asked for.
        bounds = np.unique(offsets.searchsorted([*range(0, shape[0], at_once), shape[0]]))
        for first, stop in pairwise(bounds):
            pieces = [_rows(part, numbers, first, stop) for part, numbers in zip(parts, rows, strict=True)]
            matrix = sparse.hstack(pieces, format="csr")
            add_documents(matrix.indices)
            add_frequencies(matrix.data)
            for part in parts:
                let_go(part.documents)
                let_go(part.frequencies)
    return _save_terms(folder, start, terms, offsets, np.concatenate([part.lengths for part in parts]))


def _rows(part: Segment, numbers: Ints, first: int, stop: int) -> sparse.csr_array:
    """Return the postings of a range of terms, given the number of each of the part's terms among all."""
    low, high = numbers.searchsorted((first, stop))
    offsets = np.zeros(stop - first + 1, np.int32)
    offsets[numbers[low:high] - first + 1] = np.diff(part.offsets[low : high + 1])
    here = slice(part.offsets[low], part.offsets[high])
    content = (part.frequencies[here], part.documents[here], np.cumsum(offsets, dtype=np.int32))
    return sparse.csr_array(content, shape=(stop - first, len(part.lengths)))
