"""Search with a retriever, and keep the ranking in the store."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from r2med.data import Corpus, Dataset
from r2med.data.runs.run import IdTable, Run, on_corpus
from r2med.data.runs.run_checks import ranking_fault
from r2med.data.runs.ties import TIE_RULE
from r2med.foundation.core.cost import Cost, stated_or_measured
from r2med.foundation.core.errors import UserError
from r2med.foundation.core.keys import key_of
from r2med.foundation.runtime.stages import described
from r2med.foundation.store import Artefact, Store, digest
from r2med.foundation.store.files import write_array
from r2med.foundation.store.reads import current_reads
from r2med.systems.retrieve.retriever import ForeignSearcher, Retriever, Searched, Searcher, SearchQuery

log = logging.getLogger("r2med")


VERSION = 7


def cached_search(
    retriever: Retriever,
    dataset: Dataset,
    queries: Sequence[SearchQuery],
    k: int,
    store: Store,
    index: Callable[[], Searcher] | None = None,
) -> Searched:
    """Search, using the store. The excluded documents of each query are left out of its ranking.

    A live store keeps no run. A retriever that is replayed is always searched: the searches inside it are in the store,
    and the answers of LLMs. `index` returns the searcher of the retriever where it may be open already.
    """
    if not store.keeps_questions:
        return _search(live_searcher(retriever, dataset, store), dataset, queries, k)
    store = store.about(dataset.label)

    @cache
    def opened() -> Searcher:
        return index() if index is not None else indexed(retriever, dataset, store)

    if retriever.is_replayed:
        return _search(opened(), dataset, queries, k)
    corpus = dataset.corpus
    asked = [query.key for query in queries]
    run_key = digest(["run", VERSION, TIE_RULE, key_of(retriever, dataset), corpus.fingerprint, asked, k])

    def build(folder: Path) -> dict[str, Any]:
        searcher = opened()
        searched = _search(searcher, dataset, queries, k)
        write_array(folder / "rows.npy", searched.run.rows)
        write_array(folder / "scores.npy", searched.run.scores)
        return {"cost": searched.cost.as_dict(), "prepared": searched.prepared.as_dict()}

    def fault_of(artefact: Artefact) -> str:
        return ranking_fault(artefact.array("rows"), artefact.array("scores"), len(queries), len(corpus))

    artefact = store.make("run", run_key, build)
    if fault := fault_of(artefact):  # a pack may have brought it
        log.warning("the stored ranking %s is damaged (%s): making it again", run_key[:8], fault)
        store.discard("run", run_key)
        artefact = store.make("run", run_key, build)
        if fault := fault_of(artefact):
            raise UserError(f"stage {retriever.name} returned a ranking that cannot be used: {fault}")
    if (reads := current_reads()) is not None and reads.searches_again:
        _search(opened(), dataset, queries, k)
    run = Run(tuple(query.query.id for query in queries), artefact.array("rows"), artefact.array("scores"), corpus)
    return Searched(run, Cost.from_dict(artefact.meta["cost"]), Cost.from_dict(artefact.meta["prepared"]))


def indexed(retriever: Retriever, dataset: Dataset, store: Store) -> Searcher:
    """Return the searcher of a retriever. Raises UserError if it cannot search."""
    searcher: object = retriever.index(dataset, store)
    if isinstance(searcher, Searcher):
        return searcher
    if not callable(getattr(searcher, "search", None)):
        raise UserError(
            f"stage {retriever.name}: its index(dataset, store) returned {described(searcher)}, which has no "
            "search(queries, k)"
        )
    return ForeignSearcher(searcher)


def live_searcher(retriever: Retriever, dataset: Dataset, store: Store) -> Searcher:
    """Return the searcher for single questions. The store opens each retriever once."""
    key = digest(["searcher", key_of(retriever, dataset), dataset.corpus.fingerprint])

    def open() -> Searcher:
        return indexed(retriever, dataset, store.about(dataset.label)).live()

    return store.opened(key, open)


def _search(searcher: Searcher, dataset: Dataset, queries: Sequence[SearchQuery], k: int) -> Searched:
    """Return the k best documents of each query, without its excluded documents."""
    rows = dataset.corpus.rows
    excluded = {query.query.id: rows(query.query.excluded) for query in queries if query.query.excluded}
    spare = max(map(len, excluded.values()), default=0)
    searched = search_with(searcher, dataset.corpus, queries, k + spare)
    return replace(searched, run=searched.run.without(excluded, k)) if excluded else searched


def search_with(searcher: Searcher, corpus: Corpus, queries: Sequence[SearchQuery], k: int) -> Searched:
    """Return what a searcher finds, as rows of the corpus. A run of document ids, as `Run.of` returns, is looked up.

    Raises UserError if the searcher returns something else.
    """
    started = time.perf_counter()
    searched: object = searcher.search(queries, k)
    where = f"{searcher.label}.search(queries, k)"
    if not isinstance(searched, Searched):
        raise UserError(f"{where} returned {described(searched)}: it must return Searched(run)")
    searched = replace(searched, cost=stated_or_measured(searched.cost, started))
    asked = [query.query.id for query in queries]
    if isinstance(searched.run.documents, IdTable):
        return replace(searched, run=on_corpus(searched.run, asked, corpus, k, where))
    if list(searched.run.queries) != asked:
        raise UserError(f"{where} returned a run of other queries, or in another order, than it was given")
    return searched
