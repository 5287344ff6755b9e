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
from r2med.foundation.store.reads import current_reads, noted_reads
from r2med.systems.retrieve.fused_rankings import DEFAULT_DEPTH, WeightedRanking, fuse_rankings
from r2med.systems.retrieve.retriever import NO_REPORT, Searched, SearchQuery

VERSION = 7


def stored_search(
    retriever: Stage, dataset: Dataset, queries: Sequence[SearchQuery], k: int, runtime: Runtime
) -> Searched:
    """Return the k best documents of each query, without its excluded documents, from the store if it has them.

    Queries with parts are searched part by part, and the rankings are added up. A retriever that chooses forms searches
    the parts itself.
    """
    with runtime.about(dataset.label).one_search() as shared:
        if retriever.chooses_forms(shared) or not any(query.parts for query in queries):
            return _stored(retriever, dataset, queries, k, shared)
        return search_parts(partial(_stored, retriever, dataset, runtime=shared), queries, k, dataset.corpus)


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


def _stored(retriever: Stage, dataset: Dataset, queries: Sequence[SearchQuery], k: int, runtime: Runtime) -> Searched:
    """Return the ranking that the store has, and search first if it has none.

    A ranking is stored only if no stage inside asks anybody: what is replayed is searched every time, with the searches
    inside it and the answers of LLMs from the store. A live store keeps no ranking.
    """
    store = runtime.store
    if not store.keeps_questions or retriever.is_replayed(runtime):
        return _search(retriever, dataset, queries, k, runtime)

    def build(folder: Path) -> dict[str, Any]:
        with noted_reads() as reads:  # of the libraries that made its vectors
            searched = _search(retriever, dataset, queries, k, runtime)
        write_array(folder / "rows.npy", searched.run.rows)
        write_array(folder / "scores.npy", searched.run.scores)
        costs = {"cost": searched.cost.as_dict(), "prepared": searched.prepared.as_dict()}
        return {**costs, **({"versions": reads.versions} if reads.versions else {})}

    key, fingerprint = key_of(retriever, dataset, runtime), dataset.corpus.fingerprint
    asked = [query.key for query in queries]
    artefact = store.make("run", digest(["run", VERSION, TIE_RULE, key, fingerprint, asked, k]), build)
    if any(reads.searches_again for reads in current_reads()):
        _search(retriever, dataset, queries, k, runtime)
    ids, corpus = tuple(query.query.id for query in queries), dataset.corpus
    run = Run(ids, artefact.array("rows"), artefact.array("scores"), corpus)
    return Searched(run, Cost.from_dict(artefact.meta["cost"]), Cost.from_dict(artefact.meta["prepared"]))


def _search(retriever: Stage, dataset: Dataset, queries: Sequence[SearchQuery], k: int, runtime: Runtime) -> Searched:
    """Search, and return rows of the corpus. A run of document ids, as `Run.of` returns, is looked up.

    Raises UserError if there is nothing to search, or if the retriever returns something else.
    """
    corpus, ids = dataset.corpus, [query.query.id for query in queries]
    if k < 1:
        raise UserError(f"k must be at least 1, not {k}")
    if not len(corpus):
        raise UserError("the corpus is empty: there is nothing to search")
    excluded = {query.query.id: corpus.rows(query.query.excluded) for query in queries if query.query.excluded}
    wide = k + max(map(len, excluded.values()), default=0)
    started = time.perf_counter()
    searched: object = retriever.search(dataset, queries, wide, runtime)
    where = f"{type(retriever).__qualname__}.search(dataset, queries, k, runtime)"
    if not isinstance(searched, Searched):
        raise UserError(f"{where} returned {described(searched)}: it must return Searched(run)")
    cost, run = stated_or_measured(searched.cost, started), searched.run
    if isinstance(run.documents, IdTable):
        run = on_corpus(run, ids, corpus, wide, where)
    else:
        check_rows(run, ids, len(corpus), where)
    return replace(searched, run=run.without(excluded, k) if excluded else run, cost=cost)
