"""Stages that state no cost are timed, so that a plugin never looks free."""

from __future__ import annotations

from typing import Any

import pytest

from r2med import Cost, Dataset, Run, System
from r2med.data.dataset import Query
from r2med.extend import Expansion, Reranked, Searched, Stage, depth_field
from r2med.foundation.core.cost import NOTHING
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.store import Store
from r2med.systems.retrieve.bm25 import BM25
from r2med.systems.retrieve.retriever import SearchQuery

DATA = Dataset.of({"1": "gout"}, {"a": "gout", "b": "flu"}, {"1": {"a": 1}}, name="mine")
QUERIES = [SearchQuery(Query("1", "gout"))]


class Stating(Stage):
    """A stage that states a cost."""

    name: str = "mine"
    cost: Any = NOTHING


class Searching(Stating, kind="retrieve"):
    def search(self, dataset: Any, queries: Any, k: int, runtime: Any) -> Searched:
        return Searched(Run.of({"1": {"a": 1.0, "b": 0.5}}), self.cost)


class Reranking(Stating, kind="rerank"):
    depth: int = depth_field(2)

    def rerank(self, dataset: Any, queries: Any, run: Any, runtime: Any) -> Reranked:
        return Reranked(run, self.cost)


class Expanding(Stating, kind="expand"):
    def expand(self, dataset: Any, runtime: Any) -> Expansion:
        return Expansion.of(QUERIES, cost=self.cost)


@pytest.mark.parametrize("kind", ["search", "rerank", "expand"])
def test_a_stage_without_a_stated_cost_is_timed_and_a_stated_cost_stays(kind: str, store: Store) -> None:
    def cost_of(stated: Cost) -> Cost:
        runtime = Runtime(store=store)
        if kind == "search":
            return System(Searching(cost=stated), runtime=runtime).run(DATA, 2).searched.cost
        if kind == "rerank":
            return System(BM25(), rerankers=(Reranking(cost=stated),), runtime=runtime).run(DATA, 2).reranked[0].cost
        return System(BM25(), Expanding(cost=stated), runtime=runtime).run(DATA, 2).expansion.cost

    assert cost_of(NOTHING).seconds > 0
    assert cost_of(Cost(dollars=2.0)) == Cost(dollars=2.0)
