"""Search with a retriever, and keep the ranking in the store."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from r2med.data import Corpus, Dataset
from r2med.data.runs.run import IdTable, Run, on_corpus
from r2med.data.runs.run_checks import ranking_fault
from r2med.data.runs.ties import TIE_RULE
from r2med.foundation.core.cost import Cost, stated_or_measured
from r2med.foundation.core.errors import UserError
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.runtime.stages import Stage, described, key_of
from r2med.foundation.store import Artefact, digest
from r2med.foundation.store.files import write_array
from r2med.foundation.store.reads import current_reads
from r2med.systems.retrieve.retriever import Searched, SearchQuery

log = logging.getLogger("r2med")


VERSION = 7


def stored_search(
    retriever: Stage, dataset: Dataset, queries: Sequence[SearchQuery], k: int, runtime: Runtime
) -> Searched:
    """Search, using the store. The excluded documents of each query are left out of its ranking.

    A live store keeps no run. A retriever that is replayed is always searched: the searches inside it are in the store,
    and the answers of LLMs.
    """
    with runtime.about(dataset.label).one_search() as shared:
        if shared.store.keeps_questions and not retriever.is_replayed(shared):
            return _kept(retriever, dataset, queries, k, shared)
        return _search(retriever, dataset, queries, k, shared)


def _kept(retriever: Stage, dataset: Dataset, queries: Sequence[SearchQuery], k: int, runtime: Runtime) -> Searched:
    """Return the ranking that the store has, and search first if it has none."""
    corpus, store = dataset.corpus, runtime.store
    asked = [query.key for query in queries]
    run_key = digest(["run", VERSION, TIE_RULE, key_of(retriever, dataset, runtime), corpus.fingerprint, asked, k])

    def build(folder: Path) -> dict[str, Any]:
        searched = _search(retriever, dataset, queries, k, runtime)
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
            raise UserError(f"stage {retriever} returned a ranking that cannot be used: {fault}")
    if (reads := current_reads()) is not None and reads.searches_again:
        _search(retriever, dataset, queries, k, runtime)
    run = Run(tuple(query.query.id for query in queries), artefact.array("rows"), artefact.array("scores"), corpus)
    return Searched(run, Cost.from_dict(artefact.meta["cost"]), Cost.from_dict(artefact.meta["prepared"]))


def _search(retriever: Stage, dataset: Dataset, queries: Sequence[SearchQuery], k: int, runtime: Runtime) -> Searched:
    """Return the k best documents of each query, without its excluded documents."""
    if k < 1:
        raise UserError(f"k must be at least 1, not {k}")
    rows = dataset.corpus.rows
    excluded = {query.query.id: rows(query.query.excluded) for query in queries if query.query.excluded}
    spare = max(map(len, excluded.values()), default=0)
    searched = _searched(retriever, dataset, queries, k + spare, runtime)
    return replace(searched, run=searched.run.without(excluded, k)) if excluded else searched


def _searched(retriever: Stage, dataset: Dataset, queries: Sequence[SearchQuery], k: int, runtime: Runtime) -> Searched:
    """Return what a retriever finds, as rows of the corpus. A run of document ids, as `Run.of` returns, is looked up.

    Raises UserError if the retriever returns something else.
    """
    started = time.perf_counter()
    searched: object = retriever.search(dataset, queries, k, runtime)
    where = f"{type(retriever).__qualname__}.search(dataset, queries, k, runtime)"
    if not isinstance(searched, Searched):
        raise UserError(f"{where} returned {described(searched)}: it must return Searched(run)")
    searched = replace(searched, cost=stated_or_measured(searched.cost, started))
    asked = [query.query.id for query in queries]
    if isinstance(searched.run.documents, IdTable):
        return replace(searched, run=on_corpus(searched.run, asked, dataset.corpus, k, where))
    if list(searched.run.queries) != asked:
        raise UserError(f"{where} returned a run of other queries, or in another order, than it was given")
    return searched


def check_filled(corpus: Corpus) -> None:
    """Raise UserError if there is nothing to search."""
    if not len(corpus):
        raise UserError("the corpus is empty: there is nothing to search")
