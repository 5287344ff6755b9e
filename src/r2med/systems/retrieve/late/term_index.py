"""An inverted index of learned term weights, searched like BM25's: the weights are the impacts of the postings."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from r2med.foundation.store import Artefact, Store, digest
from r2med.foundation.store.files import write_array
from r2med.models.encoders.ragged import Ragged
from r2med.systems.retrieve.bm25.impacts import NO_HITS, Hits, Impacts, QueryTerms
from r2med.systems.retrieve.vectors.vector_shard import read_ragged

VERSION = 1
POSTINGS = "term-postings"
SHARDS_OF_A_SEGMENT = 128
"""65,536 documents, whose postings are inverted in memory: about half a GiB with 300 terms each."""


class TermIndex:
    """Segments of postings in the store, by the number of a term in the model's vocabulary."""

    def __init__(self, segments: Sequence[Artefact]) -> None:
        self._segments = [_opened(segment) for segment in segments]

    @classmethod
    def of(cls, shards: Sequence[Artefact], store: Store) -> TermIndex:
        """Return the index of encoded shards, inverting those that the store does not have as postings."""
        groups = [shards[at : at + SHARDS_OF_A_SEGMENT] for at in range(0, len(shards), SHARDS_OF_A_SEGMENT)]
        return cls([store.make(POSTINGS, _key(group), partial(_build, group)) for group in groups])

    def search(self, queries: Ragged, k: int, ranks: npt.NDArray[np.int32]) -> list[Hits]:
        """Return the k best documents of each query that share a term with it, by the products of weights."""
        hits = [NO_HITS] * len(queries)
        for segment in self._segments:
            weighted = [_query_terms(queries, query, len(segment.offsets) - 1) for query in range(len(queries))]
            hits = segment.search(weighted, hits, k, ranks)
            segment.let_go()
        return hits


def _query_terms(queries: Ragged, query: int, terms: int) -> QueryTerms:
    """Return the terms of a query that a segment may have, descending as the search wants them, and their weights."""
    numbers, weights = queries.rows("terms", query), queries.rows("weights", query)
    order = np.argsort(-numbers, kind="stable")
    order = order[numbers[order] < terms]
    return numbers[order].astype(np.int64), weights[order].astype(np.float64)


def _key(shards: Sequence[Artefact]) -> str:
    return digest([VERSION, [shard.path.name for shard in shards]])


def _build(shards: Sequence[Artefact], folder: Path) -> dict[str, Any]:
    parts = [read_ragged(shard) for shard in shards]
    terms = np.concatenate([part.arrays["terms"] for part in parts])
    weights = np.concatenate([part.arrays["weights"] for part in parts]).astype(np.float64)
    sizes = np.concatenate([np.diff(part.offsets) for part in parts])
    documents = np.repeat(np.arange(len(sizes), dtype=np.int32), sizes)
    width = int(terms.max(initial=-1)) + 1
    matrix = sparse.coo_array((weights, (terms, documents)), shape=(width, len(sizes))).tocsr()
    write_array(folder / "offsets.npy", matrix.indptr.astype(np.int32))
    write_array(folder / "documents.npy", matrix.indices.astype(np.int32))
    write_array(folder / "impacts.npy", matrix.data)
    return {"start": shards[0].meta["start"], "documents": len(sizes)}


def _opened(segment: Artefact) -> Impacts:
    arrays = (segment.array(name) for name in ("offsets", "documents", "impacts"))
    return Impacts(segment.meta["start"], segment.meta["documents"], *arrays)
