"""The conversations of search agents in a trace, with the attribute names of OpenInference."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from r2med.data import Query
from r2med.foundation.engine.tracing import Span, item_spans, queries_within, query_span
from r2med.models.llm.chat import Failure
from r2med.systems.agents.conversation import Answered, Chosen, Conversation


@contextmanager
def conversation_spans(name: str, queries: Sequence[Query]) -> Iterator[Mapping[str, Span]]:
    """Yield query id -> the span of its conversation, in which the calls and searches of the agent are."""
    owners = {query.id: owner for query in queries if (owner := query_span(query.id))}
    items = {query.id: {"agent.name": name, "r2med.query.id": query.id} for query in queries}
    with item_spans(name, "AGENT", items, None, owners) as spans, queries_within(spans):
        yield spans


def add_conversation(span: Span, query: Query, conversation: Conversation) -> None:
    """Add what became of a finished conversation to its span."""
    span.set_content({"input.value": query.text})
    if isinstance(conversation.state, Failure):
        span.fail(conversation.state.kind, conversation.state.message)
    elif isinstance(conversation.state, Answered):
        span.set_content({"output.value": conversation.state.text})
    elif isinstance(conversation.state, Chosen):
        ids = json.dumps(conversation.state.ids, ensure_ascii=False)
        span.set({"output.value": ids, "output.mime_type": "application/json"})
