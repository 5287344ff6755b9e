"""The index of a whole corpus: its segments in the store, and what they add up to."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from r2med.data.corpus import Corpus
from r2med.retrieve.bm25.postings import SEGMENT, Ints, Segment, build_segment
from r2med.retrieve.bm25.scorers import Collection
from r2med.store import Store, digest

VERSION = 1
"""Raised whenever analysis or the files change, so that an older index is not taken for a new one."""


FEW = 200
"""One term in so many of a vocabulary is found by halving it as soon as by hashing all of it (measured: 127 to 205)."""

Positions = npt.NDArray[np.int64]


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
