"""Fusion: several retrievers as one.

The run of each part is saved separately, so adding a part searches only that part.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, Self, assert_never, cast, get_args

from pydantic import Field, model_validator

from r2med.data import Dataset
from r2med.foundation.core.approximation import Approximation
from r2med.foundation.core.cost import Cost, added_latencies, total
from r2med.foundation.core.errors import nearest
from r2med.foundation.core.keys import key_of
from r2med.foundation.core.plan import Plan, PlannedData
from r2med.foundation.core.spec import Call
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.runtime.stage_table import Fused
from r2med.foundation.runtime.stages import Bound, Numbers, Stage, Words, argument, bound
from r2med.foundation.store import Store, digest
from r2med.systems.retrieve.added_worth import DEFAULT_DEPTH, METHODS_MEANING, AddedWorth, FusionMethod
from r2med.systems.retrieve.retriever import (
    NO_REPORT,
    TEXTS_ALONE,
    Retriever,
    Search,
    Searched,
    Searcher,
    SearchQuery,
    SearchReport,
)
from r2med.systems.retrieve.stored_search import cached_search, indexed, search_with

Searching = Literal["expanded", "original", "generated", "both"]


class Fusion(Stage, kind="retrieve"):
    """Add up the rankings of several retrievers; bm25+bge is short for fuse(bm25+bge)."""

    name: str = "fuse"
    parts: Fused = argument("the retrievers, joined by +")
    method: FusionMethod = Field("rrf", description=METHODS_MEANING)
    weights: Numbers = Field((), description="weight of each part, for example 3:1")
    queries: Words = Field(
        (),
        description="form of an expanded query that each part searches: expanded (joined as the method says), "
        "original, generated (only the generated text), or both (the first two as two runs)",
    )
    depth: int = Field(
        0,
        ge=0,
        le=1_000_000,
        description=f"number of documents used from each part; 0: {DEFAULT_DEPTH}, or the final depth if it is larger",
    )

    @model_validator(mode="after")
    def _one_for_each_part(self) -> Self:
        count = len(self.parts)
        for noun, values in (("weights", self.weights), ("queries", self.queries)):
            if len(values) not in (0, 1, count) or (noun == "weights" and len(values) == 1):
                raise ValueError(f"fusion of {count} parts has {len(values)} {noun}; give one for each part")
        choices = get_args(Searching)
        for word in self.queries:
            if word not in choices:
                raise ValueError(f"a part cannot search {word!r}{nearest(word, choices)}: {', '.join(choices)}")
        return self

    def __str__(self) -> str:
        parts = "+".join(f"fuse({part})" if _is_bare(part) else str(part) for part in self.parts)
        return parts if _is_bare(self) else str(Call(self.name, (parts,), self.changed))

    @property
    def searched(self) -> tuple[Searching, ...]:
        """The form of the query that each part searches."""
        chosen = cast(tuple[Searching, ...], self.queries)  # They were checked above.
        return chosen if len(chosen) == len(self.parts) else (chosen or ("expanded",)) * len(self.parts)

    def own_queries(self) -> Stage | None:
        """Return the first part that makes its own queries, unless it is to search the original query."""
        asked = zip(self.parts, self.searched, strict=True)
        return next((found for part, word in asked if word != "original" and (found := part.own_queries())), None)

    def plan(self, data: Sequence[PlannedData], runtime: Runtime) -> list[Plan]:
        """Return the plans of all parts."""
        return [each for part in self.parts for each in part.plan(data, runtime)]

    def bind(self, runtime: Runtime) -> FusedRetriever:
        """Return the retriever with its parts bound."""
        return FusedRetriever(self, tuple(bound(part, runtime) for part in self.parts))


def _is_bare(stage: Stage) -> bool:
    """Return True if a fusion prints without parentheses. Inside another fusion it needs them."""
    return isinstance(stage, Fusion) and len(stage.parts) > 1 and not stage.changed


@dataclass(frozen=True)
class FusedRetriever(Bound[Fusion]):
    """Several retrievers that search together."""

    parts: tuple[Retriever, ...]

    @property
    def inner(self) -> tuple[Retriever, ...]:
        """The retrievers that are fused."""
        return self.parts

    def key(self, dataset: Dataset) -> dict[str, Any]:
        """Return every setting that a score depends on."""
        return {
            **self.stage.settings(),
            "weights": list(self.stage.weights or [1.0] * len(self.parts)),
            "queries": list(self.stage.searched),
            "parts": [key_of(part, dataset) for part in self.parts],
        }

    def index(self, dataset: Dataset, store: Store) -> FusionSearcher:
        """Return a searcher. A part is indexed when it is first searched, and not at all if its run is in the store."""
        return FusionSearcher(self, dataset, store)

    def approximations(
        self, dataset: Dataset, queries: Sequence[SearchQuery], k: int, store: Store
    ) -> tuple[Approximation, ...]:
        """Return the recall of the parts with an approximate index."""
        depth = self.stage.depth or max(DEFAULT_DEPTH, k)
        return tuple(
            each
            for part, _, asked in self.runs(queries)
            for each in self.parts[part].approximations(dataset, asked, depth, store)
        )

    def runs(self, queries: Sequence[SearchQuery]) -> list[tuple[int, float, list[SearchQuery]]]:
        """Return (number of the part, weight, queries) for each run."""
        weights = self.stage.weights or (1.0,) * len(self.parts)
        runs = []
        for part, (weight, word) in enumerate(zip(weights, self.stage.searched, strict=True)):
            twice = word == "both" and any(query.expanded for query in queries)
            words: tuple[Searching, ...] = ("original", "expanded") if twice else (word,)
            runs += [(part, weight / len(words), [_asked(query, one) for query in queries]) for one in words]
        return runs


class FusionSearcher(Searcher):
    """Fusion search over one corpus. Each part is indexed once, when it is first searched."""

    def __init__(self, retriever: FusedRetriever, dataset: Dataset, store: Store) -> None:
        self._retriever = retriever
        self._dataset = dataset
        self._store = store
        self._keys = [digest(key_of(part, dataset)) for part in retriever.parts]
        self._corpora = [digest(key_of(_index_of(part), dataset)) for part in retriever.parts]
        self._indexed: dict[str, Searcher] = {}
        self._live: tuple[Searcher, ...] = ()
        self._fusing: float | None = None
        """Seconds of a query for adding up the rankings, from the last search."""

    def search(self, queries: Sequence[SearchQuery], k: int) -> Searched:
        """Return the k documents of each query with the highest total worth over all parts."""
        stage = self._retriever.stage
        worth = AddedWorth(len(queries))
        depth = stage.depth or max(DEFAULT_DEPTH, k)
        costs, prepared, reports = {}, {}, {}
        own = 0.0
        for part, weight, asked in self._retriever.runs(queries):
            searched = self._search(part, asked, depth)
            # One part prepares its corpus once, and the same search runs once.
            costs[self._keys[part], tuple(asked)] = searched.cost
            prepared[self._corpora[part]] = searched.prepared
            reports[self._keys[part], tuple(asked)] = self._report(part, asked, depth, searched)
            started = time.perf_counter()
            for line, (rows, scores) in enumerate(zip(searched.run.rows, searched.run.scores, strict=True)):
                worth.add(line, rows, scores, stage.method, weight)
            own += time.perf_counter() - started
        run = worth.ranked([query.query.id for query in queries], k, self._dataset.corpus)
        self._fusing = own / max(1, len(queries))
        cost = total(costs.values()) + Cost(seconds=own)
        if not self._retriever.is_replayed:
            return Searched(run, cost, total(prepared.values()))
        # Calls of LLMs and searches take different times, so that quantiles over both would say nothing.
        return Searched(run, replace(cost, latencies=()), total(prepared.values()), sum(reports.values(), NO_REPORT))

    def _report(self, part: int, asked: Sequence[SearchQuery], depth: int, searched: Searched) -> SearchReport:
        """Return what happened inside the search of a part, with the search itself if it is a single one."""
        retriever = self._retriever.parts[part]
        if retriever.is_replayed:
            return searched.report
        return replace(searched.report, searches=(Search(retriever, self._dataset, tuple(asked), depth),))

    def live(self) -> FusionSearcher:
        """Return a searcher that saves no run. It uses the parts that are already open, and opens the others now."""
        searcher = copy.copy(self)
        searcher._live = tuple(self._index(part).live() for part in range(len(self._retriever.parts)))
        return searcher

    def latencies(self, queries: Sequence[SearchQuery], k: int) -> tuple[float, ...]:
        """Return the seconds of a query: those of the parts, one after the other, and of adding up their rankings.

        The parts are timed as they are alone, and once. So a fusion is never shown as faster than its parts.
        """
        if self._fusing is None:
            self.search(queries, k)
        depth = self._retriever.stage.depth or max(DEFAULT_DEPTH, k)
        parts = {
            (self._keys[part], tuple(asked)): self._search(part, asked, depth, timed=True).cost.latencies
            for part, _, asked in self._retriever.runs(queries)
        }
        return tuple(seconds + (self._fusing or 0.0) for seconds in added_latencies(list(parts.values())))

    def _index(self, part: int) -> Searcher:
        """Return the searcher of a part. Parts with the same settings share one."""
        key = self._keys[part]
        if key not in self._indexed:
            self._indexed[key] = indexed(self._retriever.parts[part], self._dataset, self._store)
        return self._indexed[key]

    def _search(self, part: int, queries: Sequence[SearchQuery], depth: int, timed: bool = False) -> Searched:
        if self._live:
            return search_with(self._live[part], self._dataset.corpus, queries, depth)
        index = partial(self._index, part)
        return cached_search(self._retriever.parts[part], self._dataset, queries, depth, self._store, timed, index)


def _index_of(retriever: Any) -> Any:
    """Return the retriever whose index a part uses: of a whole system, the one inside it."""
    inside = getattr(retriever, "searches_with", None)
    return retriever if inside is None else _index_of(inside)


def _asked(search: SearchQuery, word: Searching) -> SearchQuery:
    """Return the query that a part searches. Both is two runs: the original query, and the expanded one."""
    if not search.expanded:
        return SearchQuery(search.query)
    match word:
        case "original":
            return SearchQuery(search.query)
        case "generated" if search.generated:
            return SearchQuery(search.query, search.generated, dense_form=TEXTS_ALONE)
        case "generated" | "expanded" | "both":
            return search
        case other:
            assert_never(other)
