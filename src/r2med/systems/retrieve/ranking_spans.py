"""The rankings of a search or a reranker in a trace, with the attribute names of OpenInference."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from r2med.data.corpus import Corpus
from r2med.data.runs.run import Run
from r2med.foundation.engine.tracing import Attributes, Span, SpanKind, TraceFile, query_span, span
from r2med.models.llm.chat import Failure
from r2med.systems.retrieve.retriever import Retriever, SearchQuery

Result = TypeVar("Result")

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


@dataclass(frozen=True)
class ListedDocument:
    """A document of a ranking, as a span lists it."""

    id: str
    score: float
    text: Callable[[], str]


Listed = Sequence[ListedDocument]


def traced_search(
    name: str,
    queries: Sequence[SearchQuery],
    search: Callable[[], Result],
    listed: Callable[[Result], Sequence[Listed | Failure]],
    file: TraceFile | None = None,
) -> Result:
    """Search inside a span. `listed` returns the documents of each query, or why there are none."""
    with span(name, stage_kind("RETRIEVER", queries), file) as trace:
        found = search()
        if trace is not None:
            add_documents(trace, "RETRIEVER", queries, {RETRIEVED: listed(found)})
    return found


def add_documents(
    span: Span,
    kind: SpanKind,
    queries: Sequence[SearchQuery],
    rankings: Mapping[str, Sequence[Listed | Failure]],
    query_attribute: str = "input.value",
    facts: Attributes | None = None,
    parts: Mapping[str, Span] | None = None,
) -> None:
    """Add the rankings of each query to a span of `stage_kind`.

    `rankings` are attribute -> documents of each query, or a failure. `facts` are attributes of each query. `parts` are
    those of `query_parts`, if they were opened before. Several queries are worked on together, so the spans of all of
    them have the times of the whole stage.
    """
    parts = query_parts(span, kind, queries) if parts is None else parts
    for number, query in enumerate(queries):
        part = parts.get(query.query.id, span)
        part.set({"r2med.query.id": query.query.id, **(facts or {})})
        part.set_content({query_attribute: query.query.text})
        for attribute, ranking in rankings.items():
            found = ranking[number]
            if isinstance(found, Failure):
                part.fail(found.kind, found.message)
                continue
            for place, document in enumerate(found[:MAX_DOCUMENTS]):
                prefix = f"{attribute}.{place}.document"
                part.set({f"{prefix}.id": document.id, f"{prefix}.score": document.score})
                if part.has_content:
                    part.set({f"{prefix}.content": document.text()[:MAX_TEXT]})
        if part is not span:
            part.end()


def listed_run(run: Run, corpus: Corpus) -> list[Listed]:
    """Return the best documents of each query of a run."""
    return [
        [ListedDocument(identifier, score, partial(corpus.text, row)) for row, identifier, score in ranked]
        for ranked in _by_query(run)
    ]


def _by_query(run: Run) -> list[list[tuple[int, str, float]]]:
    """Return (row, id, score) of the best documents of each query."""
    best = []
    for rows, scores, count in zip(run.rows, run.scores, run.found, strict=True):
        rows = rows[: min(MAX_DOCUMENTS, count)]
        best.append(list(zip(rows.tolist(), run.documents.ids(rows), scores[: len(rows)].tolist(), strict=True)))
    return best
