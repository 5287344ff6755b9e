"""Fusion: several retrievers as one.

The run of each part is saved separately, so adding a part searches only that part.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, Self, assert_never, cast, get_args

from pydantic import Field, model_validator

from r2med.data import Dataset
from r2med.data.runs.run import Run
from r2med.foundation.core.cost import Cost, total
from r2med.foundation.core.errors import nearest
from r2med.foundation.core.keys import key_of
from r2med.foundation.core.plan import Plan, PlannedData
from r2med.foundation.core.spec import Call
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.runtime.stage_table import Fused
from r2med.foundation.runtime.stages import Bound, Numbers, Stage, Words, argument, bound
from r2med.foundation.store import Store, digest
from r2med.systems.retrieve.added_worth import DEFAULT_DEPTH, METHODS_MEANING, AddedWorth, FusionMethod
from r2med.systems.retrieve.apart import search_parts
from r2med.systems.retrieve.retriever import NO_REPORT, TEXTS_ALONE, Retriever, Searched, Searcher, SearchQuery
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

    @property
    def chooses_forms(self) -> bool:
        """True if a part searches another form than the expanded query, or chooses the form itself."""
        return any(word != "expanded" for word in self.stage.searched) or any(part.chooses_forms for part in self.parts)

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

    def runs(self, queries: Sequence[SearchQuery]) -> list[tuple[int, float, list[SearchQuery]]]:
        """Return (number of the part, weight, queries) for each run."""
        weights = self.stage.weights or (1.0,) * len(self.parts)
        runs = []
        for part, (weight, word) in enumerate(zip(weights, self.stage.searched, strict=True)):
            twice = word == "both" and any(query.expanded for query in queries)
            words: tuple[Searching, ...] = ("original", "expanded") if twice else (word,)
            runs += [(part, weight / len(words), [_asked(query, one) for query in queries]) for one in words]
        return runs


@dataclass(frozen=True)
class _PartSearch:
    """One search of a part."""

    part: str
    """The key of the part."""
    corpus: str
    """The key of the part that prepares the corpus."""
    queries: tuple[SearchQuery, ...]
    depth: int


@dataclass(frozen=True)
class _FusedSearch:
    """What a fusion found, by which searches, and the seconds for adding up their rankings."""

    run: Run
    searches: Mapping[_PartSearch, Searched]
    seconds: float


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

    def search(self, queries: Sequence[SearchQuery], k: int) -> Searched:
        """Return the k documents of each query with the highest total worth over all parts."""
        fused = self._fused(queries, k)
        cost = total(searched.cost for searched in fused.searches.values()) + Cost(seconds=fused.seconds)
        # One part prepares its corpus once.
        prepared = total({search.corpus: found.prepared for search, found in fused.searches.items()}.values())
        if not self._retriever.is_replayed:
            return Searched(fused.run, cost, prepared)
        report = sum((searched.report for searched in fused.searches.values()), NO_REPORT)
        return Searched(fused.run, cost, prepared, report)

    def _fused(self, queries: Sequence[SearchQuery], k: int) -> _FusedSearch:
        """Search with each part, and add up the rankings. The same search of the same part is made once."""
        stage, corpus, parts = self._retriever.stage, self._dataset.corpus, self._retriever.parts
        worth, depth = AddedWorth(len(queries)), stage.depth or max(DEFAULT_DEPTH, k)
        searches: dict[_PartSearch, Searched] = {}
        searching = 0.0

        def search(part: int, asked: Sequence[SearchQuery], depth: int) -> Searched:
            nonlocal searching
            wanted = _PartSearch(self._keys[part], self._corpora[part], tuple(asked), depth)
            if wanted not in searches:
                began = time.perf_counter()
                searches[wanted] = self._search(part, asked, depth)
                searching += time.perf_counter() - began
            return searches[wanted]

        started = time.perf_counter()
        for part, weight, asked in self._retriever.runs(queries):
            find = partial(search, part)
            whole = parts[part].chooses_forms
            run = (find(asked, depth) if whole else search_parts(find, asked, depth, corpus)).run
            for line, (rows, scores) in enumerate(zip(run.rows, run.scores, strict=True)):
                worth.add(line, rows, scores, stage.method, weight)
        run = worth.ranked([query.query.id for query in queries], k, corpus)
        return _FusedSearch(run, searches, time.perf_counter() - started - searching)

    def live(self) -> FusionSearcher:
        """Return a searcher that saves no run. It uses the parts that are already open, and opens the others now."""
        searcher = copy.copy(self)
        searcher._live = tuple(self._index(part).live() for part in range(len(self._retriever.parts)))
        return searcher

    def _index(self, part: int) -> Searcher:
        """Return the searcher of a part. Parts with the same settings share one."""
        key = self._keys[part]
        if key not in self._indexed:
            self._indexed[key] = indexed(self._retriever.parts[part], self._dataset, self._store)
        return self._indexed[key]

    def _search(self, part: int, queries: Sequence[SearchQuery], depth: int) -> Searched:
        if self._live:
            return search_with(self._live[part], self._dataset.corpus, queries, depth)
        index = partial(self._index, part)
        return cached_search(self._retriever.parts[part], self._dataset, queries, depth, self._store, index)


def _index_of(retriever: Any) -> Any:
    """Return the retriever whose index a part uses: of a whole system, the one inside it."""
    inside = getattr(retriever, "searches_with", None)
    return retriever if inside is None else _index_of(inside)


def _asked(search: SearchQuery, word: Searching) -> SearchQuery:
    """Return the query that a part searches. Both is two runs: the original query, and the expanded one."""
    if not search.expanded:
        return SearchQuery(search.query, replaces=search.replaces)
    match word:
        case "original":
            return SearchQuery(search.query)
        case "generated" if search.parts:
            written = search.parts[-len(search.generated) :]  # The original query may be searched before them.
            return replace(search, parts=tuple((_asked(part, word), weight) for part, weight in written))
        case "generated" if search.generated:
            return SearchQuery(search.query, search.generated, dense_form=TEXTS_ALONE)
        case "generated" | "expanded" | "both":
            return search
        case other:
            assert_never(other)
