"""Stages that state no cost are timed, so that a plugin never looks free."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from r2med import Cost, Dataset, Run
from r2med.data.dataset import Query
from r2med.extend import Expansion, Reranked, Searched
from r2med.foundation.core.cost import NOTHING
from r2med.foundation.store import Store
from r2med.systems.retrieve.retriever import ForeignSearcher, SearchQuery
from r2med.systems.retrieve.stored_search import search_with
from r2med.systems.system.timed_stages import timed_expand, timed_rerank

DATA = Dataset.of({"1": "gout"}, {"a": "gout", "b": "flu"}, {"1": {"a": 1}}, name="mine")
QUERIES = [SearchQuery(Query("1", "gout"))]
RUN = Run.of({"1": {"a": 1.0, "b": 0.5}})


def stage(cost: Cost) -> Any:
    return SimpleNamespace(
        name="mine",
        depth=2,
        search=lambda queries, k: Searched(RUN, cost),
        rerank=lambda dataset, queries, run, store: Reranked(run, cost),
        expand=lambda dataset, store: Expansion.of(QUERIES, cost=cost),
    )


@pytest.mark.parametrize("kind", ["search", "rerank", "expand"])
def test_a_stage_without_a_stated_cost_is_timed_and_a_stated_cost_stays(kind: str, store: Store) -> None:
    def cost_of(stated: Cost) -> Cost:
        if kind == "search":
            return search_with(ForeignSearcher(stage(stated)), DATA.corpus, QUERIES, 2).cost
        if kind == "rerank":
            return timed_rerank(stage(stated), DATA, QUERIES, RUN, store).cost
        return timed_expand(stage(stated), DATA, store).cost

    assert cost_of(NOTHING).seconds > 0
    assert cost_of(Cost(dollars=2.0)) == Cost(dollars=2.0)
