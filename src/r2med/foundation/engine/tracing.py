"""Traces: spans of the work on questions, written as OTLP JSON with the attribute names of OpenInference.

A span is written when it ends, as one line of the file. So a killed run leaves a file that can be read. Its open spans
are missing. Each line is an ExportTraceServiceRequest, which is the format of the OpenTelemetry Collector's files.
Without a file of traces, `span` does nothing and yields None.
"""

from __future__ import annotations

import json
import math
import os
import secrets
import stat
import time
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, TypeVar

from r2med.foundation.core.errors import UserError
from r2med.foundation.core.notices import Setting
from r2med.foundation.core.version import __version__

SpanKind = Literal["CHAIN", "AGENT", "LLM", "RETRIEVER", "RERANKER", "EMBEDDING", "EVALUATOR"]
"""Kinds of OpenInference that occur here."""
Attributes = Mapping[str, str | bool | int | float]
Key = TypeVar("Key")

_INTERNAL, _ERROR = 1, 2
"""The kind of all spans, and the status of failed ones, in the numbers of OTLP."""


class TraceFile:
    """A file to which spans are appended. Threads and processes may share it, because each line is one write.

    Texts of questions, documents and LLMs are written only if `content` is True.
    """

    def __init__(self, path: Path, content: bool = False) -> None:
        self.content = content
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
            if content and stat.S_ISREG(os.fstat(self._file).st_mode):  # an earlier trace may be open to others
                os.fchmod(self._file, 0o600)
        except OSError as error:
            reason = error.strerror or str(error)
            raise UserError(Setting("Setup", trace=str(path)), f": the file cannot be written ({reason})") from None
        size = os.fstat(self._file).st_size
        if size and os.pread(self._file, 1, size - 1) != b"\n":  # a full disk cut the last line
            os.write(self._file, b"\n")

    def write(self, span: Mapping[str, Any]) -> None:
        """Append one span."""
        scope = {"scope": {"name": "r2med", "version": __version__}, "spans": [span]}
        line = {"resourceSpans": [{"resource": {"attributes": _RESOURCE}, "scopeSpans": [scope]}]}
        text = json.dumps(line, ensure_ascii=False, separators=(",", ":"), allow_nan=False) + "\n"
        content = text.encode("utf-8", "backslashreplace")  # half a surrogate pair becomes an escape of JSON
        if (written := os.write(self._file, content)) < len(content):
            self._finish(content, written)

    def _finish(self, content: bytes, written: int) -> None:
        """Write the rest of a line that the disk did not take at once. If it is full, the broken line is removed."""
        end = os.lseek(self._file, 0, os.SEEK_CUR)
        try:
            os.write(self._file, content[written:])
        except OSError:
            if os.fstat(self._file).st_size == end:  # no other process has written since
                os.ftruncate(self._file, end - written)
            raise

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)


class Span:
    """A piece of work that has started. Attributes are added until it ends."""

    def __init__(self, file: TraceFile, name: str, kind: SpanKind, parent: Span | None = None) -> None:
        self.kind = kind
        self.has_content = file.content
        self.file = file
        self.trace_id: str = parent.trace_id if parent else secrets.token_hex(16)
        self.id = secrets.token_hex(8)
        self._parent = parent
        self._parts: list[tuple[int, int]] = []  # start and end of each finished part; threads append to it
        self.name = name
        self._attributes: dict[str, str | bool | int | float] = {}
        self._status: dict[str, Any] = {}
        self.started = time.time_ns()

    def set(self, attributes: Attributes) -> None:
        """Add attributes that contain no text of a question, a document or an LLM."""
        self._attributes.update(attributes)

    def set_content(self, attributes: Attributes) -> None:
        """Add attributes with such texts, if the user asked for them."""
        if self.has_content:
            self._attributes.update(attributes)

    def fail(self, kind: str, message: str = "") -> None:
        """Mark the work as failed. The message may quote a text, so it is content."""
        self._status = {"code": _ERROR, "message": f"{kind}: {message}" if message and self.has_content else kind}

    def part(self, kind: SpanKind, parent: Span | None = None) -> Span:
        """Return a span of one item of this work, with the same name and the same beginning.

        It is a part of this span, or of another parent.
        """
        part = Span(self.file, self.name, kind, parent or self)
        part.started = self.started
        return part

    @property
    def first(self) -> int:
        """The time at which the first finished part started; this span's own start if it has no parts."""
        return min((start for start, _ in self._parts), default=self.started)

    def end_with_parts(self) -> None:
        """Write the span with the times of its parts. Without parts it is written only if it failed."""
        if self._parts:
            self.started = self.first
            self.end(max(end for _, end in self._parts))
        elif self._status:
            self.end()

    def end(self, at: int | None = None) -> None:
        """Write the span, with the time in nanoseconds at which its work ended. Default: now."""
        ended = at or time.time_ns()
        if self._parent:
            self._parent._parts.append((self.started, ended))
        attributes = {"openinference.span.kind": self.kind, **self._attributes}
        written = {
            "traceId": self.trace_id,
            "spanId": self.id,
            "parentSpanId": self._parent.id if self._parent else "",
            "name": self.name,
            "kind": _INTERNAL,
            "startTimeUnixNano": str(self.started),
            "endTimeUnixNano": str(ended),
            "attributes": [{"key": key, "value": _value(value)} for key, value in attributes.items()],
            "status": self._status,
        }
        self.file.write(written)


@dataclass(frozen=True)
class Place:
    """Where in a trace the work of a block belongs."""

    span: Span | None = None
    """The span around the block."""
    queries: Mapping[str, Span] = field(default_factory=dict)
    """Query id -> the span of the work on this query, where a stage works on many queries together."""
    calls: Mapping[Hashable, Sequence[Span]] = field(default_factory=dict)
    """Request to an LLM -> the spans that the call belongs to."""


_place: ContextVar[Place] = ContextVar("r2med_place", default=Place())  # noqa: B039 - it is never changed


@contextmanager
def _at(**changes: Any) -> Iterator[None]:
    token = _place.set(replace(_place.get(), **changes))
    try:
        yield
    finally:
        _place.reset(token)


def current_span() -> Span | None:
    """Return the span around this code; None without one."""
    return _place.get().span


@contextmanager
def span(name: str, kind: SpanKind = "CHAIN", file: TraceFile | None = None) -> Iterator[Span | None]:
    """Yield the span of the work inside the block, as a part of the span around it. Yield None if nothing is traced.

    Without a span around it, it starts a new trace in `file`.
    """
    parent = current_span()
    file = parent.file if parent else file
    if file is None:
        yield None
        return
    opened = Span(file, name, kind, parent)
    try:
        with _at(span=opened):
            yield opened
    except BaseException as error:
        opened.fail(type(error).__name__, str(error))
        raise
    finally:
        opened.end()


@contextmanager
def item_spans(
    name: str,
    kind: SpanKind,
    items: Mapping[Key, Attributes],
    file: TraceFile | None,
    parents: Mapping[Key, Span] | None = None,
) -> Iterator[dict[Key, Span]]:
    """Yield the spans of items that are worked on together, by their keys. Yield nothing if nothing is traced.

    `items` are the attributes of each item. An item's span is a part of its parent, or else of the span around this
    code, or else a trace of its own. It lasts from the start of its first part to the end of its last part.
    """
    spans = open_spans(name, kind, items, file, parents)
    try:
        yield spans
    except BaseException as error:
        for each in spans.values():
            each.fail(type(error).__name__, str(error))
        raise
    finally:
        end_spans(spans.values())


def open_spans(
    name: str,
    kind: SpanKind,
    items: Mapping[Key, Attributes],
    file: TraceFile | None,
    parents: Mapping[Key, Span] | None = None,
) -> dict[Key, Span]:
    """Return the spans of `item_spans`, for a caller that ends them with `end_spans`."""
    around = current_span()
    spans: dict[Key, Span] = {}
    for key, attributes in items.items():
        parent = (parents or {}).get(key) or around
        if to := parent.file if parent else file:
            spans[key] = Span(to, name, kind, parent)
            spans[key].set(attributes)
    return spans


def end_spans(spans: Iterable[Span]) -> None:
    """Write the spans of items, each with the times of its parts."""
    for each in spans:
        each.end_with_parts()


def query_span(query: str) -> Span | None:
    """Return the span that the work on a query is a part of; None if it is a part of the stage's span."""
    return _place.get().queries.get(query)


@contextmanager
def queries_within(spans: Mapping[str, Span]) -> Iterator[None]:
    """Make the work on each query a part of its own span: query id -> span. Stages work on many queries together."""
    with _at(queries={**_place.get().queries, **spans}):
        yield


@contextmanager
def calls_within(owners: Iterable[tuple[Hashable, Span | None]]) -> Iterator[None]:
    """Make the calls for these requests parts of these spans. Other calls are parts of the span around the code."""
    spans: dict[Hashable, list[Span]] = {}
    for request, owner in owners:
        if owner is not None:
            spans.setdefault(request, []).append(owner)
    with _at(calls=spans):
        yield


def call_owners() -> Mapping[Hashable, Sequence[Span]]:
    """Return the spans that calls belong to, by their requests. Answers may arrive in threads: take it before."""
    return _place.get().calls


def _value(value: str | bool | int | float) -> dict[str, Any]:
    """Return a value in the form of OTLP JSON, in which integers are texts."""
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, float):
        return {"doubleValue": value if math.isfinite(value) else str(value)}
    return {"stringValue": value}


_RESOURCE = [
    {"key": key, "value": _value(value)}
    for key, value in {"service.name": "r2med", "service.version": __version__}.items()
]
