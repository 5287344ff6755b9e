"""Expand and rerank. A stage that states no cost is timed, so that it never looks free."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

from r2med.data.dataset import Dataset
from r2med.data.runs.run import Run
from r2med.foundation.core.cost import stated_or_measured
from r2med.foundation.store import Store
from r2med.systems.expand.expansion import Expander, Expansion
from r2med.systems.expand.recorded import Recorded
from r2med.systems.rerank.reranking import Reranked, Reranker
from r2med.systems.retrieve.retriever import SearchQuery


def timed_expand(expander: Expander, dataset: Dataset, store: Store) -> Expansion:
    """Expand the queries of a dataset."""
    started = time.perf_counter()
    expansion = expander.expand(dataset, store.about(dataset.label))
    if isinstance(expander, Recorded):  # what its texts cost is not known here
        return expansion
    return replace(expansion, cost=stated_or_measured(expansion.cost, started))


def timed_rerank(
    reranker: Reranker, dataset: Dataset, queries: Sequence[SearchQuery], run: Run, store: Store
) -> Reranked:
    """Rerank the documents of a run."""
    started = time.perf_counter()
    reranked = reranker.rerank(dataset, queries, run, store)
    return replace(reranked, cost=stated_or_measured(reranked.cost, started))
