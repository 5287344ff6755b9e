"""Run: the rankings of a search as arrays. Rankings are by score, and ties follow the rule of ties.py."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from r2med.data.runs.run_file import read_rankings
from r2med.data.runs.ties import best_first
from r2med.foundation.core.errors import UserError, nearest, refuse_table
from r2med.foundation.text.plurals import counted

if TYPE_CHECKING:
    from r2med.data.corpus import Corpus

NO_DOCUMENT = -1


class Documents(Protocol):
    """Anything that can name the documents of a run: a corpus, or the ids of a run file."""

    def ids(self, rows: Sequence[int] | npt.NDArray[np.int32]) -> list[str]:
        """Return the ids of rows."""

    def id_ranks(self) -> npt.NDArray[np.int32]:
        """Return for every row its rank in ascending order of ids."""


@dataclass(frozen=True)
class IdTable:
    """Document ids without a corpus, in ascending order, so that each row is its own rank."""

    table: tuple[str, ...]

    def ids(self, rows: Sequence[int] | npt.NDArray[np.int32]) -> list[str]:
        """Return the ids of rows."""
        return [self.table[row] for row in rows]

    def id_ranks(self) -> npt.NDArray[np.int32]:
        """Return the rank of every row, which is the row itself."""
        return np.arange(len(self.table), dtype=np.int32)


@dataclass(frozen=True, eq=False)
class Run:
    """Query ids with ranked document rows and scores. Queries with fewer documents are padded with rows of -1.

    Scores are float32 because pytrec_eval, which scored the benchmark, and older versions of trec_eval compare float32.
    Scores that are equal in float32 are a tie there, so they must be a tie here. Only a foreign run that was read as
    doubles has float64.
    """

    queries: tuple[str, ...]
    """The ids of the queries."""
    rows: npt.NDArray[np.int32]
    """Query × rank -> row of the document in the corpus."""
    scores: npt.NDArray[np.float32]
    """Query × rank -> score."""
    documents: Documents
    """The documents that the rows are of."""

    def __repr__(self) -> str:
        queries, depth = counted(len(self.queries), "query", "queries"), counted(self.rows.shape[1], "document")
        return f"Run({queries}, up to {depth} each)"

    @classmethod
    def of(cls, rankings: Mapping[str, Mapping[str, float]], doubles: bool = False) -> Run:
        """Return the run of query id -> document id -> score, the form that other tools use.

        Scores are compared as floats, as in pytrec_eval and in trec_eval up to 9.0.8. With `doubles` they are compared
        as doubles, as in trec_eval 10, where scores that differ only as doubles are not a tie. Raises UserError if a
        score is not a number.
        """
        refuse_table(rankings, "a run", "query id -> document id -> score")
        table = IdTable(tuple(sorted({document for scores in rankings.values() for document in scores})))
        row_of = {identifier: row for row, identifier in enumerate(table.table)}
        arrays: list[Any] = []
        for query, ranking in rankings.items():
            scores = as_scores(query, ranking, np.float64 if doubles else np.float32)
            arrays.append((np.fromiter(map(row_of.__getitem__, ranking), np.int32, len(ranking)), scores))
        return cls.ranked(list(rankings), arrays, table)

    @classmethod
    def read(cls, path: Path | str, encoded: bool = False, doubles: bool = False) -> Run:
        """Read any TREC run file, gzipped or not. `encoded` decodes ids that our writer percent-encoded."""
        return cls.of(read_rankings(Path(path), encoded), doubles)

    @classmethod
    def ranked(
        cls,
        queries: Sequence[str],
        hits: Sequence[tuple[npt.NDArray[np.int32], npt.NDArray[np.float32]]],
        documents: Documents,
    ) -> Run:
        """Sort each query's (rows, scores) and pad them to one width."""
        ranks = documents.id_ranks()
        width = max((len(rows) for rows, _ in hits), default=0)
        all_rows = np.full((len(queries), width), NO_DOCUMENT, dtype=np.int32)
        all_scores = np.zeros((len(queries), width), dtype=hits[0][1].dtype if hits else np.float32)
        for line, (rows, scores) in enumerate(hits):
            order = best_first(scores, ranks[rows])
            all_rows[line, : len(rows)] = rows[order]
            all_scores[line, : len(rows)] = scores[order]
        return cls(tuple(queries), all_rows, all_scores, documents)

    @property
    def found(self) -> npt.NDArray[np.int64]:
        """Number of documents found for each query."""
        return np.asarray(np.count_nonzero(self.rows != NO_DOCUMENT, axis=1))

    def __iter__(self) -> Iterator[tuple[str, list[tuple[str, float]]]]:
        """Yield (query id, [(document id, score), …] best first)."""
        for query, ids, scores in zip(self.queries, self.id_lists(), self.scores, strict=True):
            yield query, list(zip(ids, scores[: len(ids)].tolist(), strict=True))

    def top(self, query: str, k: int = 10) -> list[tuple[str, float]]:
        """Return (document id, score) of a query's k best documents. Raises UserError if the run has no such query."""
        if query not in self.queries:
            raise UserError(f"the run has no query {query!r}{nearest(query, self.queries)}")
        line = self.queries.index(query)
        rows = self.rows[line, : min(k, self.found[line])]
        return list(zip(self.documents.ids(rows), self.scores[line, : len(rows)].tolist(), strict=True))

    def _repr_html_(self) -> str:
        from r2med.foundation.pages.page import Table

        best = [(query, [f"{d} ({score:.4g})" for d, score in self.top(query, 3)]) for query in self.queries[:5]]
        rows = [(query, *documents, *[""] * (3 - len(documents))) for query, documents in best]
        return Table.of(("query", "first", "second", "third"), rows, repr(self))._repr_html_()

    def id_lists(self) -> Iterator[list[str]]:
        """Yield the document ids of each query, best first. Each document is looked up only once for the whole run."""
        documents, positions = self.distinct()
        ids = np.array(self.documents.ids(documents), dtype=object)
        for rows, count in zip(self.rows, self.found, strict=True):
            yield ids[positions[rows[:count]]].tolist()

    def distinct(self) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]:
        """Return all found rows in ascending order, and the position of each row among them."""
        seen = np.zeros(int(self.rows.max(initial=NO_DOCUMENT)) + 2, dtype=bool)
        seen[self.rows] = True  # The padding is written to the last position.
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


def on_corpus(run: Run, asked: Sequence[str], corpus: Corpus, k: int, source: object) -> Run:
    """Return the k best documents of each query as rows of a corpus.

    A query that is not in the run gets no documents. Raises UserError that names the source if a document is not in the
    corpus or if a score is not finite.
    """
    line_of = {query: line for line, query in enumerate(run.queries)}
    hits, counts = [], run.found
    for query in asked:
        line = line_of.get(query)
        count = 0 if line is None else int(counts[line])
        ids = run.documents.ids(run.rows[line, :count]) if line is not None else []
        rows, scores = corpus.rows(ids), run.scores[line or 0, :count]
        if (rows < 0).any():
            unknown = ids[int((rows < 0).argmax())]
            raise UserError(
                f"{source}: query {query!r} has the document {unknown!r}, which is not in the corpus; "
                "is it a run of this dataset?"
            )
        if not np.isfinite(scores).all():  # Fusion could not weight such a score, and a prompt could not show it.
            odd = ids[int((~np.isfinite(scores)).argmax())]
            raise UserError(f"{source}: the score of query {query!r} and document {odd!r} is infinite or too large")
        hits.append((rows[:k], scores[:k]))
    return Run.ranked(asked, hits, corpus)


def check_rows(run: Run, queries: Sequence[str], documents: int, source: object) -> None:
    """Raise UserError that names the source if a run has other queries, or if its rows and scores are no rankings.

    `documents` is the number of documents in the corpus.
    """
    rows, scores = run.rows, run.scores
    filled = rows != NO_DOCUMENT
    ordered = np.sort(rows)
    if list(run.queries) != list(queries):
        fault = "of other queries, or in another order, than it was given"
    elif rows.ndim != 2 or rows.shape != scores.shape or len(rows) != len(queries):
        fault = f"with {rows.shape} rows and {scores.shape} scores for {len(queries)} queries"
    elif rows.size and not NO_DOCUMENT <= rows.min() <= rows.max() < documents:
        fault = "with documents that the corpus does not have"
    elif (filled[:, 1:] & ~filled[:, :-1]).any():
        fault = "with a gap between two documents: is a document unknown?"
    elif ((ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] != NO_DOCUMENT)).any():
        fault = "that has a document twice for a query"
    elif not np.isfinite(scores).all():
        fault = "with a score that is not a finite number"
    else:
        return
    raise UserError(f"{source} returned a run {fault}")


def as_scores(query: str, ranking: Mapping[str, float], precision: type[Any] = np.float32) -> npt.NDArray[Any]:
    """Return the scores of a query's documents, in their order. Raises UserError if one is not a number."""
    try:
        # A score that is too large for single precision becomes infinite, as in trec_eval.
        with np.errstate(over="ignore"):
            scores = np.array(list(ranking.values()), dtype=precision)
    except (AttributeError, TypeError, ValueError):
        scores = np.array([np.nan])
    if scores.ndim != 1 or np.isnan(scores).any():
        raise UserError(f"query {query!r}: a run is query id -> document id -> score, and each score must be a number")
    return scores
