"""Fusion: several retrievers as one.

The run of each part is saved separately, so adding a part searches only that part.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Literal, Self, assert_never, cast, get_args

from pydantic import Field, model_validator

from r2med.data import Dataset
from r2med.foundation.core.cost import Cost, total
from r2med.foundation.core.errors import nearest
from r2med.foundation.core.needs import Needs, Size
from r2med.foundation.core.spec import Call
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.runtime.stages import Fused, Numbers, Stage, Words, argument, key_of
from r2med.systems.retrieve.fused_rankings import (
    DEFAULT_DEPTH,
    METHODS_MEANING,
    FusionMethod,
    WeightedRanking,
    fuse_rankings,
)
from r2med.systems.retrieve.retriever import NO_REPORT, TEXTS_ALONE, Searched, SearchQuery
from r2med.systems.retrieve.stored_search import search_parts, stored_search

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

    def needs(self, size: Size, runtime: Runtime) -> list[Needs]:
        """Return the needs of all parts."""
        return [need for part in self.parts for need in part.needs(size, runtime)]

    def inside(self, runtime: Runtime) -> tuple[Stage, ...]:
        """Return the retrievers that are fused."""
        return self.parts

    def chooses_forms(self, runtime: Runtime) -> bool:
        """Return True if a part searches another form than the expanded query, or chooses the form itself."""
        others = any(word != "expanded" for word in self.searched)
        return others or any(part.chooses_forms(runtime) for part in self.parts)

    def key(self, dataset: Dataset, runtime: Runtime) -> dict[str, Any]:
        """Return every setting that a score depends on."""
        return {
            **self.settings(),
            "weights": list(self.weights or [1.0] * len(self.parts)),
            "queries": list(self.searched),
            "parts": [key_of(part, dataset, runtime) for part in self.parts],
        }

    def search(self, dataset: Dataset, queries: Sequence[SearchQuery], k: int, runtime: Runtime) -> Searched:
        """Return the k documents of each query with the highest total worth over all parts.

        A part is opened when it is first searched, and not at all if its run is in the store. The same search of the
        same part is made once.
        """
        searches: dict[tuple[Stage, tuple[SearchQuery, ...], int], Searched] = {}

        def search(part: Stage, queries: Sequence[SearchQuery], k: int) -> Searched:
            key = part, tuple(queries), k
            if key not in searches:
                searches[key] = stored_search(part, dataset, queries, k, runtime)
            return searches[key]

        depth = self.depth or max(DEFAULT_DEPTH, k)
        rankings: list[WeightedRanking] = []
        for part, weight, form in self._runs(queries):
            find = partial(search, part)
            whole = part.chooses_forms(runtime)
            searched = find(form, depth) if whole else search_parts(find, form, depth, dataset.corpus)
            for line, (rows, scores) in enumerate(zip(searched.run.rows, searched.run.scores, strict=True)):
                rankings.append(WeightedRanking(line, rows, scores, self.method, weight))
        started = time.perf_counter()
        run = fuse_rankings([query.query.id for query in queries], rankings, k, dataset.corpus)
        fusing = Cost(seconds=time.perf_counter() - started)
        cost = total(searched.cost for searched in searches.values()) + fusing
        # One part prepares its corpus once.
        prepared = total({part.indexing(): searched.prepared for (part, *_), searched in searches.items()}.values())
        return Searched(run, cost, prepared, sum((searched.report for searched in searches.values()), NO_REPORT))

    def _runs(self, queries: Sequence[SearchQuery]) -> Iterator[tuple[Stage, float, list[SearchQuery]]]:
        """Yield (part, weight, queries in the form that it searches) for each run."""
        weights = self.weights or (1.0,) * len(self.parts)
        for part, weight, word in zip(self.parts, weights, self.searched, strict=True):
            twice = word == "both" and any(query.expanded for query in queries)
            words: tuple[Searching, ...] = ("original", "expanded") if twice else (word,)
            for form in words:
                yield part, weight / len(words), [_asked(query, form) for query in queries]


def _is_bare(stage: Stage) -> bool:
    """Return True if a fusion prints without parentheses. Inside another fusion it needs them."""
    return isinstance(stage, Fusion) and len(stage.parts) > 1 and not stage.changed


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
