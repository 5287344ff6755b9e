"""Postings of a range of the corpus: how often each term occurs in each document. They do not depend on the scorer."""

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
from r2med.foundation.engine import cores, map_threads
from r2med.foundation.store import Artefact
from r2med.foundation.store.files import array_file, let_go, write_array
from r2med.foundation.text.analysers import analyser
from r2med.foundation.text.search_languages import ENGLISH
from r2med.systems.retrieve.bm25.chunks import Block, Ints, cut_chunks

BLOCK_DOCUMENTS = 8192
"""Maximum number of documents that one thread analyses at a time."""

MEMORY = 2 << 30
"""Default limit of the memory for building, in bytes."""

MIN_MEMORY = 768 << 20
"""Minimum memory for building, in bytes."""

LIBRARY_BYTES = 256 << 20
"""Part of the memory that libraries and the stems of common words use, in bytes."""

BLOCK_BYTES_PER_BYTE, PART_BYTES_PER_BYTE, MERGE_BYTES_PER_POSTING = 64, 8, 64
"""Measured memory use in bytes.

The first is per byte of text while all threads cut blocks. The second is per byte of text while a part is inverted. The
third is per posting while parts are merged.
"""


@dataclass(frozen=True)
class Terms:
    """The analysis of all distinct chunks: the number of terms of each chunk, and the numbers of these terms."""

    terms: pa.Array
    counts: Ints
    numbers: Ints


@dataclass(frozen=True)
class Segment:
    """The postings of a range of rows, with terms in descending and documents in ascending order.

    Terms are descending so that a search can select columns of this matrix without copying (`add_columns`).
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

    def save(self, folder: Path) -> dict[str, Any]:
        """Write the files of the segment and return its metadata."""
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


def write_segment(
    corpus: Corpus, start: int, folder: Path, memory: int = MEMORY, language: str = ENGLISH
) -> dict[str, Any]:
    """Write the segment of a part of a corpus that begins at row `start`, and return its metadata.

    If it does not fit into memory, it is built in parts. The files are the same, byte for byte.
    """
    stretches = [*corpus.stretches((memory - LIBRARY_BYTES) // PART_BYTES_PER_BYTE)]
    if len(stretches) == 1:
        return replace(build_segment(corpus, *stretches[0], memory, language), start=start).save(folder)
    with TemporaryDirectory(dir=folder) as scratch:
        parts = []
        for first, stop in stretches:
            path = Path(scratch) / str(first)
            path.mkdir()
            built = build_segment(corpus, first, stop, memory, language)
            parts.append(Segment.open(Artefact(path, built.save(path))))
        return _merge(parts, start, folder, memory // MERGE_BYTES_PER_POSTING)


def build_segment(corpus: Corpus, start: int, stop: int, memory: int = MEMORY, language: str = ENGLISH) -> Segment:
    """Analyse and invert a range of the corpus on all cores."""

    def cut(stretch: tuple[int, int]) -> Block:
        return cut_chunks(pa.concat_arrays([texts for _, _, texts in corpus.batches(*stretch)]))

    blocks = [
        *map_threads(cut, corpus.stretches(memory // BLOCK_BYTES_PER_BYTE // cores(), BLOCK_DOCUMENTS, start, stop))
    ]
    pa.default_memory_pool().release_unused()
    distinct = pa.concat_arrays([block.distinct for block in blocks]).dictionary_encode()
    terms = _analyse(distinct.dictionary.to_pylist(), language)
    numbering = np.split(distinct.indices.to_numpy(), np.cumsum([len(block.distinct) for block in blocks])[:-1])
    counted = [*map_threads(lambda pair: _count(*pair, terms), zip(blocks, numbering, strict=True))]
    del blocks
    lengths = np.concatenate([lengths for _, lengths in counted])
    matrix = sparse.hstack([counts for counts, _ in counted], format="csr")
    frequencies = matrix.data.astype(np.min_scalar_type(matrix.data.max(initial=0)))
    return Segment(start, terms.terms, matrix.indptr, matrix.indices, frequencies, lengths)


def _analyse(chunks: list[str], language: str) -> Terms:
    analysed = analyser(language).analyse_chunks(chunks)
    encoded = pa.array([term for terms in analysed for term in terms], pa.string()).dictionary_encode()
    counts = np.fromiter(map(len, analysed), np.int32, len(analysed))
    order = _descending(encoded.dictionary)
    numbers = np.empty(len(order), dtype=np.int32)
    numbers[order.to_numpy()] = np.arange(len(order), dtype=np.int32)
    return Terms(encoded.dictionary.take(order), counts, numbers[encoded.indices.to_numpy()])


def _descending(terms: pa.Array) -> pa.Array:
    return pc.sort_indices(terms, sort_keys=[("", "descending")])


def _count(block: Block, numbering: Ints, terms: Terms) -> tuple[sparse.csr_array, Ints]:
    """Return how often each term occurs in each document of a block, and the number of terms of each document."""
    chunks = numbering.take(block.chunks)
    counts = terms.counts.take(chunks)
    starts = np.cumsum(terms.counts, dtype=np.int32) - terms.counts
    tokens = terms.numbers.take(_spread(starts.take(chunks), counts))
    size = len(block.chunks_per_document)
    owners = np.repeat(np.repeat(np.arange(size, dtype=np.int32), block.chunks_per_document), counts)
    # This is a counting sort by term in compiled code. It keeps documents in order and then merges equal pairs.
    ones = np.ones(len(tokens), dtype=np.int32)
    matrix = sparse.coo_array((ones, (tokens, owners)), shape=(len(terms.terms), size)).tocsr()
    return matrix, np.bincount(owners, minlength=size).astype(np.int32)


def _spread(starts: Ints, counts: Ints) -> Ints:
    """Return start, start+1, … (`count` numbers) for each pair, all in one array."""
    ends = np.cumsum(counts, dtype=np.int32)
    return np.asarray(np.arange(counts.sum(), dtype=np.int32) + np.repeat(starts - (ends - counts), counts))


def _merge(parts: Sequence[Segment], start: int, folder: Path, at_once: int) -> dict[str, Any]:
    """Write consecutive parts as one segment, `at_once` postings at a time, and return its metadata."""
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
        # A term has at most one posting per document. So a range of terms contains little more than `at_once` postings.
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
    """Return the postings of a range of terms. `numbers` maps the terms of the part to all terms."""
    low, high = numbers.searchsorted((first, stop))
    offsets = np.zeros(stop - first + 1, np.int32)
    offsets[numbers[low:high] - first + 1] = np.diff(part.offsets[low : high + 1])
    here = slice(part.offsets[low], part.offsets[high])
    content = (part.frequencies[here], part.documents[here], np.cumsum(offsets, dtype=np.int32))
    return sparse.csr_array(content, shape=(stop - first, len(part.lengths)))
