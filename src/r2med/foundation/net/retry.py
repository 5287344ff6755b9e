"""Retry requests: which failures are temporary, how long to wait between attempts, and when to give up."""

from __future__ import annotations

import asyncio
import html
import json
import math
import random
import re
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Literal, TypeVar

from r2med.foundation.core.errors import UserError
from r2med.foundation.net.endpoint import Endpoint
from r2med.foundation.net.throttle import AdaptiveLimiter

T = TypeVar("T")

Kind = Literal["timeout", "connection", "rate_limit", "server", "bad_request", "auth", "context_length", "invalid"]
"""The kinds of failures of a request."""


@dataclass(frozen=True)
class Policy:
    """The limits for retries with a provider."""

    concurrency: int = 8
    attempts: int = 6
    first_wait: float = 2.0
    """Maximum seconds of the first wait. Each further wait is twice as long, up to 30 times the first."""
    deadline: float = 300.0
    """Seconds that the attempts and waits of one request may take together."""
    idle: float = 90.0
    """Seconds without a byte after which a request counts as stalled."""


class RequestFailed(Exception):  # noqa: N818 - reads as what happened
    """A request without an answer. Its text can be shown to a user: one line with the server and without secrets."""

    def __init__(
        self,
        reason: str,
        *,
        again: bool,
        kind: Kind = "connection",
        retry_after: float | None = None,
        max_attempts: int = 0,
        for_all: bool = False,
        unreachable: bool = False,
    ) -> None:
        super().__init__(reason)
        self.again = again
        """True if the same request may succeed later."""
        self.kind: Kind = kind
        self.retry_after = retry_after
        self.max_attempts = max_attempts
        """Number of attempts for this kind of failure. 0 means that of the policy."""
        self.for_all = for_all
        """True if all other requests would fail in the same way, because of the key, the model or the account."""
        self.unreachable = unreachable
        """True if no connection could be made."""


async def send(attempt: Callable[[], Awaitable[T]], server: str, policy: Policy, limiter: AdaptiveLimiter) -> T:
    """Return the result of `attempt`, which is retried after temporary failures. Raises UserError if it still fails."""
    outcome, attempts = await try_send(attempt, server, policy, limiter)
    if isinstance(outcome, RequestFailed):
        hint = "; check that it is running and that the base URL is right" if outcome.unreachable else ""
        raise given_up(outcome, attempts, hint)
    return outcome


async def try_send(
    attempt: Callable[[], Awaitable[T]],
    server: str,
    policy: Policy,
    limiter: AdaptiveLimiter,
    on_retry: Callable[[RequestFailed], None] | None = None,
) -> tuple[T | RequestFailed, int]:
    """Return the result of `attempt`, or the last failure if no further attempt would help, and the number of attempts.

    `on_retry` is called before each wait. If it raises, the request ends.
    """
    spent = 0.0
    attempts = 0
    while True:
        attempts += 1
        async with limiter.slot():
            if limiter.stopped.is_set():
                raise UserError(f"{server}: stopped, because another request failed")
            started = time.monotonic()
            outcome = await _attempt(attempt, server, policy.deadline - spent)
        if not isinstance(outcome, RequestFailed):
            limiter.answered()
            return outcome, attempts
        spent += time.monotonic() - started
        wait = _wait(outcome, attempts, policy)
        in_time = spent + wait <= policy.deadline
        if outcome.kind == "rate_limit":
            # A wait beyond the deadline ends this request, so it must not delay the others silently.
            limiter.limited(started, wait if in_time and outcome.retry_after else 0.0)
        most = outcome.max_attempts or policy.attempts
        if not outcome.again or not in_time or attempts >= most or limiter.stopped.is_set():
            return outcome, attempts
        if on_retry is not None:
            on_retry(outcome)
        await limiter.wait(str(outcome), wait, attempts, most)
        spent += wait


async def _attempt(attempt: Callable[[], Awaitable[T]], server: str, seconds: float) -> T | RequestFailed:
    # Returned, not raised: an exception from inside an `except` would hold the other one.
    try:
        async with asyncio.timeout(seconds):
            return await attempt()
    except RequestFailed as failure:
        return failure
    except TimeoutError:
        return RequestFailed(f"{server} gave no complete answer within {seconds:.3g} s", again=True, kind="timeout")


def _wait(failure: RequestFailed, attempts: int, policy: Policy) -> float:
    """Return the requested wait with a small random addition, or full jitter (AWS), so that clients are spread out."""
    if failure.retry_after is not None:
        return failure.retry_after + random.uniform(0, min(1.0, failure.retry_after / 10))
    return random.uniform(0, policy.first_wait * min(30, 2 ** (attempts - 1)))


def explained(failure: RequestFailed) -> str:
    """Return the reason of the final failure, with the wait that the server requested."""
    return f"{failure}; it asks to wait {failure.retry_after:.0f} s" if failure.retry_after else str(failure)


def given_up(failure: RequestFailed, attempts: int, hint: str = "") -> UserError:
    """Return the error with the failure, the number of attempts, and a hint if a later run may succeed."""
    tried = f" ({attempts} attempts)" if attempts > 1 else ""
    asked = explained(failure).removeprefix(str(failure))
    # An invalid answer comes from a wrong address, so the same command would fail again.
    passing = failure.again and failure.kind != "invalid"
    later = "; paid answers are saved; run again to continue" if passing else ""
    return UserError(f"{failure}{hint}{tried}{asked}{later}")


# Keys are (status, True if a key was sent).
_AUTH = {
    (401, True): "refuses the key in {variable}",
    (401, False): "needs a key; set the environment variable {variable}",
    (403, True): "forbids the request to the key in {variable}",
    (403, False): "forbids the request, which had no key; {variable} is not set",
}
_MARKUP = re.compile(r"\s*<(!doctype|html|head|body|\?xml)\b", re.IGNORECASE)
_TITLE = re.compile(r"<title[^>]*>([^<]*)", re.IGNORECASE)


def status_failure(endpoint: Endpoint, status: int, headers: Mapping[str, str], body: str) -> RequestFailed:
    """Return the failure that an HTTP status means, which is temporary or final."""
    if (status, endpoint.has_key) in _AUTH:
        # The body is not shown, because servers may repeat a part of the key in it.
        reason = _AUTH[status, endpoint.has_key].format(variable=endpoint.key_variable)
        return RequestFailed(
            f"{endpoint.server} {reason} (HTTP {status})", again=False, kind="auth", for_all=status == 401
        )
    # OpenAI reports an account without money as 429, and waiting does not help.
    no_money = status == 429 and "insufficient_quota" in body
    again = (status in (408, 409, 429) or status >= 500) and not no_money
    reason = endpoint.hide(error_message(body))
    return RequestFailed(
        f"{endpoint.server} answered HTTP {status}{': ' if reason else ''}{reason}",
        again=again,
        kind=_kind(status),
        retry_after=retry_after(headers) if again else None,
        for_all=no_money,
    )


def _kind(status: int) -> Kind:
    if status == 429:
        return "rate_limit"
    if status == 408:
        return "timeout"
    return "server" if status >= 500 or status == 409 else "bad_request"


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the requested wait in seconds, from milliseconds (OpenAI), seconds or an HTTP date."""
    for name, unit in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        try:
            seconds = float(headers.get(name) or "nan") / unit
        except ValueError:
            continue
        if math.isfinite(seconds):
            return max(0.0, seconds)
    try:
        return max(0.0, parsedate_to_datetime(headers.get("retry-after") or "").timestamp() - time.time())
    except (ValueError, TypeError, OverflowError):
        return None


def error_message(body: str) -> str:
    """Return the readable message of an error body. For an HTML page, as proxies send, it is the title."""
    try:
        content = json.loads(body)
    except (ValueError, RecursionError):
        if not _MARKUP.match(body):
            return body
        title = _TITLE.search(body)
        return html.unescape(title[1]) if title else ""
    for name in ("error", "detail", "message"):
        if isinstance(content, dict) and content.get(name):
            content = content[name]
    return content if isinstance(content, str) else json.dumps(content)
