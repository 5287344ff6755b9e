"""Search the parts of queries apart, each as a query of its own, and fuse their rankings."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache

from r2med.data import Dataset
from r2med.foundation.core.activities import DocumentsRanked, happened
from r2med.foundation.core.cost import Cost, added_latencies, total
from r2med.foundation.store import Store
from r2med.systems.retrieve.added_worth import DEFAULT_DEPTH, AddedWorth
from r2med.systems.retrieve.retriever import NO_REPORT, Retriever, Search, Searched, Searcher, SearchQuery
from r2med.systems.retrieve.search_activity import listed_run, ranking
from r2med.systems.retrieve.stored_search import cached_search, indexed


@dataclass(frozen=True)
class _Batch:
    """One search: the part with the same number of all queries that have such a part."""

    lines: tuple[int, ...]
    """Positions of the queries."""
    queries: tuple[SearchQuery, ...]
    weights: tuple[float, ...]


def search_apart(
    retriever: Retriever,
    dataset: Dataset,
    queries: Sequence[SearchQuery],
    k: int,
    store: Store,
    timed: bool = False,
) -> Searched:
    """Search like `cached_search`. Queries with parts are searched part by part, and the rankings are added up.

    The first parts of all queries are one search, the second parts another, and so on. The store keeps each of them.
    """
    with ranking(retriever.name, queries):
        searched = _search_apart(retriever, dataset, queries, k, store, timed)
        happened(lambda: DocumentsRanked(listed_run(searched.run, dataset.corpus)))
    return searched


def _search_apart(
    retriever: Retriever,
    dataset: Dataset,
    queries: Sequence[SearchQuery],
    k: int,
    store: Store,
    timed: bool,
) -> Searched:
    batches = _batches(queries)
    if len(batches) == 1:
        return cached_search(retriever, dataset, batches[0].queries, k, store, timed)

    @cache
    def index() -> Searcher:
        return indexed(retriever, dataset, store)

    depth = max(DEFAULT_DEPTH, k)
    worth, costs, prepared, own, report = AddedWorth(len(queries)), [], Cost(), 0.0, NO_REPORT
    for batch in batches:
        searched = cached_search(retriever, dataset, batch.queries, depth, store, timed, index)
        costs.append(searched.cost)
        report += searched.report
        prepared = searched.prepared  # The corpus is prepared once, and every run has its cost.
        started = time.perf_counter()
        run = searched.run
        for line, rows, scores, weight in zip(batch.lines, run.rows, run.scores, batch.weights, strict=True):
            worth.add(line, rows, scores, queries[line].fuse, weight)
        own += time.perf_counter() - started
    fused = worth.ranked([query.query.id for query in queries], k, dataset.corpus)
    latencies = added_latencies([cost.latencies for cost in costs])
    return Searched(fused, replace(total(costs) + Cost(seconds=own), latencies=latencies), prepared, report)


def searches_apart(
    retriever: Retriever, dataset: Dataset, queries: Sequence[SearchQuery], k: int
) -> tuple[Search, ...]:
    """Return the searches of `search_apart`."""
    batches = _batches(queries)
    depth = k if len(batches) == 1 else max(DEFAULT_DEPTH, k)
    return tuple(Search(retriever, dataset, batch.queries, depth) for batch in batches)


def _batches(queries: Sequence[SearchQuery]) -> list[_Batch]:
    """Return the searches that the queries need. A query without parts is its own only part."""
    parts = [query.parts or ((query, 1.0),) for query in queries]
    batches = []
    for number in range(max(map(len, parts), default=1)):
        lines = tuple(line for line, own in enumerate(parts) if len(own) > number)
        asked = [parts[line][number] for line in lines]
        batches.append(_Batch(lines, tuple(query for query, _ in asked), tuple(weight for _, weight in asked)))
    return batches
