"""Postings: which documents hold each term how often, for a stretch of the corpus. No scorer is in here yet."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from scipy import sparse

from r2med.data.corpus import Corpus
from r2med.engine import map_threads
from r2med.store import Artefact
from r2med.store.files import write_array
from r2med.text.english import analyse_chunks

BLOCK = 4096
"""Documents analysed at a time by one thread."""

SEGMENT = 1 << 18
"""Documents of one index segment: bounds the memory of building, and keeps offsets within 32 bits."""


NEVER_AT_EDGE = '()[]{}<>.,:;!?"/\\|=+&%$@^~`-'
"""Not the apostrophe (it may end a Hebrew word), the underscore (it joins), nor * and # (keycap emoji)."""


Ints = npt.NDArray[np.int32]


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
