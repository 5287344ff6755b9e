"""Search with a retriever, and keep the ranking in the store."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from r2med.data import Corpus, Dataset
from r2med.data.runs.run import IdTable, Run, check_rows, on_corpus
from r2med.data.runs.ties import TIE_RULE
from r2med.foundation.core.cost import Cost, stated_or_measured, total
from r2med.foundation.core.errors import UserError
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.runtime.stages import Stage, described, key_of
from r2med.foundation.store import digest
from r2med.foundation.store.files import write_array
from r2med.foundation.store.reads import Versions, current_reads, noted_reads
from r2med.systems.retrieve.fused_rankings import DEFAULT_DEPTH, WeightedRanking, fuse_rankings
from r2med.systems.retrieve.retriever import NO_REPORT, Searched, SearchQuery

VERSION = 7


def stored_search(
    retriever: Stage, dataset: Dataset, queries: Sequence[SearchQuery], k: int, runtime: Runtime
) -> Searched:
    """Return the k best documents of each query, without its excluded documents, from the store if it has them.

    Queries with parts are searched part by part, and the rankings are added up. A retriever that chooses forms searches
    the parts itself. A ranking is stored only if no stage inside asks anybody: what is replayed is searched every time,
    with the searches inside it and the answers of LLMs from the store. A live store keeps no ranking.

    Raises UserError if there is nothing to search, or if the retriever returns something else than a run.
    """
    corpus = dataset.corpus
    if k < 1:
        raise UserError(f"k must be at least 1, not {k}")
    if not len(corpus):
        raise UserError("the corpus is empty: there is nothing to search")
    with runtime.about(dataset.label).one_search() as shared:
        if any(query.parts for query in queries) and not retriever.chooses_forms(shared):
            return search_parts(partial(stored_search, retriever, dataset, runtime=shared), queries, k, corpus)
        store = shared.store
        is_stored = store.keeps_questions and not retriever.is_replayed(shared)
        key = _run_key(retriever, dataset, queries, k, shared) if is_stored else ""
        artefact = store.get("run", key) if is_stored else None
        if artefact is None or any(reads.searches_again for reads in current_reads()):
            excluded = {query.query.id: corpus.rows(query.query.excluded) for query in queries if query.query.excluded}
            wide = k + max(map(len, excluded.values()), default=0)
            started = time.perf_counter()
            with noted_reads() as reads:  # of the libraries that made its vectors
                returned = retriever.search(dataset, queries, wide, shared)
            searched = _checked(returned, retriever, corpus, queries, wide, started)
            if excluded:
                searched = replace(searched, run=searched.run.without(excluded, k))
            if not is_stored:
                return searched
            artefact = store.make("run", key, partial(_write, searched, reads.versions))
    run = Run(tuple(query.query.id for query in queries), artefact.array("rows"), artefact.array("scores"), corpus)
    return Searched(run, Cost.from_dict(artefact.meta["cost"]), Cost.from_dict(artefact.meta["prepared"]))


def search_parts(
    search: Callable[[Sequence[SearchQuery], int], Searched], queries: Sequence[SearchQuery], k: int, corpus: Corpus
) -> Searched:
    """Search queries part by part, and add up the rankings. Queries without parts are their own only part.

    The first parts of all queries are one search, the second parts another, and so on.
    """
    parts = [query.parts or ((query, 1.0),) for query in queries]
    count = max(map(len, parts), default=1)
    if count == 1:
        return search([query for ((query, _),) in parts], k)
    searches: list[Searched] = []
    rankings: list[WeightedRanking] = []
    for number in range(count):
        lines = [line for line, its_parts in enumerate(parts) if len(its_parts) > number]
        searched = search([parts[line][number][0] for line in lines], max(DEFAULT_DEPTH, k))
        searches.append(searched)
        for line, rows, scores in zip(lines, searched.run.rows, searched.run.scores, strict=True):
            rankings.append(WeightedRanking(line, rows, scores, queries[line].fuse, parts[line][number][1]))
    started = time.perf_counter()
    run = fuse_rankings([query.query.id for query in queries], rankings, k, corpus)
    cost = total(searched.cost for searched in searches) + Cost(seconds=time.perf_counter() - started)
    report = sum((searched.report for searched in searches), NO_REPORT)
    return Searched(run, cost, searches[-1].prepared, report)  # the corpus is prepared once, and every search says so


def _run_key(retriever: Stage, dataset: Dataset, queries: Sequence[SearchQuery], k: int, runtime: Runtime) -> str:
    key, asked = key_of(retriever, dataset, runtime), [query.key for query in queries]
    return digest(["run", VERSION, TIE_RULE, key, dataset.corpus.fingerprint, asked, k])


def _checked(
    searched: object, retriever: Stage, corpus: Corpus, queries: Sequence[SearchQuery], k: int, started: float
) -> Searched:
    """Return what a retriever returned, with rows of the corpus. A run of document ids, as of `Run.of`, is looked up.

    A retriever that states no cost is timed since `started`. Raises UserError for something else than a run.
    """
    where = f"{type(retriever).__qualname__}.search(dataset, queries, k, runtime)"
    if not isinstance(searched, Searched):
        raise UserError(f"{where} returned {described(searched)}: it must return Searched(run)")
    cost, run, ids = stated_or_measured(searched.cost, started), searched.run, [query.query.id for query in queries]
    if isinstance(run.documents, IdTable):
        run = on_corpus(run, ids, corpus, k, where)
    else:
        check_rows(run, ids, len(corpus), where)
    return replace(searched, run=run, cost=cost)


def _write(searched: Searched, versions: Versions, folder: Path) -> dict[str, Any]:
    """Write a ranking into a folder and return its metadata."""
    write_array(folder / "rows.npy", searched.run.rows)
    write_array(folder / "scores.npy", searched.run.scores)
    costs = {"cost": searched.cost.as_dict(), "prepared": searched.prepared.as_dict()}
    return {**costs, **({"versions": versions} if versions else {})}
