"""Approximate dense search with faiss: a graph of neighbours (HNSW) for each segment of vectors.

The index only proposes documents. They are then scored exactly, so scores are the same as in exact search, but some
documents may be missing. `recall.py` measures how many.

One thread builds a segment from shards in their order. So the same vectors give the same bytes, however many segments
are built in parallel. This holds for one type of processor; others round differently. A killed run loses only the
segments in progress. An index contains vectors in half precision and is a memory-mapped file.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from r2med.data.runs.run import NO_DOCUMENT
from r2med.data.runs.ties import best
from r2med.foundation.core.cost import Cost
from r2med.foundation.core.errors import check_installed
from r2med.foundation.engine import cores, map_threads
from r2med.foundation.engine.reporting import Reporter
from r2med.foundation.store import Artefact, Store, digest
from r2med.models.encoders.encoder import Encoder, Vectors
from r2med.systems.retrieve.exact.exact_scores import Block, ExactScorer
from r2med.systems.retrieve.exact.text_vectors import Hits, Rows, TextVectors
from r2med.systems.retrieve.vectors.vector_shard import VectorShard

VERSION = 1
"""Version of the way in which indexes are built."""

SEGMENT_BYTES = 1 << 30
"""Maximum memory for building a segment, in bytes. More segments make a search slower."""
SEGMENT_SHARDS = 64
"""Maximum number of shards in a segment: 262,144 documents.

A kill loses one segment, which one core builds in minutes.
"""

BUILD_EF = 128
"""Number of candidate neighbours per document while a graph is built."""
QUERIES_AT_ONCE = 64
"""Number of queries that a thread searches at a time."""

INDEX_FILE = "index.faiss"


@dataclass(frozen=True)
class Hnsw:
    """A graph in which each document has up to `links` neighbours.

    A search keeps the best `ef` documents that it visits.
    """

    links: int
    ef: int
    name: ClassVar[str] = "hnsw"

    def key(self) -> list[Any]:
        """Return the settings that determine the bytes of the index, besides the vectors."""
        return [self.name, self.links, BUILD_EF]

    def empty(self, faiss: Any, dimension: int) -> Any:
        """Return an empty index."""
        index = faiss.IndexHNSWSQ(dimension, faiss.ScalarQuantizer.QT_fp16, self.links, faiss.METRIC_INNER_PRODUCT)
        index.hnsw.efConstruction = BUILD_EF
        return index

    def effort(self, faiss: Any, k: int) -> Any:
        """Return the search parameters for a search for k documents."""
        return faiss.SearchParametersHNSW(efSearch=max(self.ef, k))


def load_faiss() -> Any:
    """Return the faiss library. Raises UserError if it is not installed."""
    check_installed("an approximate index", ["faiss"])
    import faiss

    return faiss


@dataclass(frozen=True)
class Segments:
    """The approximate index of a corpus as memory-mapped segments."""

    kind: Hnsw
    opened: tuple[tuple[int, Any], ...]
    """Pairs of (first row, index)."""
    cost: Cost
    """Cost of building the segments."""

    def search(
        self,
        queries: Vectors,
        blocks: Sequence[Block],
        k: int,
        ranks: npt.NDArray[np.int32],
        *,
        cosine: bool = False,
    ) -> list[Hits]:
        """Return (rows, exact scores) of the k best proposed documents of each query, in no particular order."""
        queries = np.ascontiguousarray(queries, dtype=np.float32)
        with _pool(cores()) as pool:
            # Half precision may misplace some documents at the cutoff.
            proposed = self._propose(queries, k + k // 8 + 16, pool)
        scorer = ExactScorer(TextVectors(queries), cosine)
        return _scored(scorer, blocks, [np.sort(rows[rows != NO_DOCUMENT]) for rows in proposed], k, ranks)

    def _propose(self, queries: Vectors, count: int, pool: ThreadPoolExecutor) -> Rows:
        """Return the rows of the best `count` documents of each query, by the scores of the index."""
        faiss = load_faiss()
        rows = np.full((len(queries), count), NO_DOCUMENT, np.int32)
        scores = np.full((len(queries), count), -np.inf, np.float32)

        def search(job: tuple[slice, int, Any]) -> tuple[slice, Rows, Vectors]:
            lines, first, index = job
            wanted = min(count, index.ntotal)
            of_lines, positions = index.search(queries[lines], wanted, params=self.kind.effort(faiss, wanted))
            return lines, np.where(positions < 0, NO_DOCUMENT, positions + first).astype(np.int32), of_lines

        parts = [slice(at, at + QUERIES_AT_ONCE) for at in range(0, len(queries), QUERIES_AT_ONCE)]
        jobs = ((lines, first, index) for lines in parts for first, index in self.opened)
        for lines, more, of_more in map_threads(search, jobs, pool):
            all_rows = np.concatenate((rows[lines], more), axis=1)
            all_scores = np.concatenate((scores[lines], np.where(more == NO_DOCUMENT, -np.inf, of_more)), axis=1)
            order = np.argpartition(-all_scores, count - 1, axis=1)[:, :count]
            rows[lines] = np.take_along_axis(all_rows, order, axis=1)
            scores[lines] = np.take_along_axis(all_scores, order, axis=1)
        return rows


def _scored(
    scorer: ExactScorer, blocks: Sequence[Block], proposed: Sequence[Rows], k: int, ranks: npt.NDArray[np.int32]
) -> list[Hits]:
    """Return the k best (rows, exact scores) of the rows proposed for each query, in no particular order."""
    for first, block in blocks:
        scorer.hold(first, block)

    def score(line: int) -> Hits:
        rows = proposed[line]
        scores = scorer.score(line, rows).astype(np.float32)
        kept = best(scores, k, ranks[rows])
        return rows[kept], scores[kept]

    return list(map_threads(score, range(len(proposed))))


def build_segments(
    shards: Sequence[VectorShard], kind: Hnsw, store: Store, *, cosine: bool = False, memory: int = 2 << 30
) -> Segments:
    """Return the index of the vectors. Segments that are not in the store are built."""
    faiss = load_faiss()
    groups = list(_groups(shards))
    stop = threading.Event()
    reporter = Reporter("documents in the index", sum(sum(map(len, group)) for group in groups))

    def build(group: Sequence[VectorShard]) -> Artefact:
        key = digest([VERSION, kind.key(), cosine, [shard.key for shard in group]])
        if (segment := store.get("ann", key)) is not None:
            reporter.advance(sum(map(len, group)))
            return segment
        return store.make("ann", key, lambda folder: _build(faiss, group, kind, cosine, folder, reporter, stop))

    workers = max(1, min(cores(), memory // SEGMENT_BYTES))
    with _pool(workers) as pool:
        try:
            labels = copy_context()  # Copies the labels of the artefact, because a thread does not inherit them.
            made = list(map_threads(lambda group: labels.copy().run(build, group), groups, pool))
        except BaseException:
            stop.set()  # The pool waits for its threads, and a segment takes minutes.
            raise
    opened = (
        (part.meta["start"], faiss.read_index(str(part.file(INDEX_FILE)), faiss.IO_FLAG_MMAP_IFC)) for part in made
    )
    return Segments(kind, tuple(opened), Cost(seconds=sum(part.meta["seconds"] for part in made)))


def _build(
    faiss: Any,
    shards: Sequence[VectorShard],
    kind: Hnsw,
    cosine: bool,
    folder: Path,
    reporter: Reporter,
    stop: threading.Event,
) -> dict[str, Any]:
    index = kind.empty(faiss, _width(shards))
    for shard in shards:
        if stop.is_set():
            raise InterruptedError("another segment could not be built")
        for part in shard.parts:
            index.add(_unit_length(part.arrays["vectors"], cosine))
            reporter.advance(len(part))
    with (folder / INDEX_FILE).open(
        "wb"
    ) as file:  # With our own file, a full disk raises an OSError that names the cause.
        faiss.write_index(index, faiss.PyCallbackIOWriter(file.write))
    return {"start": shards[0].start, "faiss": faiss.__version__}


def _pool(workers: int) -> ThreadPoolExecutor:
    """Return a pool of threads in which faiss starts no threads of its own, because they would change the graph."""
    return ThreadPoolExecutor(workers, initializer=load_faiss().omp_set_num_threads, initargs=(1,))


def _groups(shards: Sequence[VectorShard]) -> Iterator[Sequence[VectorShard]]:
    """Yield the shards of each segment. Their vectors as floats and the links of a graph fit into SEGMENT_BYTES."""
    row = 4 * _width(shards) + 640
    size = max(1, min(SEGMENT_SHARDS, SEGMENT_BYTES // (Encoder.shard_documents * row)))
    for at in range(0, len(shards), size):
        yield shards[at : at + size]


def _width(shards: Sequence[VectorShard]) -> int:
    return int(shards[0].parts[0].arrays["vectors"].shape[1])


def _unit_length(vectors: npt.NDArray[Any], cosine: bool) -> Vectors:
    """Return vectors in the form that faiss needs. For cosine, each gets length 1; vectors of zeros stay zero."""
    rows: Vectors = np.ascontiguousarray(vectors, dtype=np.float32)
    if cosine:
        norms = np.linalg.norm(rows.astype(np.float64), axis=1, keepdims=True)
        rows = np.divide(rows, norms, out=np.zeros(rows.shape), where=norms > 0).astype(np.float32)
    return rows
