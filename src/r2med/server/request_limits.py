"""The limits of requests and connections, and the error of a request that is not served.

Apart from the protocol, so that the command line reads the defaults without importing what serves them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

from r2med.core.errors import UserError

GRACE = 5
"""Seconds that a running search has to finish after a stop; its clients then get 503."""

DEADLINE = 120.0
"""Seconds after which an answer is given up: some LLMs think for a minute before they write."""


@dataclass(frozen=True)
class Limits:
    """Upper bounds, each at least 1, so that no client can exhaust the server's memory, time or files."""

    body: int = 1 << 20
    """Bytes of a request; 512 queries of an agent in training are some 50 kB."""
    queries: int = 1024
    """Queries of a request."""
    characters: int = 20_000
    """Characters of a query."""
    topk: int = 1000
    """Documents of a query."""
    documents: int = 10_000
    """Documents of a whole answer, queries × topk: an answer is held in memory, and texts may be long."""
    waiting: int = 256
    """Requests that wait for the search at a time; one more gets 503."""
    batch: int = 64
    """Queries of waiting requests that are searched together; 1 searches every request by itself."""
    answers: int = 16
    """Questions that are answered at a time by POST /search; one more gets 503."""
    seconds: int = 30
    """Seconds that a client has to send the head of a request, then its body, then to read on in the answer."""
    connections: int = 1024
    """Open connections; beyond it, the one that has kept the server waiting longest is closed."""

    def __post_init__(self) -> None:
        for field in fields(self):
            if (value := getattr(self, field.name)) < 1:
                raise UserError(f"the limit of {field.name} must be at least 1, not {value}")


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
