"""Requests that are not served: a status and one line that says why."""

from __future__ import annotations

from collections.abc import Mapping


class Refused(Exception):  # noqa: N818 - an answer like any other, not an error of ours
    """What the client is told instead of a result."""

    def __init__(self, status: int, line: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(line)
        self.status = status
        self.line = " ".join(line.split())
        self.headers = dict(headers or {})


def busy(line: str, seconds: int = 1) -> Refused:
    """Return a refusal of a request that would be welcome later."""
    return Refused(503, line, {"Retry-After": str(seconds)})
