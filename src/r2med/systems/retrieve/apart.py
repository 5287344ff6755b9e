"""Search the parts of queries apart, each as a query of its own, and fuse their rankings."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from r2med.data import Corpus, Dataset
from r2med.foundation.core.cost import Cost, total
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.runtime.stages import Stage
from r2med.systems.retrieve.added_worth import DEFAULT_DEPTH, AddedWorth
from r2med.systems.retrieve.retriever import NO_REPORT, Searched, SearchQuery
from r2med.systems.retrieve.stored_search import stored_search


@dataclass(frozen=True)
class _Batch:
    """One search: the part with the same number of all queries that have such a part."""

    lines: tuple[int, ...]
    """Positions of the queries."""
    queries: tuple[SearchQuery, ...]
    weights: tuple[float, ...]


Search = Callable[[Sequence[SearchQuery], int], Searched]
"""One search: queries and the number of documents -> what is found."""


def search_apart(
    retriever: Stage, dataset: Dataset, queries: Sequence[SearchQuery], k: int, runtime: Runtime
) -> Searched:
    """Search like `stored_search`. Queries with parts are searched part by part, and the rankings are added up.

    The store keeps each of these searches. A retriever that chooses forms searches the parts itself.
    """
    with runtime.one_search() as shared:

        def search(batch: Sequence[SearchQuery], depth: int) -> Searched:
            return stored_search(retriever, dataset, batch, depth, shared)

        if retriever.chooses_forms(shared):
            return search(queries, k)
        return search_parts(search, queries, k, dataset.corpus)


def search_parts(search: Search, queries: Sequence[SearchQuery], k: int, corpus: Corpus) -> Searched:
    """Search queries part by part, and add up the rankings. Queries without parts are searched as they are.

    The first parts of all queries are one search, the second parts another, and so on.
    """
    batches = _batches(queries)
    if len(batches) == 1:
        return search(batches[0].queries, k)
    depth = max(DEFAULT_DEPTH, k)
    worth, costs, prepared, own, report = AddedWorth(len(queries)), [], Cost(), 0.0, NO_REPORT
    for batch in batches:
        searched = search(batch.queries, depth)
        costs.append(searched.cost)
        report += searched.report
        prepared = searched.prepared  # The corpus is prepared once, and every run has its cost.
        started = time.perf_counter()
        run = searched.run
        for line, rows, scores, weight in zip(batch.lines, run.rows, run.scores, batch.weights, strict=True):
            worth.add(line, rows, scores, queries[line].fuse, weight)
        own += time.perf_counter() - started
    fused = worth.ranked([query.query.id for query in queries], k, corpus)
    return Searched(fused, total(costs) + Cost(seconds=own), prepared, report)


def _batches(queries: Sequence[SearchQuery]) -> list[_Batch]:
    """Return the searches that the queries need. A query without parts is its own only part."""
    parts = [query.parts or ((query, 1.0),) for query in queries]
    batches = []
    for number in range(max(map(len, parts), default=1)):
        lines = tuple(line for line, own in enumerate(parts) if len(own) > number)
        asked = [parts[line][number] for line in lines]
        batches.append(_Batch(lines, tuple(query for query, _ in asked), tuple(weight for _, weight in asked)))
    return batches
