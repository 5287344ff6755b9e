"""The limits of a server: one table of settings, from Python or from a TOML file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from r2med.core.cards import read_toml, validated
from r2med.core.errors import UserError

Positive = Annotated[int, Field(ge=1)]


class Limits(BaseModel):
    """Upper bounds, so that no client can exhaust the server's memory, time or files."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    body: Positive = 1 << 20
    """Bytes of a request; 512 queries of an agent in training are some 50 kB."""
    queries: Positive = 1024
    """Queries of a request."""
    characters: Positive = 20_000
    """Characters of a query."""
    topk: Positive = 1000
    """Documents of a query."""
    documents: Positive = 10_000
    """Documents of a whole answer, queries × topk: an answer is held in memory, and texts may be long."""
    waiting: Positive = 256
    """Requests that wait for the search at a time; one more gets 503."""
    batch: Positive = 64
    """Queries of waiting requests that are searched together; 1 searches every request by itself."""
    answers: Positive = 16
    """Questions that are answered at a time by POST /search; one more gets 503."""
    seconds: Positive = 30
    """Seconds that a client has to send the head of a request, then its body, then to read on in the answer."""
    connections: Positive = 1024
    """Open connections; beyond it, the one that has kept the server waiting longest is closed."""
    grace: int = Field(5, ge=0)
    """Seconds that a running search has to finish after a stop; its clients then get 503."""


def read_limits(file: Path) -> Limits:
    """Return the limits of a TOML file; the others keep their defaults. Raises UserError that names the field."""
    try:
        return validated(Limits, read_toml(file, "file of limits"), file)
    except OSError as error:
        raise UserError(f"limits {file}: {error.strerror or error}") from None
