"""Retries: the meaning of errors, waiting times, and one-line messages."""

import asyncio
import time
from typing import Any

import pytest

from r2med.foundation.core.errors import UserError
from r2med.foundation.net.endpoint import endpoint_at
from r2med.foundation.net.retry import (
    Policy,
    RequestFailed,
    _wait,
    given_up,
    retry_after,
    send,
    status_failure,
    try_send,
)
from r2med.foundation.net.throttle import AdaptiveLimiter
from support.keys import KEY

pytestmark = pytest.mark.usefixtures("marked_keys")

WHERE = endpoint_at("https://host.example/token-in-path/v1", "m", "OPENAI_API_KEY")


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("", ""),
        ("plain\r\nwords\tof a proxy", ": plain words of a proxy"),
        ("\n<!DOCTYPE html>\n<html><head><title>Bad\n Gateway &amp; co</title></head><body>…", ": Bad Gateway & co"),
        ("<html><body>no title here</body></html>", ""),
        ('<?xml version="1.0"?><Error><Code>SlowDown</Code></Error>', ""),
        ('{"error": {"message": "so\\nnot", "code": 5}}', ": so not"),
        ('{"detail": [{"msg": "so not"}]}', ': [{"msg": "so not"}]'),
        ("colour \x1b[31mred\x1b[0m and \x00 nothing", ": colour [31mred [0m and nothing"),
        (f"the key {KEY} at https://host.example/token-in-path/v1", ": the key [hidden] at [hidden]"),
        ("x" * 500, f": {'x' * 200}…"),
        ("[" * 100_000, f": {'[' * 200}…"),
    ],
)
def test_the_message_is_extracted_from_a_body(body: str, said: str) -> None:
    failure = status_failure(WHERE, 502, {}, body)
    assert str(failure) == f"m at host.example answered HTTP 502{said}"
    assert (failure.kind, failure.again) == ("server", True)


@pytest.mark.parametrize(
    ("status", "with_key", "without"),
    [
        (401, "refuses the key in OPENAI_API_KEY", "needs a key; set the environment variable OPENAI_API_KEY"),
        (
            403,
            "forbids the request to the key in OPENAI_API_KEY",
            "forbids the request, which had no key; OPENAI_API_KEY is not set",
        ),
    ],
)
def test_a_key_is_mentioned_as_wrong_only_if_one_was_sent(
    monkeypatch: pytest.MonkeyPatch, status: int, with_key: str, without: str
) -> None:
    body = '{"error": {"message": "Incorrect API key provided: sk-ab***yz"}}'
    assert str(status_failure(WHERE, status, {}, body)) == f"m at host.example {with_key} (HTTP {status})"
    monkeypatch.delenv("OPENAI_API_KEY")
    assert str(status_failure(WHERE, status, {}, body)) == f"m at host.example {without} (HTTP {status})"


def test_the_failed_server_is_named_once() -> None:
    failure = status_failure(WHERE, 503, {"retry-after": "7"}, "")
    assert str(given_up(failure, 6)) == (
        "m at host.example answered HTTP 503 (6 attempts); it asks to wait 7 s; "
        "paid answers are saved; run again to continue"
    )


def test_how_retry_after_is_read() -> None:
    assert retry_after({"retry-after": "7"}) == 7
    assert retry_after({"retry-after-ms": "1500", "retry-after": "2"}) == 1.5
    assert retry_after({"retry-after": "-3"}) == 0
    assert retry_after({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}) == 0
    for nonsense in ({}, {"retry-after": "soon"}, {"retry-after": "nan"}, {"retry-after": "inf"}):
        assert retry_after(nonsense) is None


def test_waits_grow_and_are_jittered() -> None:
    failure = RequestFailed("", again=True)
    policy = Policy(first_wait=2)
    for attempt, most in ((1, 2), (2, 4), (3, 8), (6, 60)):
        waits = [_wait(failure, attempt, policy) for _ in range(300)]
        assert min(waits) < most * 0.1 and most * 0.9 < max(waits) <= most
    for asked, most in ((0.0, 0.0), (0.5, 0.55), (30.0, 31.0)):
        waits = [_wait(RequestFailed("", again=True, retry_after=asked), 3, policy) for _ in range(300)]
        assert asked <= min(waits) <= max(waits) <= most, "what was asked for, and little more"


class Provider:
    """A provider that fails in a given way and then answers."""

    def __init__(self, *failures: RequestFailed) -> None:
        self.failures = list(failures)
        self.attempts = 0

    async def __call__(self) -> str:
        self.attempts += 1
        if self.failures:
            raise self.failures.pop(0)
        return "answer"


def sent(provider: Any, **policy: Any) -> Any:
    async def run() -> Any:
        return await try_send(provider, "m", Policy(first_wait=0.001, **policy), AdaptiveLimiter(4))

    return asyncio.run(run())


def test_temporary_errors_are_retried_and_permanent_ones_are_not() -> None:
    assert sent(Provider(RequestFailed("busy", again=True))) == ("answer", 2)
    hopeless = RequestFailed("no", again=False)
    assert sent(Provider(hopeless)) == (hopeless, 1)
    assert sent(Provider(*[RequestFailed("busy", again=True)] * 9), attempts=3)[1] == 3
    assert sent(Provider(*[RequestFailed("odd", again=True, max_attempts=2)] * 9))[1] == 2


def test_the_final_error_says_why() -> None:
    async def run() -> None:
        provider = Provider(*[RequestFailed("m is busy", again=True)] * 9)
        await send(provider, "m", Policy(first_wait=0.001, attempts=2), AdaptiveLimiter(4))

    with pytest.raises(UserError, match=r"^m is busy \(2 attempts\); paid answers are saved; run again to continue$"):
        asyncio.run(run())


def test_a_server_that_is_not_there_is_said_to_be_checked() -> None:
    async def run() -> None:
        provider = Provider(*[RequestFailed("m is not there", again=True, unreachable=True)] * 9)
        await send(provider, "m", Policy(first_wait=0.001, attempts=2), AdaptiveLimiter(4))

    with pytest.raises(UserError, match=r"^m is not there; check that it is running and that the base URL is right"):
        asyncio.run(run())


def test_a_wait_beyond_the_deadline_does_not_delay_other_requests() -> None:
    async def run() -> tuple[Any, Any]:
        limiter = AdaptiveLimiter(4)
        policy = Policy(deadline=60)
        limited = RequestFailed("slow down", again=True, kind="rate_limit", retry_after=3600)
        first = await try_send(Provider(limited), "m", policy, limiter)
        async with asyncio.timeout(50):  # an hour, when it closed the gate for all
            return first, await try_send(Provider(), "m", policy, limiter)

    (failure, attempts), second = asyncio.run(run())
    assert (failure.kind, attempts, second) == ("rate_limit", 1, ("answer", 1))
    assert str(given_up(failure, 1)).startswith("slow down; it asks to wait 3600 s")


def test_all_requests_wait_if_the_wait_is_within_the_deadline() -> None:
    async def run() -> float:
        limiter = AdaptiveLimiter(4)
        limited = RequestFailed("slow down", again=True, kind="rate_limit", retry_after=0.3)
        first = asyncio.create_task(try_send(Provider(limited), "m", Policy(), limiter))
        await asyncio.sleep(0.05)
        started = time.monotonic()
        await try_send(Provider(), "m", Policy(), limiter)
        await first
        return time.monotonic() - started

    assert asyncio.run(run()) > 0.1


def test_the_deadline_ends_an_attempt_that_never_ends() -> None:
    async def never() -> str:
        await asyncio.Event().wait()
        return ""

    failure, attempts = sent(never, deadline=0.2)
    assert (str(failure), failure.kind, attempts) == ("m gave no complete answer within 0.2 s", "timeout", 1)


def test_nothing_is_retried_after_a_stop() -> None:
    async def run() -> tuple[Any, int]:
        limiter = AdaptiveLimiter(4)
        waiting = asyncio.create_task(
            try_send(Provider(RequestFailed("busy", again=True, retry_after=100)), "m", Policy(), limiter)
        )
        await asyncio.sleep(0.05)
        limiter.stop()
        return await waiting

    with pytest.raises(UserError, match="stopped, because another request failed"):
        asyncio.run(run())
