"""Expand and rerank as activities. A stage that states no cost is timed, so that it never looks free."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import replace

from r2med.data.dataset import Dataset
from r2med.data.runs.run import Run
from r2med.foundation.core.activities import Activity, ActivityResult, DocumentsRanked, doing, happened
from r2med.foundation.core.cost import stated_or_measured
from r2med.foundation.store import Store
from r2med.systems.expand.expansion import Expander, Expansion
from r2med.systems.expand.recorded import Recorded
from r2med.systems.rerank.reranking import Reranked, Reranker
from r2med.systems.retrieve.retriever import SearchQuery
from r2med.systems.retrieve.search_activity import listed_run, ranking


def timed_expand(expander: Expander, dataset: Dataset, store: Store) -> Expansion:
    """Expand the queries of a dataset."""
    with doing(lambda: Activity(expander.name, text=_only(query.text for query in dataset.queries) or "")):
        started = time.perf_counter()
        expansion = expander.expand(dataset, store.about(dataset.label))
        if not isinstance(expander, Recorded):  # what its texts cost is not known here
            expansion = replace(expansion, cost=stated_or_measured(expansion.cost, started))
        texts = ("\n\n".join(query.generated) for query in expansion.queries)
        happened(lambda: ActivityResult(facts={"failures": expansion.failures}, text=_only(texts)))
    return expansion


def _only(texts: Iterable[str]) -> str | None:
    """Return the only text; None if there are several."""
    given = list(texts)
    return given[0] if len(given) == 1 else None


def timed_rerank(
    reranker: Reranker, dataset: Dataset, queries: Sequence[SearchQuery], run: Run, store: Store
) -> Reranked:
    """Rerank the documents of a run."""
    with ranking(reranker.name, queries, "RERANKER", reranker.depth):
        started = time.perf_counter()
        reranked = reranker.rerank(dataset, queries, run, store)
        reranked = replace(reranked, cost=stated_or_measured(reranked.cost, started))
        happened(lambda: DocumentsRanked(*(listed_run(each, dataset.corpus) for each in (reranked.run, run))))
    return reranked
