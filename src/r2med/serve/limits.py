"""What a request may ask for, so that none can exhaust the server's memory or time."""

from __future__ import annotations

from dataclasses import dataclass, fields

from r2med.errors import UserError


@dataclass(frozen=True)
class Limits:
    """Upper bounds, each at least 1."""

    body: int = 1 << 20
    """Bytes of a request; 512 queries of an agent in training are some 50 kB."""
    queries: int = 1024
    """Queries of a request."""
    characters: int = 20_000
    """Characters of a query."""
    topk: int = 1000
    """Documents for a query."""
    documents: int = 10_000
    """Documents of a whole answer, queries × topk: an answer is held in memory, and texts may be long."""
    waiting: int = 256
    """Requests that wait for the search at a time; one more is told to come back."""
    batch: int = 64
    """Queries of waiting requests that are searched together; 1 searches every request by itself."""
    seconds: int = 30
    """Time that a client has to send its request."""

    def __post_init__(self) -> None:
        for field in fields(self):
            if (value := getattr(self, field.name)) < 1:
                raise UserError(f"the limit of {field.name} must be at least 1, not {value}")


GRACE = 5
"""Seconds that a running search has to finish after a stop; whoever waits for it is then sent away."""
TOPK = 3
"""Documents for a query that says nothing: what Search-R1 asks for."""
