"""Search by impacts: a score is the sum of a query's term weights times the impacts of the terms in a document.

BM25 and learned sparse models search in this way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.sparse._sparsetools import csc_matvec  # The loop of `csc_array @ vector`, which itself would copy columns.

from r2med.data.runs.ties import best
from r2med.foundation.engine import cores, map_threads
from r2med.foundation.store.files import let_go

Hits = tuple[npt.NDArray[np.int32], npt.NDArray[np.float32]]
"""Rows and scores."""

QueryTerms = tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]
"""Positions of a query's terms in a segment, descending, and their weights. A term at position -1 is not in it."""

NO_HITS: Hits = np.empty(0, np.int32), np.empty(0, np.float32)


@dataclass(frozen=True)
class Impacts:
    """The impacts of terms in a range of documents, as a sparse matrix with a column for each term."""

    start: int
    """Row of the first document."""
    size: int
    """Number of documents."""
    offsets: npt.NDArray[np.int32]
    documents: npt.NDArray[np.int32]
    values: npt.NDArray[np.float64]

    @property
    def nbytes(self) -> int:
        """Size of the two large arrays."""
        return self.documents.nbytes + self.values.nbytes

    def let_go(self) -> None:
        """Release the memory of the two large arrays, which stay on the disk."""
        let_go(self.documents)
        let_go(self.values)

    def search(
        self, queries: Sequence[QueryTerms], hits: Sequence[Hits], k: int, ranks: npt.NDArray[np.int32]
    ) -> list[Hits]:
        """Return the k best of each query's hits so far and of the documents here that share a term with it."""
        ranks_here = ranks[self.start : self.start + self.size]

        def search(group: slice) -> list[Hits]:
            sums = np.empty(self.size)
            scores = np.empty(self.size, np.float32)
            merged = []
            for (positions, weights), (rows, row_scores) in zip(queries[group], hits[group], strict=True):
                sums.fill(0)
                self._add_columns(positions[positions >= 0], weights[positions >= 0], sums)
                np.copyto(scores, sums, casting="same_kind")
                here = best(scores, k, ranks_here)
                here = here[scores[here] > 0].astype(np.int32)
                rows = np.concatenate((rows, here + np.int32(self.start)))
                row_scores = np.concatenate((row_scores, scores[here]))
                chosen = best(row_scores, k, ranks[rows])
                merged.append((rows[chosen], row_scores[chosen]))
            return merged

        # Queries of a group share arrays. For a single query, starting a thread pool would take longer than the search.
        several = max(1, len(queries) // (4 * cores()))
        groups = [slice(first, first + several) for first in range(0, len(queries), several)]
        parts = map_threads(search, groups) if len(groups) > 1 else map(search, groups)
        return [hit for part in parts for hit in part]

    def _add_columns(
        self, positions: npt.NDArray[np.int64], weights: npt.NDArray[np.float64], sums: npt.NDArray[np.float64]
    ) -> None:
        """Add impact times weight of some terms to the sums of all documents, directly from the postings.

        The positions are descending, so the range between the end of one term and the start of the next is empty. A
        matrix with these bounds alternates between columns of terms and empty columns, and nothing is copied.
        """
        if not len(positions):
            return
        bounds = np.empty(2 * len(positions), np.int32)
        bounds[::2] = self.offsets[positions]
        bounds[1::2] = self.offsets[positions + 1]
        factors = np.zeros(len(bounds) - 1)
        factors[::2] = weights
        csc_matvec(len(sums), len(factors), bounds, self.documents, self.values, factors, sums)
