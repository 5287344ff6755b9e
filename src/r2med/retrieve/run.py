"""Run: what a search found, as arrays. Ranked by score, ties by document id descending, as trec_eval reads them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

NO_DOCUMENT = -1


class Documents(Protocol):
    """Whatever can name the documents of a run: a corpus, or the ids of a run file."""

    def ids(self, rows: Sequence[int] | npt.NDArray[np.int32]) -> list[str]:
        """Return the ids of rows."""

    def id_ranks(self) -> npt.NDArray[np.int32]:
        """Return for every row its rank in ascending order of ids."""


@dataclass(frozen=True)
class IdTable:
    """Document ids without a corpus, ascending, so that a row is its own rank."""

    table: tuple[str, ...]

    def ids(self, rows: Sequence[int] | npt.NDArray[np.int32]) -> list[str]:
        """Return the ids of rows."""
        return [self.table[row] for row in rows]

    def id_ranks(self) -> npt.NDArray[np.int32]:
        """Return every row's rank: itself."""
        return np.arange(len(self.table), dtype=np.int32)


@dataclass(frozen=True, eq=False)
class Run:
    """Query ids × ranked document rows and scores; rows of -1 pad queries that found fewer.

    Scores are float32 because that is what pytrec_eval, with which the benchmark was scored, and older builds of
    trec_eval compare: two scores that differ less are a tie there, so they have to be one here. Only a foreign run that
    was read as doubles has float64.
    """

    queries: tuple[str, ...]
    rows: npt.NDArray[np.int32]
    scores: npt.NDArray[np.float32]
    documents: Documents

    def __repr__(self) -> str:
        return f"Run({len(self.queries):,} queries, up to {self.rows.shape[1]:,} documents each)"

    @classmethod
    def ranked(
        cls,
        queries: Sequence[str],
        hits: Sequence[tuple[npt.NDArray[np.int32], npt.NDArray[np.float32]]],
        documents: Documents,
    ) -> Run:
        """Put each query's (rows, scores) into order and pad them to one width."""
        ranks = documents.id_ranks()
        width = max((len(rows) for rows, _ in hits), default=0)
        all_rows = np.full((len(queries), width), NO_DOCUMENT, dtype=np.int32)
        all_scores = np.zeros((len(queries), width), dtype=hits[0][1].dtype if hits else np.float32)
        for line, (rows, scores) in enumerate(hits):
            order = np.lexsort((-ranks[rows], -scores))
            all_rows[line, : len(rows)] = rows[order]
            all_scores[line, : len(rows)] = scores[order]
        return cls(tuple(queries), all_rows, all_scores, documents)

    @property
    def found(self) -> npt.NDArray[np.int64]:
        """How many documents each query found."""
        return np.asarray(np.count_nonzero(self.rows != NO_DOCUMENT, axis=1))

    def __iter__(self) -> Iterator[tuple[str, list[tuple[str, float]]]]:
        """Yield (query id, [(document id, score), …] best first)."""
        for query, ids, scores in zip(self.queries, self.id_lists(), self.scores, strict=True):
            yield query, list(zip(ids, scores[: len(ids)].tolist(), strict=True))

    def id_lists(self) -> Iterator[list[str]]:
        """Yield the document ids of each query, best first; each document is looked up once for the whole run."""
        documents, positions = self.distinct()
        ids = np.array(self.documents.ids(documents), dtype=object)
        for rows, count in zip(self.rows, self.found, strict=True):
            yield ids[positions[rows[:count]]].tolist()

    def distinct(self) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]:
        """Return the rows that any query found, ascending, and for each row up to the last its position among them."""
        seen = np.zeros(int(self.rows.max(initial=NO_DOCUMENT)) + 2, dtype=bool)
        seen[self.rows] = True  # what pads a line is written to the last position
        seen[-1] = False
        return np.flatnonzero(seen).astype(np.int32), np.cumsum(seen) - 1

    def without(self, excluded: dict[str, npt.NDArray[np.int32]], k: int) -> Run:
        """Drop each query's excluded rows, then keep the k best."""
        rows = np.full((len(self.queries), min(k, self.rows.shape[1])), NO_DOCUMENT, dtype=np.int32)
        scores = np.zeros(rows.shape, dtype=np.float32)
        for line, query in enumerate(self.queries):
            keep = (self.rows[line] != NO_DOCUMENT) & ~np.isin(self.rows[line], excluded.get(query, ()))
            kept = np.flatnonzero(keep)[:k]
            rows[line, : len(kept)] = self.rows[line, kept]
            scores[line, : len(kept)] = self.scores[line, kept]
        return Run(self.queries, rows, scores, self.documents)


def best(scores: npt.NDArray[np.float32], k: int, ranks: npt.NDArray[np.int32]) -> npt.NDArray[np.int64]:
    """Return the positions of the k best scores, in no particular order."""
    cut = len(scores) - k
    if cut <= 0:
        return np.arange(len(scores))
    threshold = np.partition(scores, cut)[cut]
    above = np.flatnonzero(scores > threshold)
    level = np.flatnonzero(scores == threshold)
    if len(above) + len(level) > k:
        level = level[np.argsort(-ranks[level])[: k - len(above)]]
    return np.concatenate((above, level))


def best_positive(
    scores: npt.NDArray[np.float32], k: int, ranks: npt.NDArray[np.int32]
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.float32]]:
    """Return (rows, scores) of the k best scores above 0: the documents that share a word with the query."""
    rows: npt.NDArray[Any] = best(scores, k, ranks)
    rows = rows[scores[rows] > 0]
    return rows.astype(np.int32), scores[rows]
