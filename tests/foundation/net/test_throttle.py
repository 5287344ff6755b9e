"""The number of requests at once, and the log line about waiting requests."""

import asyncio
import logging
import re
import time
from pathlib import Path

import pytest

from r2med.foundation.net import throttle
from r2med.foundation.net.throttle import AdaptiveLimiter, Notices
from support import chat_server as api
from support.chat_models import numbered, opened, texts
from support.chat_server import Server


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(throttle, "GATHER_SECONDS", 0.01)
    monkeypatch.setattr(throttle, "NOTICE_SECONDS", 600.0)
    caplog.set_level(logging.INFO, "r2med")


async def wait_together(many: Notices, count: int, until: asyncio.Event) -> None:
    async def wait(number: int) -> None:
        with many.waiting("m at here answered HTTP 503", 60.0 + number, 2, 6):
            await until.wait()

    await asyncio.gather(*(wait(number) for number in range(count)))


async def told(caplog: pytest.LogCaptureFixture, lines: int) -> None:
    while len(caplog.messages) < lines:
        await asyncio.sleep(0.005)


@pytest.mark.parametrize(
    ("count", "line"),
    [
        (1, "m at here answered HTTP 503: trying again in SECONDS s (2 of 6)"),
        (40, "m at here answered HTTP 503: 40 requests wait to try again, the first in SECONDS s"),
    ],
)
def test_one_line_reports_all_waiting_requests(caplog: pytest.LogCaptureFixture, count: int, line: str) -> None:
    async def run() -> None:
        many, end = Notices(), asyncio.Event()
        waiting = asyncio.create_task(wait_together(many, count, end))
        await told(caplog, 1)
        await asyncio.sleep(0.05)
        end.set()
        await waiting

    asyncio.run(run())
    (said,) = caplog.messages
    assert re.sub(r"\d+\.\d", "SECONDS", said) == line


def test_the_next_line_is_written_only_after_some_seconds(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def run() -> None:
        many, end = Notices(), asyncio.Event()
        waiting = [asyncio.create_task(wait_together(many, 1, end))]
        await told(caplog, 1)
        waiting.append(asyncio.create_task(wait_together(many, 1, end)))
        await asyncio.sleep(0.1)
        assert len(caplog.messages) == 1
        end.set()
        await asyncio.gather(*waiting)
        monkeypatch.setattr(throttle, "NOTICE_SECONDS", 0.05)
        end.clear()
        waiting = [asyncio.create_task(wait_together(many, 3, end))]
        await told(caplog, 2)
        assert "3 requests wait" in caplog.messages[1]
        end.set()
        await asyncio.gather(*waiting)

    asyncio.run(run())


def test_a_short_wait_is_not_reported(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(throttle, "GATHER_SECONDS", 60.0)

    async def run() -> None:
        end = asyncio.Event()
        end.set()
        await wait_together(Notices(), 5, end)

    asyncio.run(run())
    assert caplog.messages == []


@pytest.mark.usefixtures("marked_keys")
def test_a_busy_provider_is_named_once_in_one_line(
    chat_server: Server, home: Path, caplog: pytest.LogCaptureFixture
) -> None:
    chat_server.script = [api.refuse(429, "<html><title>429 Slow down</title>\n<p>…", retry_after="0.4")] * 16
    texts(opened(chat_server, home).complete(numbered(40)))
    (said,) = caplog.messages
    assert said.startswith(f"m at {chat_server.address.split('/')[2]} answered HTTP 429: 429 Slow down: ")
    assert said.count("m at") == 1
    assert "requests wait to try again" in said or "(1 of 30)" in said


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
