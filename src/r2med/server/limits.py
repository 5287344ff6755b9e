"""The limits of a server, from Python or from a TOML file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from r2med.foundation.core.cards import read_toml, validated
from r2med.foundation.core.errors import UserError

Positive = Annotated[int, Field(ge=1)]


class Limits(BaseModel):
    """Upper bounds, so that no client can exhaust the server's memory, time or files."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    body: Positive = 1 << 20
    """Maximum bytes of a request. 512 queries of an agent in training have about 50 kB."""
    queries: Positive = 1024
    """Maximum number of queries in a request."""
    characters: Positive = 20_000
    """Maximum number of characters in a query."""
    topk: Positive = 1000
    """Maximum number of documents for a query."""
    documents: Positive = 10_000
    """Maximum number of documents in a whole answer (queries × topk). An answer is held in memory."""
    waiting: Positive = 256
    """Maximum number of requests that wait for a search. One more gets 503."""
    batch: Positive = 64
    """Maximum number of queries of waiting requests that are searched together. 1 searches every request alone."""
    answers: Positive = 16
    """Maximum number of questions that POST /search answers at the same time. One more gets 503."""
    answer_seconds: Annotated[float, Field(gt=0)] = 120
    """Seconds that the answer to one question may take. Some LLMs think for a minute before they write."""
    seconds: Positive = 30
    """Seconds that a client has for each step: send the head of a request, send its body, read on in the answer."""
    connections: Positive = 1024
    """Maximum number of open connections. Above it, the connection that has been idle longest is closed."""
    grace: int = Field(5, ge=0)
    """Seconds that a running search has to finish after a stop. Then its clients get 503."""


def read_limits(file: Path) -> Limits:
    """Read limits from a TOML file. Missing fields keep their defaults. Raises UserError that names a wrong field."""
    try:
        return validated(Limits, read_toml(file, "file of limits"), file)
    except OSError as error:
        raise UserError(f"limits {file}: {error.strerror or error}") from None
