"""LLMs behind an endpoint: which requests are retried, for how long, and the typed failures that remain."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from r2med.models.llm.chat import Failure, Generation
from support import chat_server as api
from support.chat_models import HASTY, ask, numbered, one, opened, texts
from support.chat_server import Server, reply_to

pytestmark = pytest.mark.usefixtures("marked_keys")


def test_five_hundred_requests_with_a_fifth_of_them_failing(server: Server, home: Path) -> None:
    silent = [api.stall_half_way, api.hang] * 2  # first, and few: each keeps a place until its silence is noticed
    prompt = [
        api.refuse(429, retry_after="0.05"),
        api.refuse(500),
        api.refuse(503, retry_after="0.02"),
        api.close_half_way,
        api.end_half_way,
        api.drop,
        api.invalid_json,
        api.answer(""),
    ]
    faults = [*silent, *prompt * 12][:100]
    server.plan = {f"question {5 * i}": [fault] for i, fault in enumerate(faults)}
    server.otherwise = api.answer(delay=0.005)
    # So many at once hold each other up: what is only slow must not look silent, since answers are counted below.
    chat = opened(server, home, idle=4, concurrency=32)
    outcomes = chat.complete(numbered(500))
    empty = [i for i, outcome in enumerate(outcomes) if isinstance(outcome, Failure)]
    assert empty == [5 * i for i, fault in enumerate(faults) if fault is prompt[-1]], "only what the model left empty"
    assert {outcomes[i].kind for i in empty} == {"empty"}  # type: ignore[union-attr]
    assert [o.text for o in outcomes if isinstance(o, Generation)] == [
        reply_to(f"question {i}") for i in range(500) if i not in empty
    ]
    assert sum(server.served.values()) == 500 and set(server.served.values()) == {1}
    asked = len(server.requests)
    assert asked - 500 >= 100 - len(empty)
    again = opened(server, home)
    assert [type(o) for o in again.complete(numbered(500))] == [type(o) for o in outcomes]
    assert len(server.requests) == asked, "an empty answer is the model's: it is not asked again"


@pytest.mark.parametrize("status", [408, 409, 429, 500, 502, 529])
def test_temporary_errors_are_retried(server: Server, home: Path, status: int) -> None:
    server.script = [api.refuse(status), api.refuse(status)]
    chat = opened(server, home)
    texts(chat.complete(ask("gout")))
    assert len(server.requests) == 3


@pytest.mark.parametrize(
    ("step", "kind", "attempts"),
    [
        (api.refuse(500), "server", 6),
        (api.refuse(429), "rate_limit", 30),
        (api.drop, "connection", 6),
        (api.end_half_way, "connection", 6),
        (api.streamed({"error": {"message": "overloaded", "code": 502}}), "server", 6),
        (api.answer(finish="error"), "server", 6),
        (api.invalid_json, "invalid", 3),
        (api.raw(b"<html>hello</html>", "text/html"), "invalid", 3),
        (api.raw(b"[1]"), "invalid", 3),
        (api.raw(b'{"choices": []}'), "invalid", 3),
        (api.raw(b'{"choices": [{"message": {"content": 5}, "finish_reason": "stop"}]}'), "invalid", 3),
        (api.refuse(400), "bad_request", 1),
        (api.refuse(422), "bad_request", 1),
        (api.refuse(400, '{"error": {"message": "too long", "code": "context_length_exceeded"}}'), "context_length", 1),
        (api.refuse(400, '{"error": {"message": "the model\'s maximum context length is 50"}}'), "context_length", 1),
        (api.refuse(500, '{"error": {"type": "exceed_context_size_error"}}'), "context_length", 1),
    ],
)
def test_a_permanent_error_is_a_typed_failure(server: Server, home: Path, step: Any, kind: str, attempts: int) -> None:
    server.plan = {"gout": [step] * 30}
    chat = opened(server, home, concurrency=1)
    outcomes = chat.complete(ask("asthma", "gout", "fever"))
    assert one(outcomes[1:2], kind).attempts == attempts
    assert isinstance(outcomes[0], Generation) and isinstance(outcomes[2], Generation), "the others are not held up"
    server.plan = {}
    again = opened(server, home).complete(ask("gout"))
    if kind == "context_length":
        assert again == outcomes[1:2], "a shorter prompt follows, and a run without the server must find that one"
    else:
        assert texts(again), "and it is tried again in the next run"


@pytest.mark.parametrize(
    ("step", "kind"),
    [
        (api.answer("half", finish="length"), "truncated"),
        (api.answer("", refusal="I cannot help"), "refused"),
        (api.answer("", finish="content_filter"), "refused"),
        (api.answer("hm, a toe"), "no_marker"),
    ],
)
def test_failures_of_the_model_are_saved_and_paid_for(server: Server, home: Path, step: Any, kind: str) -> None:
    server.otherwise = step
    for _ in range(2):
        failure = one(opened(server, home, answer="think").complete(ask("gout")), kind)
        assert failure.prompt_tokens == 6 and len(server.requests) == 1


def test_a_complete_answer_needs_no_bill(server: Server, home: Path) -> None:
    server.otherwise = api.streamed(api.chunk({"content": "Gout."}, "stop"), close=False)
    chat = opened(server, home, **HASTY)
    assert texts(chat.complete(ask("gout"))) == ["Gout."]
    assert len(server.requests) == 1 and chat.answers(ask("gout"))[0].estimated  # type: ignore[union-attr]


def test_the_deadline_ends_an_answer_that_never_ends(server: Server, home: Path) -> None:
    server.otherwise = api.trickle
    failure = one(opened(server, home, deadline=0.5).complete(ask("gout")), "timeout")
    assert failure.message.endswith("gave no complete answer within 0.5 s") and failure.attempts == 1


def test_retry_after_is_waited_for(server: Server, home: Path) -> None:
    server.script = [api.refuse(429, retry_after="0.5")]
    texts(opened(server, home).complete(ask("gout")))
    assert server.requests[1].at - server.requests[0].at >= 0.5


def test_a_wait_beyond_the_deadline_is_not_started(server: Server, home: Path) -> None:
    server.otherwise = api.refuse(429, retry_after="3600")
    assert one(opened(server, home).complete(ask("gout")), "rate_limit").attempts == 1


def test_a_429_reduces_the_requests_at_once_and_successes_increase_them_again(server: Server, home: Path) -> None:
    levels: list[int] = []
    reached: set[int] = set()

    async def busy(exchange: api.Exchange) -> None:
        """Wait until the expected number of requests runs, so that the test does not depend on speed."""
        levels.append(exchange.server.at_once)
        number = len(levels)
        wanted = 16 if number <= 16 else 8 if number <= 76 else 11
        while wanted not in reached and exchange.server.at_once < wanted:
            await asyncio.sleep(0.002)
        reached.add(wanted)
        await (api.refuse(429, retry_after="0.05") if number <= 16 else api.answer())(exchange)

    server.otherwise = busy
    chat = opened(server, home)
    texts(chat.complete(numbered(120)))
    assert max(levels) == 16 and len(server.requests) == 120 + 16
    assert max(levels[16:40]) <= 9, "half as many"
    assert max(levels[76:]) >= 11, "and back"
