"""Sending until it works: which wait follows which failure, and when it is no longer worth it."""

from __future__ import annotations

import asyncio
import math
import random
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Literal, TypeVar

from r2med.errors import UserError
from r2med.net.throttle import Throttle

T = TypeVar("T")


@dataclass(frozen=True)
class Policy:
    """How patient we are with a provider."""

    concurrency: int = 8
    attempts: int = 6
    base: float = 2.0
    """Seconds that the first wait has at most; each further one twice as many."""
    cap: float = 60.0
    deadline: float = 300.0
    """Seconds that the attempts and waits of one request may take together."""
    idle: float = 90.0
    """Seconds without a byte after which a request counts as stalled."""


Kind = Literal["timeout", "connection", "rate_limit", "server", "bad_request", "auth", "context_length", "invalid"]
"""What a failed request failed of."""


class RequestFailed(Exception):  # noqa: N818 - reads as what happened
    """A request that brought no answer. Its text is fit for a user: one line, who failed, no secrets."""

    def __init__(
        self,
        reason: str,
        *,
        again: bool,
        limited: bool = False,
        retry_after: float | None = None,
        kind: Kind = "connection",
        worth: int = 0,
    ) -> None:
        super().__init__(reason)
        self.again = again
        """Whether the same request may work later."""
        self.limited = limited
        """Whether we ask too much of the provider."""
        self.retry_after = retry_after
        self.kind: Kind = kind
        self.worth = worth
        """Attempts that are enough for this kind of failure; 0: as many as the policy has."""


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that an answer asks us to wait: milliseconds as OpenAI says it, seconds, or an HTTP date."""
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


async def persistently(
    send: Callable[[], Awaitable[T]], provider: str, policy: Policy, throttle: Throttle, retrying: Callable[[], None]
) -> T:
    """Return what `send` returns, tried again after failures that may pass; a one-line error when they do not."""
    outcome, attempts = await attempted(send, provider, policy, throttle, retrying)
    if isinstance(outcome, RequestFailed):
        raise given_up(outcome, attempts)
    return outcome


async def attempted(
    send: Callable[[], Awaitable[T]], provider: str, policy: Policy, throttle: Throttle, retrying: Callable[[], None]
) -> tuple[T | RequestFailed, int]:
    """Return what `send` returns, or the last failure when no further attempt would help; and the attempts made."""
    spent = 0.0
    attempt = 0
    while True:
        attempt += 1
        await throttle.enter()
        try:
            if throttle.stopped.is_set():
                raise UserError(f"{provider}: stopped, since another request failed")
            started = time.monotonic()
            outcome = await _attempt(send, provider, policy.deadline - spent)
        finally:
            throttle.leave()
        if not isinstance(outcome, RequestFailed):
            throttle.answered()
            return outcome, attempt
        spent += time.monotonic() - started
        wait, most = _wait(outcome, attempt, policy), outcome.worth or policy.attempts
        if outcome.limited:
            throttle.limited(started, outcome.retry_after or 0.0)
        if not outcome.again or attempt >= most or spent + wait > policy.deadline or throttle.stopped.is_set():
            return outcome, attempt
        retrying()
        with throttle.notices.waiting(str(outcome), wait, attempt, most):
            await throttle.sleep(wait)
        spent += wait


async def _attempt(send: Callable[[], Awaitable[T]], provider: str, seconds: float) -> T | RequestFailed:
    # Returned, not raised: an exception from inside an `except` would carry the SDK's own, with its request and key.
    try:
        async with asyncio.timeout(seconds):
            return await send()
    except RequestFailed as failure:
        return failure
    except TimeoutError:
        return RequestFailed(f"{provider} gave no whole answer within {seconds:.3g} s", again=True, kind="timeout")


def _wait(failure: RequestFailed, attempt: int, policy: Policy) -> float:
    """Return what was asked for, spread a little; else full jitter (AWS), so that clients do not come back in step."""
    if failure.retry_after is not None:
        return failure.retry_after + random.uniform(0, min(1.0, failure.retry_after / 10))
    return random.uniform(0, min(policy.cap, policy.base * 2 ** (attempt - 1)))


def given_up(failure: RequestFailed, attempts: int) -> UserError:
    """Return the line that tells what failed, how often it was tried, and whether later may be better."""
    tried = f" ({attempts} attempts)" if attempts > 1 else ""
    asked = f"; it asks to wait {failure.retry_after:.0f} s" if failure.retry_after else ""
    # An answer that is none comes from a wrong address: the same command would find no better one.
    passing = failure.again and failure.kind != "invalid"
    later = "; what was paid for is kept: run again to continue" if passing else ""
    return UserError(f"{failure}{tried}{asked}{later}")
