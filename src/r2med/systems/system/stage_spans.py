"""Describe expansions and rerankings in the spans of a trace."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

from r2med.data.dataset import Dataset
from r2med.data.runs.run import Run
from r2med.foundation.core.cost import stated_or_measured
from r2med.foundation.engine.tracing import Attributes, Span, TraceFile, queries_within, span
from r2med.foundation.store import Store
from r2med.systems.expand.expansion import Expander, Expansion
from r2med.systems.expand.recorded import Recorded
from r2med.systems.rerank.reranking import Reranked, Reranker
from r2med.systems.retrieve.ranking_spans import add_documents, listed_run, query_parts, stage_kind
from r2med.systems.retrieve.retriever import SearchQuery


def traced_expand(expander: Expander, dataset: Dataset, store: Store, file: TraceFile | None) -> Expansion:
    """Expand the queries of a dataset, inside a span."""
    with span(expander.name, "CHAIN", file) as trace:
        started = time.perf_counter()
        expansion = expander.expand(dataset, store.about(dataset.label))
        if not isinstance(expander, Recorded):  # what its texts cost is not known here
            expansion = replace(expansion, cost=stated_or_measured(expansion.cost, started))
        if trace is not None:
            _add_expansion(trace, expansion)
    return expansion


def _add_expansion(trace: Span, expansion: Expansion) -> None:
    """Add what is known of an expansion to its span."""
    trace.set({"r2med.failures": expansion.failures})
    if len(expansion.queries) == 1:
        [query] = expansion.queries
        trace.set_content({"input.value": query.query.text, "output.value": "\n\n".join(query.generated)})


def traced_rerank(
    reranker: Reranker, dataset: Dataset, queries: Sequence[SearchQuery], run: Run, store: Store
) -> Reranked:
    """Rerank, inside a span that has the documents before and after."""
    with span(reranker.name, stage_kind("RERANKER", queries)) as trace:
        parts = query_parts(trace, "RERANKER", queries)
        with queries_within(parts):  # the calls of an LLM about a query are in the span of that query
            started = time.perf_counter()
            try:
                reranked = reranker.rerank(dataset, queries, run, store)
            except BaseException as error:
                for part in parts.values():
                    part.fail(type(error).__name__, str(error))
                    part.end()
                raise
        if trace is not None:
            facts: Attributes = {"reranker.model_name": reranker.name, "reranker.top_k": reranker.depth}
            runs = {"reranker.input_documents": run, "reranker.output_documents": reranked.run}
            rankings = {attribute: listed_run(each, dataset.corpus) for attribute, each in runs.items()}
            add_documents(trace, "RERANKER", queries, rankings, "reranker.query", facts, parts)
    return replace(reranked, cost=stated_or_measured(reranked.cost, started))
