"""The rankings of a search or a reranker in a trace, with the attribute names of OpenInference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from r2med.data.corpus import Corpus
from r2med.data.runs.run import Run
from r2med.foundation.engine.tracing import Attributes, Span, SpanKind, query_span
from r2med.systems.retrieve.retriever import Retriever, SearchQuery

RETRIEVED = "retrieval.documents"
MAX_DOCUMENTS = 20
"""Number of documents of a ranking that a span lists. A run may have a thousand for each query."""
MAX_TEXT = 2000
"""Number of characters of a document's text in a span."""


def name_of(retriever: Retriever) -> str:
    """Return the name of a retriever as one types it. An object of a user may have none."""
    return str(getattr(retriever, "name", type(retriever).__name__))


def stage_kind(kind: SpanKind, queries: Sequence[SearchQuery]) -> SpanKind:
    """Return the kind of a stage's span. With several queries, each of them has a span of that kind of its own."""
    return kind if _is_one_span(queries) else "CHAIN"


def _is_one_span(queries: Sequence[SearchQuery]) -> bool:
    """Return True if the span of a stage is that of its only query."""
    return len(queries) == 1 and query_span(queries[0].query.id) is None


def query_parts(span: Span | None, kind: SpanKind, queries: Sequence[SearchQuery]) -> dict[str, Span]:
    """Return query id -> its span in a stage; empty if nothing is traced, or the stage's span is that of its query."""
    if span is None or _is_one_span(queries):
        return {}
    return {each.query.id: span.part(kind, query_span(each.query.id)) for each in queries}


def add_rankings(
    span: Span,
    kind: SpanKind,
    queries: Sequence[SearchQuery],
    rankings: Mapping[str, Run],
    corpus: Corpus,
    query_attribute: str = "input.value",
    facts: Attributes | None = None,
    parts: Mapping[str, Span] | None = None,
) -> None:
    """Add the rankings of each query to a span of `stage_kind`.

    `rankings` are attribute -> run. `facts` are attributes of each query. `parts` are those of `query_parts`, if they
    were opened before. Several queries are worked on together, so the spans of all of them have the times of the
    whole stage.
    """
    best = {attribute: _by_query(run) for attribute, run in rankings.items()}
    parts = query_parts(span, kind, queries) if parts is None else parts
    for number, query in enumerate(queries):
        part = parts.get(query.query.id, span)
        part.set({"r2med.query.id": query.query.id, **(facts or {})})
        part.set_content({query_attribute: query.query.text})
        for attribute, ranked in best.items():
            for place, (row, identifier, score) in enumerate(ranked[number]):
                prefix = f"{attribute}.{place}.document"
                part.set({f"{prefix}.id": identifier, f"{prefix}.score": score})
                if part.has_content:
                    part.set({f"{prefix}.content": corpus.text(row)[:MAX_TEXT]})
        if part is not span:
            part.end()


def _by_query(run: Run) -> list[list[tuple[int, str, float]]]:
    """Return (row, id, score) of the best documents of each query."""
    best = []
    for rows, scores, count in zip(run.rows, run.scores, run.found, strict=True):
        rows = rows[: min(MAX_DOCUMENTS, count)]
        best.append(list(zip(rows.tolist(), run.documents.ids(rows), scores[: len(rows)].tolist(), strict=True)))
    return best
