"""The number of requests at once, and the log line about waiting requests."""

import asyncio
import logging
import time
from pathlib import Path

import pytest

from r2med.foundation.net import throttle
from r2med.foundation.net.throttle import AdaptiveLimiter
from support import chat_server as api
from support.chat_models import numbered, opened, texts
from support.chat_server import Server


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(throttle, "SHORT_SECONDS", 0.01)
    monkeypatch.setattr(throttle, "NOTICE_SECONDS", 600.0)
    caplog.set_level(logging.INFO, "r2med")


def test_one_line_reports_all_waiting_requests_and_the_next_only_after_some_seconds(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def run() -> None:
        limiter = AdaptiveLimiter(8)
        limiter.stop()  # nothing waits longer
        await asyncio.gather(*(limiter.wait("m at here answered HTTP 503", 60.0 + n, 2, 6) for n in range(40)))
        monkeypatch.setattr(throttle, "NOTICE_SECONDS", 0.0)
        await limiter.wait("another", 1.0, 1, 6)
        await limiter.wait("too short", 0.001, 1, 6)

    asyncio.run(run())
    assert caplog.messages == [
        "m at here answered HTTP 503: trying again in 60.0 s (2 of 6)",
        "another: trying again in 1.0 s (1 of 6)",
    ]


@pytest.mark.usefixtures("marked_keys")
def test_a_busy_provider_is_named_once_in_one_line(
    chat_server: Server, home: Path, caplog: pytest.LogCaptureFixture
) -> None:
    chat_server.script = [api.refuse(429, "<html><title>429 Slow down</title>\n<p>…", retry_after="0.4")] * 16
    texts(opened(chat_server, home).complete(numbered(40)))
    (said,) = caplog.messages
    assert said.startswith(f"m at {chat_server.address.split('/')[2]} answered HTTP 429: 429 Slow down: ")
    assert said.count("m at") == 1
    assert "(1 of 30)" in said


def test_a_429_halves_the_limit_and_successes_restore_it() -> None:
    limiter = AdaptiveLimiter(8)
    sent = time.monotonic()
    limiter.limited(sent, 0)
    limiter.limited(sent, 0)  # sent before the first one came back
    assert limiter.limit == 4
    limiter.limited(time.monotonic(), 0)
    assert limiter.limit == 2
    for _ in range(60):
        limiter.answered()
    assert limiter.limit == 8


def test_no_more_than_the_limit_are_inside_and_all_get_their_turn() -> None:
    async def run() -> tuple[int, int]:
        limiter, inside, most, turns = AdaptiveLimiter(3), 0, 0, 0

        async def work() -> None:
            nonlocal inside, most, turns
            async with limiter.slot():
                inside += 1
                most = max(most, inside)
                await asyncio.sleep(0)
                inside -= 1
                turns += 1

        await asyncio.gather(*(work() for _ in range(20)))
        return most, turns

    assert asyncio.run(run()) == (3, 20)
