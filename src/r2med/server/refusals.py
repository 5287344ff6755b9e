"""Requests that are not served: the error with its one line, and after how long an answer is given up."""

from __future__ import annotations

from collections.abc import Mapping

ANSWER_SECONDS = 120.0
"""Seconds after which an answer is given up: some LLMs think for a minute before they write."""


class HTTPError(Exception):
    """A request that is not served: its status, and one line that tells the client why."""

    def __init__(self, status: int, detail: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = " ".join(detail.split())
        self.headers = dict(headers or {})


def unavailable(detail: str) -> HTTPError:
    """Return the error of a request that the client may send again in a second."""
    return HTTPError(503, detail, {"Retry-After": "1"})
