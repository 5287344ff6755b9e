"""The index of a whole corpus: its segments in the store, and what they add up to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from r2med.data.corpus import Corpus
from r2med.retrieve.bm25.postings import SEGMENT, Segment, build_segment
from r2med.retrieve.bm25.scorers import Collection
from r2med.store import Store, digest

VERSION = 1
"""Raised whenever analysis or the files change, so that an older index is not taken for a new one."""


@dataclass(frozen=True)
class Index:
    """Segments, and the numbers a scorer needs of all of them together."""

    key: str
    segments: tuple[Segment, ...]
    collection: Collection
    seconds: float

    def df(self, terms: pa.Array) -> npt.NDArray[np.int64]:
        """Return in how many documents each term stands; 0 for those the corpus does not have."""
        total = np.zeros(len(terms), dtype=np.int64)
        for segment in self.segments:
            places = places_of(terms, segment)
            known = places >= 0
            total[known] += np.diff(segment.offsets)[places[known]]
        return total


def places_of(terms: pa.Array, segment: Segment) -> npt.NDArray[np.int64]:
    """Return where each term stands in a segment, -1 for those it does not have."""
    found = pc.fill_null(pc.index_in(terms, value_set=segment.terms), -1)
    return np.asarray(found, dtype=np.int64)


def open_index(corpus: Corpus, store: Store) -> Index:
    """Return the index of a corpus; segments that are in the store are mapped, the others built."""
    key = digest(["bm25 index", VERSION, corpus.fingerprint])
    segments, seconds = [], 0.0
    for start in range(0, len(corpus), SEGMENT):

        def build(folder: Any, start: int = start) -> dict[str, Any]:
            return build_segment(corpus, start, min(start + SEGMENT, len(corpus))).save(folder)

        artefact = store.make("bm25-postings", digest([key, start]), build)
        segments.append(Segment.open(artefact))
        seconds += artefact.meta["seconds"]
    collection = Collection(
        documents=len(corpus),
        filled=sum(int(np.count_nonzero(s.lengths)) for s in segments),
        tokens=sum(int(s.lengths.sum(dtype=np.int64)) for s in segments),
    )
    return Index(key, tuple(segments), collection, seconds)
