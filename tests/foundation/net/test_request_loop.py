"""Many requests to one server: the meaning of errors, waits, one-line messages, and the number sent at once."""

import asyncio
import logging
import time
from pathlib import Path
from typing import Any

import pytest

from r2med.foundation.core.errors import UserError
from r2med.foundation.net import request_loop
from r2med.foundation.net.budget import Budget
from r2med.foundation.net.endpoint import endpoint_at
from r2med.foundation.net.http import Client, RequestFailed, retry_after, status_failure
from r2med.foundation.net.request_loop import Policy, Request, RequestLoop, seconds_to_wait
from support import chat_server as api
from support.chat_models import numbered, opened, texts
from support.chat_server import Server
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
    assert str(failure.given_up(6)) == (
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
    for attempt, most in ((1, 2), (2, 4), (3, 8), (6, 60)):
        waits = [seconds_to_wait(failure, attempt, first_wait=2) for _ in range(300)]
        assert min(waits) < most * 0.1 and most * 0.9 < max(waits) <= most
    for asked, most in ((0.0, 0.0), (0.5, 0.55), (30.0, 31.0)):
        waits = [seconds_to_wait(RequestFailed("", again=True, retry_after=asked), 3, 2) for _ in range(300)]
        assert asked <= min(waits) <= max(waits) <= most, "what was asked for, and little more"


class Provider(RequestLoop[str, str]):
    """Requests to a provider that fails in given ways before it answers. Each item costs a dollar."""

    def __init__(self, *failures: RequestFailed, budget: float | None = None, seconds: float = 0.0, **policy: Any):
        settings = {"first_wait": 0.001, **policy}
        super().__init__(Client(WHERE, 30), Policy(**settings), Budget(budget))
        self.failures = list(failures)
        self.seconds = seconds
        self.outcomes: dict[str, tuple[str | RequestFailed, int]] = {}
        self.begun: dict[str, float] = {}
        self.inside = self.most_inside = 0

    def price(self, item: str) -> float:
        return 1.0

    async def attempt(self, request: Request[str]) -> str:
        self.begun.setdefault(request.item, time.monotonic())
        self.inside += 1
        self.most_inside = max(self.most_inside, self.inside)
        await asyncio.sleep(self.seconds)
        self.inside -= 1
        if self.failures:
            raise self.failures.pop(0)
        request.dollars = 0.25
        return f"answer to {request.item}"

    async def finish(self, request: Request[str], outcome: str | RequestFailed) -> None:
        self.outcomes[request.item] = outcome, request.attempts
        if isinstance(outcome, RequestFailed) and outcome.for_all:
            raise outcome.given_up(request.attempts)

    def sent(self, *items: str) -> list[str]:
        """Send items, and return those that were not sent."""
        return asyncio.run(self.run(items or ("gout",)))


def test_temporary_errors_are_retried_and_permanent_ones_are_not() -> None:
    busy, hopeless = RequestFailed("busy", again=True), RequestFailed("no", again=False)
    for failures, policy, outcome in (
        ([busy], {}, ("answer to gout", 2)),
        ([hopeless], {}, (hopeless, 1)),
        ([busy] * 9, {"attempts": 3}, (busy, 3)),
    ):
        provider = Provider(*failures, **policy)
        provider.sent()
        assert provider.outcomes == {"gout": outcome}
    odd = RequestFailed("odd", again=True, max_attempts=2)
    provider = Provider(*[odd] * 9)
    provider.sent()
    assert provider.outcomes == {"gout": (odd, 2)}


def test_the_final_error_says_why() -> None:
    busy = RequestFailed("m is busy", again=True, for_all=True)
    with pytest.raises(UserError, match=r"^m is busy \(2 attempts\); paid answers are saved; run again to continue$"):
        Provider(*[busy] * 9, attempts=2).sent()
    absent = RequestFailed("m is not there", again=True, unreachable=True)
    assert str(absent.given_up(1)).startswith("m is not there; check that it is running and that the base URL is right")


def test_a_wait_beyond_the_deadline_does_not_delay_other_requests() -> None:
    limited = RequestFailed("slow down", again=True, kind="rate_limit", retry_after=3600)
    provider = Provider(limited, deadline=60, concurrency=1)
    provider.sent("gout", "toe")  # an hour, when it held up all
    assert provider.outcomes == {"gout": (limited, 1), "toe": ("answer to toe", 1)}
    assert str(limited.given_up(1)).startswith("slow down; it asks to wait 3600 s")


def test_all_requests_wait_if_the_wait_is_within_the_deadline() -> None:
    limited = RequestFailed("slow down", again=True, kind="rate_limit", retry_after=0.3)
    provider = Provider(limited, concurrency=2, seconds=0.01)
    provider.sent("gout", "toe", "ankle")
    assert provider.outcomes["ankle"] == ("answer to ankle", 1)
    assert provider.begun["ankle"] - provider.begun["gout"] >= 0.3, "it would be sent at once, without the pause"


def test_the_deadline_ends_an_attempt_that_never_ends() -> None:
    provider = Provider(seconds=600, deadline=0.2)
    provider.sent()
    [(failure, attempts)] = provider.outcomes.values()
    assert isinstance(failure, RequestFailed) and (failure.kind, attempts) == ("timeout", 1)
    assert str(failure) == "m at host.example gave no complete answer within 0.2 s"


def test_nothing_is_retried_after_an_error_for_all() -> None:
    waiting = RequestFailed("busy", again=True, retry_after=100)
    fatal = RequestFailed("no money", again=False, for_all=True)
    provider = Provider(waiting, fatal, concurrency=2)
    with pytest.raises(UserError, match=r"^no money"):
        provider.sent(*map(str, range(50)))
    assert len(provider.outcomes) == 1, "nothing else was sent"


def test_the_budget_is_reserved_before_and_settled_after_each_request() -> None:
    provider = Provider(budget=2.0, concurrency=3)
    unsent = provider.sent(*map(str, range(12)))
    # Two fit at once. Each costs a quarter of its reservation, so five are paid for before a dollar is lacking.
    assert (len(provider.outcomes), len(unsent), provider.budget.spent) == (5, 7, 1.25)
    assert provider.most_inside == 2


def test_no_more_than_the_limit_are_sent_at_once_and_all_get_their_turn() -> None:
    provider = Provider(concurrency=3, seconds=0.001)
    provider.sent(*map(str, range(20)))
    assert (provider.most_inside, len(provider.outcomes)) == (3, 20)


def test_a_429_halves_the_limit_once_and_answers_restore_it() -> None:
    limited = [RequestFailed("slow down", again=True, kind="rate_limit") for _ in range(8)]
    provider = Provider(*limited, concurrency=8, seconds=0.02)
    sizes: list[int] = []
    usual = provider.attempt

    async def watched(request: Request[str]) -> str:
        sizes.append(provider.inside + 1)
        return await usual(request)

    provider.attempt = watched  # type: ignore[method-assign]
    provider.sent(*map(str, range(120)))
    assert max(sizes[:8]) == 8 and max(sizes[8:16]) <= 5, "half as many, although eight were refused at once"
    assert max(sizes[-20:]) == 8, "and back"


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(request_loop, "SHORT_SECONDS", 0.01)
    monkeypatch.setattr(request_loop, "NOTICE_SECONDS", 600.0)
    caplog.set_level(logging.INFO, "r2med")


@pytest.mark.usefixtures("soon")
def test_a_busy_provider_is_named_once_in_one_line(
    chat_server: Server, home: Path, caplog: pytest.LogCaptureFixture
) -> None:
    chat_server.script = [api.refuse(429, "<html><title>429 Slow down</title>\n<p>…", retry_after="0.4")] * 16
    texts(opened(chat_server, home).complete(numbered(40)))
    (said,) = caplog.messages
    assert said.startswith(f"m at {chat_server.address.split('/')[2]} answered HTTP 429: 429 Slow down: ")
    assert said.count("m at") == 1
    assert "(1 of 30)" in said
