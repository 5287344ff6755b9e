"""Search with a retriever, and keep the ranking in the store."""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from r2med.data import Corpus, Dataset
from r2med.data.runs.run import IdTable, Run, on_corpus
from r2med.data.runs.run_checks import ranking_fault
from r2med.data.runs.ties import TIE_RULE
from r2med.foundation.core.cost import Cost, stated_or_measured
from r2med.foundation.core.errors import UserError
from r2med.foundation.core.events import emit
from r2med.foundation.core.keys import key_of
from r2med.foundation.runtime.stages import described
from r2med.foundation.store import Artefact, Store, digest
from r2med.foundation.store.files import write_array
from r2med.foundation.store.reads import RankingRead, noted_reads
from r2med.systems.retrieve.retriever import ForeignSearcher, Retriever, Searched, Searcher, SearchQuery

log = logging.getLogger("r2med")


VERSION = 6


def cached_search(
    retriever: Retriever,
    dataset: Dataset,
    queries: Sequence[SearchQuery],
    k: int,
    store: Store,
    timed: bool = False,
    index: Callable[[], Searcher] | None = None,
) -> Searched:
    """Search, using the store. The excluded documents of each query are left out of its ranking.

    With `timed`, some queries are then searched one by one, to know the latency of a search. A live store keeps no run.
    A retriever that is replayed is always searched: the searches inside it are in the store, and the answers of LLMs.
    `index` returns the searcher of the retriever where it may be open already.
    """
    if not store.keeps_questions:
        return _search(live_searcher(retriever, dataset, store), dataset, queries, k)
    store = store.about(dataset.label)

    @cache  # the search and the measurement share it
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
        cost = searched.cost
        if timed and not (cost.dollars or cost.unpriced):  # A search that costs money is not repeated.
            with contextlib.suppress(UserError):  # A run file needs all its queries together.
                cost = replace(cost, latencies=searcher.latencies(queries, k))
        return {"cost": cost.as_dict(), "prepared": searched.prepared.as_dict()}

    def fault_of(artefact: Artefact) -> str:
        return ranking_fault(artefact.array("rows"), artefact.array("scores"), len(queries), len(corpus))

    artefact = store.make("run", run_key, build)
    if fault := fault_of(artefact):  # a pack may have brought it
        log.warning("the stored ranking %s is damaged (%s): making it again", run_key[:8], fault)
        store.discard("run", run_key)
        artefact = store.make("run", run_key, build)
        if fault := fault_of(artefact):
            raise UserError(f"stage {retriever.name} returned a ranking that cannot be used: ", fault)
    if artefact.meta.get("unpacked"):
        artefact = _searched_again(artefact, store, run_key, lambda: _search(opened(), dataset, queries, k))
    emit(RankingRead(lambda: _search(opened(), dataset, queries, k)))
    run = Run(tuple(query.query.id for query in queries), artefact.array("rows"), artefact.array("scores"), corpus)
    cost = Cost.from_dict(artefact.meta["cost"])
    if timed:
        cost = _timed(cost, store, run_key, lambda: opened().latencies(queries, k))
    return Searched(run, cost, Cost.from_dict(artefact.meta["prepared"]))


def _timed(cost: Cost, store: Store, run_key: str, measure: Callable[[], tuple[float, ...]]) -> Cost:
    """Return the cost of a search with the seconds of single queries.

    They are part of a stored run. If it was made for something else, they are measured once and remembered.
    """
    if cost.latencies or cost.dollars or cost.unpriced:  # A search that costs money is not repeated.
        return cost
    known = remembered_latencies(store, run_key)
    if known is None:
        try:
            known = tuple(measure())
        except UserError:  # A run file needs all its queries together.
            return cost
        store.remember(_latencies_key(run_key), {"seconds": list(known)})
    return replace(cost, latencies=known)


def remembered_latencies(store: Store, run_key: str) -> tuple[float, ...] | None:
    """Return the seconds of single queries that were measured after a run was stored; None if there are none."""
    known = store.recall(_latencies_key(run_key))
    return None if known is None else tuple(known["seconds"])


def _latencies_key(run_key: str) -> str:
    return digest(["latencies", run_key])


def _searched_again(artefact: Artefact, store: Store, key: str, search: Callable[[], Searched]) -> Artefact:
    """Return a ranking of a pack after searching again, if the store has all that this needs. Its costs are kept.

    Nothing is encoded or asked. A ranking that cannot be searched again is used, and this is reported.
    """
    try:
        with noted_reads():
            run = search().run
    except UserError as error:
        log.warning("the ranking %s came from a pack and cannot be checked here: %s", key[:8], error)
        return artefact
    if not np.array_equal(run.rows, artefact.array("rows")):
        log.warning("the ranking %s of a pack is not what the search gives here, which is used instead", key[:8])

    def build(folder: Path) -> dict[str, Any]:
        write_array(folder / "rows.npy", run.rows)
        write_array(folder / "scores.npy", run.scores)
        return {name: value for name, value in artefact.meta.items() if name not in ("unpacked", "about")}

    store.discard("run", key)
    return store.make("run", key, build)


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
