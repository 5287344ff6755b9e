"""Errors for requests that are not served."""

from __future__ import annotations

from collections.abc import Mapping


class HTTPError(Exception):
    """A request that is not served, with its HTTP status and one line with the reason for the client."""

    def __init__(self, status: int, detail: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = " ".join(detail.split())
        self.headers = dict(headers or {})


def unavailable(detail: str) -> HTTPError:
    """Return the error for a request that the client may send again in a second."""
    return HTTPError(503, detail, {"Retry-After": "1"})
