"""Retriever protocol, its queries and its results."""

from __future__ import annotations

import contextlib
import logging
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cache
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from r2med.data import Corpus, Dataset, Query
from r2med.data.runs.run import IdTable, Run, on_corpus
from r2med.data.runs.run_checks import ranking_fault
from r2med.data.runs.ties import TIE_RULE
from r2med.foundation.core.approximation import Approximation
from r2med.foundation.core.cost import NOTHING, Cost, stated_or_measured
from r2med.foundation.core.errors import UserError
from r2med.foundation.core.events import emit
from r2med.foundation.core.keys import changed_values, key_of
from r2med.foundation.runtime.stages import described
from r2med.foundation.store import Artefact, Store, digest
from r2med.foundation.store.files import write_array
from r2med.foundation.store.reads import RankingRead, noted_reads
from r2med.systems.retrieve.added_worth import FusionMethod

log = logging.getLogger("r2med")

MEAN = ""
TEXTS_ALONE = "{text}"
"""How generated texts join a query for a dense model.

MEAN is the mean of the query's vector and theirs. TEXTS_ALONE uses only theirs. Any other form is one string that is
encoded as the query, such as {query}[SEP]{text}.
"""


@dataclass(frozen=True)
class SearchQuery:
    """A query with the text that an expansion added, and how the two are joined."""

    query: Query
    generated: tuple[str, ...] = ()
    copies: int = 0
    """Number of copies of the query before the generated texts, for retrievers that match words."""
    dense_form: str = MEAN
    """How the two are joined for dense models."""
    terms: tuple[tuple[str, float], ...] = ()
    """Index terms with weights, used instead of a text by retrievers that match words. Others search the query."""
    glued: bool = False
    """True if the copies follow each other without a space."""
    parts: tuple[tuple[SearchQuery, float], ...] = ()
    """Queries that are searched apart in place of this one, each with its weight; see `systems/retrieve/apart.py`."""
    fuse: FusionMethod = "rrf"
    """How the rankings of the parts are added up."""

    @property
    def expanded(self) -> bool:
        """Return True if an expansion added anything."""
        return bool(self.generated or self.terms or self.parts)

    @property
    def lexical_text(self) -> str:
        """The text for retrievers that match words. Without generated text it is the query itself."""
        if not self.generated:
            return self.query.text
        copies = [self.query.text] * self.copies
        return " ".join([*(["".join(copies)] if self.glued and copies else copies), *self.generated])

    @property
    def key(self) -> list[Any]:
        """Everything that a ranking depends on."""
        query, parts = self.query, [[part.key, weight] for part, weight in self.parts]
        return [query.id, query.text, query.excluded, changed_values(self, but=("query", "parts")), parts]


@dataclass(frozen=True)
class SearchReport:
    """What happened inside a search that asks LLMs or has several stages. Reports can be added."""

    failures: int = 0
    """Number of queries and of questions to rerankers that failed."""
    asked: int = 0
    """Number of queries and of questions that could fail."""
    failure_kinds: Mapping[str, int] = field(default_factory=dict)
    """Kind of failure -> number of failures."""
    failed: Mapping[str, str] = field(default_factory=dict)
    """Query id -> number of its failures by kind, in words."""
    repairs: Mapping[str, int] = field(default_factory=dict)
    """Kind of repair of an LLM's ranking -> number of repairs."""
    counts: Mapping[str, float] = field(default_factory=dict)
    """Further facts for a record, such as turns and searches of an agent."""
    notices: tuple[str, ...] = ()
    """Remarks for the user, one sentence each."""
    texts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Query id -> texts that an expansion inside the search wrote."""
    traces: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    """Query id -> the conversations of search agents, ready for JSON."""
    searches: tuple[Search, ...] = field(default=(), compare=False)
    """The searches of single retrievers inside the search."""

    def __add__(self, other: SearchReport) -> SearchReport:
        return SearchReport(**{name: _added(getattr(self, name), getattr(other, name)) for name in _REPORTED})

    def __radd__(self, other: int) -> SearchReport:
        return self  # so that sum() works, which begins with 0


def _added(mine: Any, others: Any) -> Any:
    if not isinstance(mine, Mapping):
        return mine + others
    both = {name: _joined(mine[name], others[name]) for name in mine if name in others}
    return {**mine, **others, **both}


def _joined(mine: Any, others: Any) -> Any:
    return f"{mine}, {others}" if isinstance(mine, str) else mine + others


_REPORTED = tuple(each.name for each in fields(SearchReport))
NO_REPORT = SearchReport()


@dataclass(frozen=True)
class Searched:
    """A run, and its cost when it was made."""

    run: Run
    """The rankings."""
    cost: Cost = NOTHING
    """Cost of searching these queries."""
    prepared: Cost = NOTHING
    """Cost of preparing the corpus. This is done once for all searches."""
    report: SearchReport = NO_REPORT
    """What happened inside a search that asks LLMs or has several stages."""


class Searcher(ABC):
    """A retriever that is ready to search one corpus."""

    @abstractmethod
    def search(self, queries: Sequence[SearchQuery], k: int) -> Searched:
        """Return the k best documents of each query. `Run.of` makes a run from document ids and scores."""

    def live(self) -> Searcher:
        """Return the searcher for single questions: everything is open, and nothing about a question is saved.

        A searcher that saves nothing and opens nothing later is its own.
        """
        return self

    def latencies(self, queries: Sequence[SearchQuery], k: int) -> tuple[float, ...]:
        """Return the seconds of some of the queries, each searched alone after a warm-up. See `timed_queries`."""
        live, chosen = self.live(), timed_queries(queries)
        for query in chosen[:WARM_UP_QUERIES]:  # The first searches open or compile things, so they are not measured.
            live.search([query], k)
        seconds: list[float] = []
        for query in chosen:
            started = time.perf_counter()
            live.search([query], k)
            seconds.append(time.perf_counter() - started)
            if sum(seconds) > TIMING_SECONDS:
                break
        return tuple(seconds)

    @property
    def label(self) -> str:
        """The name of its class, for messages."""
        return type(self).__qualname__


@dataclass(frozen=True)
class ForeignSearcher(Searcher):
    """A user's object with `search`. It may also have `live()`."""

    made: Any

    def search(self, queries: Sequence[SearchQuery], k: int) -> Searched:
        """Return what the object finds."""
        found: Searched = self.made.search(queries, k)
        return found

    def live(self) -> Searcher:
        """Return the object's searcher for single questions; itself if it has none."""
        return ForeignSearcher(self.made.live()) if hasattr(self.made, "live") else self

    @property
    def label(self) -> str:
        """The name of the object's class, for messages."""
        return type(self.made).__qualname__


class Retriever(Protocol):
    """Anything that can search the corpus of a dataset."""

    @property
    def name(self) -> str:
        """The spec of the stage."""

    @property
    def is_replayed(self) -> bool:
        """True if the store keeps the work of the inner stages and the answers of LLMs, and not the result itself."""

    @property
    def varies(self) -> bool:
        """True if another run can give another ranking."""

    def approximations(
        self, dataset: Dataset, queries: Sequence[SearchQuery], k: int, store: Store
    ) -> tuple[Approximation, ...]:
        """Return the recall of its searches, measured once, or nothing if they are exact."""

    def key(self, dataset: Dataset) -> dict[str, Any]:
        """Return every setting that a score depends on, for keys and records. Nothing is loaded."""

    def index(self, dataset: Dataset, store: Store) -> Searcher:
        """Prepare the corpus, using the store."""


VERSION = 6


@dataclass(frozen=True)
class Search:
    """The arguments of one search."""

    retriever: Retriever
    dataset: Dataset
    queries: tuple[SearchQuery, ...]
    k: int

    def approximations(self, store: Store) -> tuple[Approximation, ...]:
        """Return the recall of this search, or nothing if it is exact."""
        if not self.queries:
            return ()
        return self.retriever.approximations(self.dataset, self.queries, self.k, store)


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
            raise UserError(f"stage {retriever.name} returned a ranking that cannot be used: {fault}")
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
    key = digest(["latencies", run_key])
    known = store.recall(key)
    if known is None:
        try:
            known = {"seconds": list(measure())}
        except UserError:  # A run file needs all its queries together.
            return cost
        store.remember(key, known)
    return replace(cost, latencies=tuple(known["seconds"]))


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


TIMED_QUERIES = 32
TIMING_SECONDS = 10.0
"""Number of queries that are searched one by one to measure the latency, and the time limit in seconds."""
WARM_UP_QUERIES = 3
"""Number of queries that are searched before the measurement."""


def timed_queries(queries: Sequence[SearchQuery]) -> Sequence[SearchQuery]:
    """Return the queries that are timed: the same ones for every system, evenly spread over the dataset."""
    return queries[:: max(1, len(queries) // TIMED_QUERIES)][:TIMED_QUERIES]
