"""Describe expansions and rerankings in the spans of a trace."""

from __future__ import annotations

from collections.abc import Sequence

from r2med.data.dataset import Dataset
from r2med.engine.tracing import Attributes, Span, span
from r2med.expand.expansion import Expansion
from r2med.rerank.reranking import Reranked, Reranker
from r2med.retrieve.ranking_spans import add_rankings, stage_kind
from r2med.retrieve.retriever import SearchQuery
from r2med.retrieve.run import Run
from r2med.store import Store


def add_expansion(trace: Span, expansion: Expansion, name: str) -> None:
    """Add what is known of an expansion to its span."""
    if expansion.traces:  # only search agents have them
        trace.kind = "AGENT"
        trace.set({"agent.name": name})
    trace.set({"r2med.failures": expansion.failures})
    if len(expansion.queries) == 1:
        [query] = expansion.queries
        trace.set_content({"input.value": query.query.text, "output.value": "\n\n".join(query.generated)})


def traced_rerank(
    reranker: Reranker, dataset: Dataset, queries: Sequence[SearchQuery], run: Run, store: Store
) -> Reranked:
    """Rerank, inside a span that has the documents before and after."""
    with span(reranker.name, stage_kind("RERANKER", queries)) as trace:
        reranked = reranker.rerank(dataset, queries, run, store)
        if trace is not None:
            facts: Attributes = {"reranker.model_name": reranker.name, "reranker.top_k": reranker.depth}
            rankings = {"reranker.input_documents": run, "reranker.output_documents": reranked.run}
            add_rankings(trace, "RERANKER", queries, rankings, dataset.corpus, "reranker.query", facts)
    return reranked
