"""What went wrong with a request, in our own words.

A failure is turned into our own exception outside the `except` that caught an SDK's: theirs carry the request, and it
the key.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Mapping

from r2med.net.endpoint import Endpoint
from r2med.net.retry import Kind, RequestFailed, retry_after

# By status, and whether a key was sent.
_AUTH = {
    (401, True): "refuses the key in {variable}",
    (401, False): "needs a key: set the environment variable {variable}",
    (403, True): "forbids the request to the key in {variable}",
    (403, False): "forbids the request, which had no key: {variable} is not set",
}
_MARKUP = re.compile(r"\s*<(!doctype|html|head|body|\?xml)\b", re.IGNORECASE)
_TITLE = re.compile(r"<title[^>]*>([^<]*)", re.IGNORECASE)


def refused(where: Endpoint, status: int, headers: Mapping[str, str], body: str) -> RequestFailed:
    """Return what an HTTP status means: wait for what may pass, give up on what will not."""
    if (status, where.has_key) in _AUTH:
        # No word of the body: it is where servers echo a part of the key.
        said = _AUTH[status, where.has_key].format(variable=where.key_variable)
        return RequestFailed(f"{where.place} {said} (HTTP {status})", again=False, kind="auth")
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
        return _title(body)
    for name in ("error", "detail", "message"):
        if isinstance(content, dict) and content.get(name):
            content = content[name]
    return content if isinstance(content, str) else json.dumps(content)


def _title(body: str) -> str:
    """Return a text; of a page, as proxies send it, its title alone."""
    if not _MARKUP.match(body):
        return body
    found = _TITLE.search(body)
    return html.unescape(found[1]) if found else ""


def stalled(where: Endpoint, idle: float) -> RequestFailed:
    """Return what a connection without a byte for too long is."""
    return RequestFailed(f"{where.place} was silent for {idle:g} s", again=True, kind="timeout")


def dropped(where: Endpoint, error: BaseException) -> RequestFailed:
    """Return what a connection that could not be made or broke off is."""
    cause = error.__cause__ or error
    return RequestFailed(f"the connection to {where.place} failed ({type(cause).__name__})", again=True)
