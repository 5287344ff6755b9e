"""Spans of a trace and their file, as OTLP JSON.

A span is written when it ends, as one line of the file. So a killed run leaves a file that can be read. Its open spans
are missing, and a kill during a write may cut the last line. Each line is an ExportTraceServiceRequest, which is the
format of the OpenTelemetry Collector's files.
"""

from __future__ import annotations

import json
import math
import os
import secrets
import stat
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from r2med.foundation.core.errors import UserError
from r2med.foundation.core.notices import Setting
from r2med.foundation.core.version import __version__

Attributes = Mapping[str, str | bool | int | float]

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
        if size and os.pread(self._file, 1, size - 1) != b"\n":  # a kill or a full disk cut the last line
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

    def __init__(self, file: TraceFile, name: str, kind: str, parent: Span | None = None) -> None:
        self.has_content = file.content
        self._file = file
        self._kind = kind
        self._trace_id: str = parent._trace_id if parent else secrets.token_hex(16)
        self._id = secrets.token_hex(8)
        self._parent = parent
        self._parts: list[tuple[int, int]] = []  # start and end of each finished part; threads append to it
        self._name = name
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

    def end_with_parts(self) -> None:
        """Write the span with the times of its parts. Without parts it is written only if it failed."""
        if self._parts:
            self.started = min(start for start, _ in self._parts)
            self.end(max(end for _, end in self._parts))
        elif self._status:
            self.end()

    def end(self, at: int | None = None) -> None:
        """Write the span, with the time in nanoseconds at which its work ended. Default: now."""
        ended = at or time.time_ns()
        if self._parent:
            self._parent._parts.append((self.started, ended))
        attributes = {"openinference.span.kind": self._kind, **self._attributes}
        written = {
            "traceId": self._trace_id,
            "spanId": self._id,
            "parentSpanId": self._parent._id if self._parent else "",
            "name": self._name,
            "kind": _INTERNAL,
            "startTimeUnixNano": str(self.started),
            "endTimeUnixNano": str(ended),
            "attributes": [{"key": key, "value": _value(value)} for key, value in attributes.items()],
            "status": self._status,
        }
        self._file.write(written)


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
