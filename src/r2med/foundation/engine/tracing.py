"""The listener that makes the spans of a trace from activities, with the attribute names of OpenInference."""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Any

from r2med.foundation.core.activities import (
    MAX_DOCUMENTS,
    Activity,
    ActivityBegan,
    ActivityEnded,
    ActivityEvent,
    ActivityResult,
    Apart,
    Belonging,
    DocumentsRanked,
    Facts,
    LLMCalled,
    Ranking,
    Together,
)
from r2med.foundation.core.events import listener_of, listening_to
from r2med.foundation.engine.trace_file import Span, TraceFile

MAX_TEXT = 2000
"""Number of characters of a document's text in a span."""


@dataclass(frozen=True)
class Place:
    """Where in a trace the work of a block belongs."""

    around: Span | None = None
    """The span that work is a part of, unless it is about a topic."""
    topics: Mapping[Hashable, tuple[Span, ...]] = field(default_factory=dict)
    """Query, item or request -> the spans that work on it is a part of."""
    own: Sequence[Span] = ()
    """The spans that end with the block."""
    parts: Sequence[Span] = ()
    """The spans of queries and items among them."""
    apart: bool = False
    """True if a span lasts from its first to its last part, and not as long as the block."""
    outer: Place | None = None


_place: ContextVar[Place] = ContextVar("r2med_place", default=Place())  # noqa: B039 - it is never changed


def tracing(file: TraceFile | None) -> AbstractContextManager[None]:
    """Write spans of what happens inside the block to a file. Inside another such block, or without a file: nothing."""
    if file is None or listener_of(ActivityEvent) is not None:
        return nullcontext()
    return listening_to(ActivityEvent, _SpanListener(file).hear)


class _SpanListener:
    """Begins spans, adds to them and ends them."""

    def __init__(self, file: TraceFile) -> None:
        self._file = file

    def hear(self, event: ActivityEvent) -> None:
        """Write what an event says."""
        place = _place.get()
        match event:
            case ActivityBegan(activity):
                _place.set(replace(self._inside(activity, place), outer=place))
            case ActivityEnded(error):
                _end(place, error)
                _place.set(place.outer or Place())
            case ActivityResult(topic):
                for span in place.own if topic is None else place.topics.get(topic, ()):
                    _add_result(span, event)
            case DocumentsRanked(rankings, candidates):
                for number, span in enumerate(place.parts):
                    if candidates:
                        _add_documents(span, "reranker.input_documents", candidates[number])
                    attribute = "reranker.output_documents" if candidates else "retrieval.documents"
                    _add_documents(span, attribute, rankings[number])
            case LLMCalled(request):
                # Equal requests about several topics are asked once. For the others, the answer was there already.
                for number, owner in enumerate(place.topics.get(request) or (place.around,)):
                    _write_call(Span(self._file, event.model, "LLM", owner), event, event.from_journal or number > 0)

    def _inside(self, activity: Activity | Together | Apart | Belonging, place: Place) -> Place:
        """Return the place inside a block, with its spans."""
        match activity:
            case Belonging(pairs):
                topics: dict[Hashable, tuple[Span, ...]] = {}
                for part, whole in pairs:
                    topics[part] = topics.get(part, ()) + place.topics.get(whole, ())
                return Place(place.around, {**place.topics, **{part: spans for part, spans in topics.items() if spans}})
            case Apart(parts):
                spans = [self._span(each, place) for each in parts]
                return Place(place.around, _with(place, parts, spans), spans, spans, apart=True)
            case Together(_, [Activity() as only]) if only.within not in place.topics:
                return self._inside(replace(only, topic=None), place)  # the span of a stage is that of its only query
            case Together(name, parts):
                stage = Span(self._file, name, "CHAIN", place.around)
                spans = [self._span(each, replace(place, around=stage)) for each in parts]
                return Place(stage, _with(place, parts, spans), [*spans, stage], spans)
            case Activity(outermost=True) if place.around:
                return Place(place.around, place.topics)
            case Activity():
                span = self._span(activity, place)
                return Place(span, _with(place, [activity], [span]), [span], [span])

    def _span(self, activity: Activity, place: Place) -> Span:
        """Return the span of an activity."""
        owner = next(iter(place.topics.get(activity.within, ())), place.around)
        span = Span(self._file, activity.name, activity.kind, owner)
        _add_facts(span, activity.facts)
        if activity.text:
            span.set_content({"reranker.query" if activity.kind == "RERANKER" else "input.value": activity.text})
        match activity.kind:
            case "AGENT":
                span.set({"agent.name": activity.name})
            case "RERANKER":
                span.set({"reranker.model_name": activity.name, "reranker.top_k": activity.depth})
            case "EMBEDDING":
                span.set({"embedding.model_name": activity.name})
                for number, text in enumerate(activity.texts[:MAX_DOCUMENTS]):
                    span.set_content({f"embedding.embeddings.{number}.embedding.text": text})
        return span


def _with(place: Place, parts: Sequence[Activity], spans: Sequence[Span]) -> dict[Hashable, tuple[Span, ...]]:
    """Return the topics of a place and those of activities inside it."""
    own = {each.topic: (span,) for each, span in zip(parts, spans, strict=True) if each.topic is not None}
    return {**place.topics, **own}


def _end(place: Place, error: BaseException | None) -> None:
    """Write the spans of a block."""
    for span in place.own:
        if error is not None:
            span.fail(type(error).__name__, str(error))
        if place.apart:
            span.end_with_parts()
        else:
            span.end()


def _add_facts(span: Span, facts: Facts) -> None:
    span.set({f"r2med.{name}": fact for name, fact in facts.items()})


def _add_result(span: Span, result: ActivityResult) -> None:
    _add_facts(span, result.facts)
    if isinstance(result.failure, str):
        span.fail(result.failure)
    elif result.failure is not None:
        span.fail(result.failure.kind, result.failure.message)
    if result.text is not None:
        span.set_content({"output.value": result.text})
    if result.label:
        span.set({"output.value": result.label})
    if result.ids is not None:
        ids = json.dumps(list(result.ids), ensure_ascii=False)
        span.set({"output.value": ids, "output.mime_type": "application/json"})


def _add_documents(span: Span, attribute: str, ranking: Ranking) -> None:
    if not isinstance(ranking, Sequence):
        span.fail(ranking.kind, ranking.message)
        return
    for place, document in enumerate(ranking[:MAX_DOCUMENTS]):
        prefix = f"{attribute}.{place}.document"
        span.set({f"{prefix}.id": document.id})
        if document.score is not None:
            span.set({f"{prefix}.score": document.score})
        if span.has_content:
            span.set_content({f"{prefix}.content": document.text()[:MAX_TEXT]})


def _write_call(span: Span, call: LLMCalled, from_journal: bool) -> None:
    ended = span.started
    span.started -= 0 if from_journal else int(call.usage["seconds"] * 1e9)
    prompt, completion = call.usage["prompt_tokens"], call.usage["completion_tokens"]
    span.set(
        {
            "llm.model_name": call.model,
            "llm.invocation_parameters": json.dumps(call.settings),
            "llm.token_count.prompt": prompt,
            "llm.token_count.completion": completion,
            "llm.token_count.total": prompt + completion,
            "r2med.from_journal": from_journal,
        }
    )
    if isinstance(call.answer, Mapping):
        span.set({"llm.finish_reason": call.finish_reason})
    else:
        span.fail(call.answer.kind, call.answer.message)
    if span.has_content:
        span.set_content(dict(_texts(call)))
    span.end(ended)


def _texts(call: LLMCalled) -> Iterator[tuple[str, str]]:
    """Yield the texts of a call, by their attributes."""
    if (prompt := call.question.get("prompt")) is not None:
        yield from {"input.value": prompt, "llm.prompts.0.prompt.text": prompt}.items()
    for number, message in enumerate(call.question.get("messages", ())):
        yield "input.value", message["content"] or ""  # the last one stays
        yield from _message(f"llm.input_messages.{number}.message", message)
    for number, tool in enumerate(call.question.get("tools", ())):
        yield f"llm.tools.{number}.tool.json_schema", json.dumps(tool["function"], ensure_ascii=False)
    if isinstance(call.answer, Mapping):
        yield "output.value", (said := call.answer["content"] or "")
        if prompt is not None:
            yield "llm.choices.0.completion.text", said
        else:
            yield from _message("llm.output_messages.0.message", call.answer)


def _message(prefix: str, message: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    yield f"{prefix}.role", message["role"]
    yield f"{prefix}.content", message["content"] or ""
    if "tool_call_id" in message:
        yield f"{prefix}.tool_call_id", message["tool_call_id"]
    for number, call in enumerate(message.get("tool_calls", ())):
        of_call = f"{prefix}.tool_calls.{number}.tool_call"
        yield f"{of_call}.id", call["id"]
        yield from ((f"{of_call}.function.{name}", text) for name, text in call["function"].items())
