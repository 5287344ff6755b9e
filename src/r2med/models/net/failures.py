"""What went wrong with a request, in our own words.

A failure is turned into our own exception outside the `except` that caught an SDK's: theirs carry the request, and it
the key.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from r2med.models.net.endpoint import Endpoint
from r2med.models.net.retry import Kind, RequestFailed, retry_after


def refused(where: Endpoint, status: int, headers: Mapping[str, str], body: str) -> RequestFailed:
    """Return what an HTTP status means: wait for what may pass, give up on what will not."""
    if status in (401, 403):
        # No word of the body: it is where servers echo a part of the key.
        return RequestFailed(
            f"{where.place} refuses the key in {where.key_variable} (HTTP {status})", again=False, kind="auth"
        )
    # An account without money is a 429 at OpenAI, and no waiting helps.
    again = status in (408, 409, 429) or status >= 500
    again = again and not (status == 429 and "insufficient_quota" in body)
    said = where.hide(message(body))
    return RequestFailed(
        f"{where.place} answered HTTP {status}{': ' if said else ''}{said}",
        again=again,
        limited=status == 429,
        retry_after=retry_after(headers) if again else None,
        kind=_kind(status),
    )


def _kind(status: int) -> Kind:
    if status == 429:
        return "rate_limit"
    if status == 408:
        return "timeout"
    return "server" if status >= 500 or status == 409 else "bad_request"


def message(body: str) -> str:
    """Return the human part of an error's body."""
    try:
        content = json.loads(body)
    except (ValueError, RecursionError):
        return body
    for name in ("error", "detail", "message"):
        if isinstance(content, dict) and content.get(name):
            content = content[name]
    return content if isinstance(content, str) else json.dumps(content)


def stalled(where: Endpoint, idle: float) -> RequestFailed:
    """Return what a connection without a byte for too long is."""
    return RequestFailed(f"{where.place} was silent for {idle:g} s", again=True, kind="timeout")


def dropped(where: Endpoint, error: BaseException) -> RequestFailed:
    """Return what a connection that could not be made or broke off is."""
    cause = error.__cause__ or error
    return RequestFailed(f"the connection to {where.place} failed ({type(cause).__name__})", again=True)
