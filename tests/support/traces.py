"""Traces as the OpenTelemetry SDK reads them."""

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.trace import SpanContext, Status, StatusCode


def read_spans(path: Path, kills: int = 0) -> list[ReadableSpan]:
    """Return the spans of a file as the OpenTelemetry SDK has them. Each kill may have cut one line."""
    spans, cut = [], 0
    for line in path.read_text(encoding="utf-8", errors="replace" if kills else "strict").split("\n"):
        try:
            spans += [_span(json.loads(line))] if line else []
        except json.JSONDecodeError:
            cut += 1
            assert cut <= kills, line
    return spans


def _span(line: dict[str, Any]) -> ReadableSpan:
    [resource] = line["resourceSpans"]
    [scope] = resource["scopeSpans"]
    [span] = scope["spans"]
    parent = _context(span["traceId"], span["parentSpanId"]) if span["parentSpanId"] else None
    return ReadableSpan(
        span["name"],
        _context(span["traceId"], span["spanId"]),
        parent,
        Resource(_attributes(resource["resource"]["attributes"])),
        _attributes(span["attributes"]),
        status=Status(StatusCode(span["status"].get("code", 0)), span["status"].get("message")),
        start_time=int(span["startTimeUnixNano"]),
        end_time=int(span["endTimeUnixNano"]),
    )


def _context(trace: str, span: str) -> SpanContext:
    context = SpanContext(int(trace, 16), int(span, 16), is_remote=False)
    assert context.is_valid and (len(trace), len(span)) == (32, 16)
    return context


def _attributes(listed: list[dict[str, Any]]) -> dict[str, Any]:
    read: dict[str, Callable[[Any], Any]] = {
        "stringValue": str, "intValue": int, "doubleValue": float, "boolValue": bool
    }  # fmt: skip
    return {each["key"]: read[kind](value) for each in listed for kind, value in each["value"].items()}


def kind_of(span: ReadableSpan) -> str:
    return str(span.attributes["openinference.span.kind"])


def tree(spans: list[ReadableSpan]) -> dict[str, list[str]]:
    """Return kind and name of each span that has parts -> those of its parts, in the order of their end."""
    found: dict[str, list[str]] = {}
    names = {each.context.span_id: f"{kind_of(each)} {each.name}" for each in spans}
    for each in spans:
        if each.parent is not None:
            found.setdefault(names[each.parent.span_id], []).append(names[each.context.span_id])
    return found


def traces(spans: Sequence[ReadableSpan]) -> list[list[ReadableSpan]]:
    """Return the spans of each trace. Each has one root, and the parent of every other span is in the same trace."""
    by_trace: dict[int, list[ReadableSpan]] = {}
    for each in spans:
        by_trace.setdefault(each.context.trace_id, []).append(each)
    for inside in by_trace.values():
        known = {each.context.span_id for each in inside}
        assert len([each for each in inside if each.parent is None]) == 1
        assert all(each.parent.span_id in known for each in inside if each.parent)
    return list(by_trace.values())


def root_of(trace: Sequence[ReadableSpan]) -> ReadableSpan:
    """Return the root of one trace."""
    [root] = [each for each in trace if each.parent is None]
    return root


def foreign_names(spans: Sequence[ReadableSpan]) -> set[str]:
    """Return the attribute names and kinds that are neither those of OpenInference nor begin with `r2med.`."""
    from openinference.semconv import trace as conventions

    classes = [value for value in vars(conventions).values() if isinstance(value, type)]
    known = {text for each in classes for text in vars(each).values() if isinstance(text, str)}
    kinds = {kind.value for kind in conventions.OpenInferenceSpanKindValues}
    written = {name for each in spans for name in each.attributes or {} if not name.startswith("r2med.")}
    parts = {part for name in written for part in re.split(r"\.\d+\.", name)}
    return (parts - known) | ({kind_of(each) for each in spans} - kinds)
