"""LLMs behind an endpoint: requests, and one answer per request in order."""

import asyncio
import json
import threading
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from r2med.foundation.engine.reporting import Progress, listening
from r2med.foundation.net.http import HTTPAnswer
from r2med.models.llm import openai
from r2med.models.llm.chat import Generation, RawAnswer
from r2med.models.llm.costs import answers_cost
from r2med.models.llm.journaled import open_chat
from r2med.models.llm.openai_protocol import MalformedReply, Reply
from support import chat_server as api
from support.chat_models import PATIENT, ask, card, numbered, one, opened, setup, texts, unanswered
from support.chat_server import Server, reply_to

pytestmark = pytest.mark.usefixtures("marked_keys")


def test_an_answer_per_request_in_their_order(server: Server, home: Path) -> None:
    chat = opened(server, home)
    assert texts(chat.complete(numbered(50))) == [reply_to(f"question {i}") for i in range(50)]
    assert all(r.path == "/v1/chat/completions" and r.body["model"] == "org/m" for r in server.requests)
    assert server.requests[0].body["messages"][0] == {"role": "system", "content": "You are a helpful assistant."}
    cost = answers_cost(chat.answers(numbered(50)), card())
    assert (len(server.requests), cost.calls, cost.unpriced) == (50, 50, 0)
    assert (cost.prompt_tokens, cost.completion_tokens, cost.dollars) == (50 * 7, 50 * 5, 50 * 12)
    assert cost.seconds > 0


def test_connections_are_used_again(server: Server, home: Path) -> None:
    texts(opened(server, home, concurrency=2).complete(numbered(20)))
    assert server.connections == 2


def test_an_open_connection_after_the_end_is_not_waited_for(server: Server, home: Path) -> None:
    server.otherwise = api.streamed(api.chunk({"content": "Gout."}, "stop"), api.DONE, close=False)
    started = time.monotonic()
    assert texts(opened(server, home).complete(ask("gout"))) == ["Gout."]
    assert time.monotonic() - started < PATIENT.idle / 2


@pytest.mark.parametrize("stream", [True, False])
def test_reasoning_in_a_separate_field_is_separated(server: Server, home: Path, stream: bool) -> None:
    for name in ("reasoning_content", "reasoning"):
        server.script = [api.answer("Gout.", reasoning="hm, a toe", reasoning_field=name, stream=stream)]
        (got,) = opened(server, home, answer="think").complete(ask(name))
        assert isinstance(got, Generation)
        assert (got.text, got.reasoning, got.finish_reason) == ("Gout.", "hm, a toe", "stop")


def test_tokens_that_a_server_does_not_report_are_estimated_and_marked(server: Server, home: Path) -> None:
    server.otherwise = api.answer("x" * 400, usage=False)
    (answer,) = opened(server, home).answers(ask("gout"))
    assert isinstance(answer, RawAnswer) and answer.estimated
    assert answer.completion_tokens == 100


def test_a_server_without_stream_options_is_asked_without_them(server: Server, home: Path) -> None:
    server.script = [api.refuse(400, '{"error": {"message": "Unknown parameter: stream_options"}}')]
    chat = opened(server, home, concurrency=1)
    assert len(texts(chat.complete(numbered(3)))) == 3
    assert ["stream_options" in r.body for r in server.requests] == [True, False, False, False]


SCHEMA = '{"type": "object", "properties": {"score": {"type": "integer"}}}'


def test_the_schema_of_an_answer_is_sent_and_is_part_of_its_key(server: Server, home: Path) -> None:
    chat = opened(server, home)
    plain = ask("gout")
    structured = [replace(request, schema=SCHEMA) for request in plain]
    texts(chat.complete(plain) + chat.complete(structured) + chat.complete(structured))
    sent = [request.body.get("response_format") for request in server.requests]
    schema = {"name": "answer", "strict": True, "schema": json.loads(SCHEMA)}
    assert sent == [None, {"type": "json_schema", "json_schema": schema}]


@pytest.mark.parametrize("reason", ["This response_format type is unavailable now", "Failed to parse grammar"])
def test_a_server_without_schemas_is_asked_without_one_and_one_warning_is_logged(
    server: Server, home: Path, caplog: pytest.LogCaptureFixture, reason: str
) -> None:
    async def step(exchange: api.Exchange) -> None:
        refused = api.refuse(400, json.dumps({"error": {"message": reason}}))
        await (refused if "response_format" in exchange.request.body else api.answer())(exchange)

    server.otherwise = step
    runtime = setup(server, home, concurrency=4)
    for _ in range(2):  # two steps of a build, each with an LLM that it opens
        chat = open_chat(card(), runtime)
        assert len(texts(chat.complete([replace(request, schema=SCHEMA) for request in numbered(8)]))) == 8
    assert sum("does not accept a JSON schema for org/m" in message for message in caplog.messages) == 1
    texts(open_chat(card(), runtime).complete([replace(request, schema=SCHEMA) for request in ask("later")]))
    assert "response_format" not in server.requests[-1].body
    texts(opened(server, home).complete([replace(request, schema=SCHEMA) for request in ask("elsewhere")]))
    assert "response_format" in server.requests[-2].body, "another runtime tries for itself"


def test_identical_requests_are_asked_once_and_samples_apart(server: Server, home: Path) -> None:
    chat = opened(server, home)
    requests = ask("gout", "gout", seed=42) + ask("gout", seed=42, sample=1) + ask("gout", temperature=0.5)
    assert texts(chat.complete(requests)) == [reply_to("gout")] * 4
    assert sorted(r.body.get("seed", 0) for r in server.requests) == [0, 42, 43], "each sample has its own seed"


def test_surrogates_and_unusual_line_ends_survive(server: Server, home: Path) -> None:
    content = "a\u2028b\x85c 😀"
    line = json.dumps(api.chunk({"content": content}, "stop"), ensure_ascii=False).encode()
    server.script = [api.streamed(b"data: " + line[:40], line[40:] + b"\r\n\r\n: comment\n\n")]
    assert texts(opened(server, home).complete(ask("lone \ud800"))) == [content]
    assert server.requests[0].question == "lone �"


def test_complete_works_inside_a_running_loop_and_from_threads(server: Server, home: Path) -> None:
    server.otherwise = api.answer(delay=0.05)
    chat = opened(server, home)

    async def notebook() -> Any:
        return chat.complete(ask("gout"))

    assert texts(asyncio.run(notebook())) == [reply_to("gout")]
    got: list[Any] = []
    threads = [threading.Thread(target=lambda: got.append(chat.complete(numbered(3)))) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(got) == 3 and len(server.requests) == 4


def test_progress_is_reported_to_a_listener(server: Server, home: Path) -> None:
    opened(server, home).complete(numbered(2))
    seen: list[Progress] = []
    with listening(seen.append):
        opened(server, home).complete(numbered(5))
    assert (seen[-1].what, seen[-1].done, seen[-1].total, seen[-1].before) == ("answers", 5, 5, 2)


def test_settings_are_sent_in_the_form_of_a_chat_api(server: Server, home: Path) -> None:
    sampling = {"temperature": 0.7, "top_p": 0.8, "seed": 42, "max_tokens": 99, "stop": ("</search>",)}
    opened(server, home).complete(ask("gout", **sampling))
    body = server.requests[0].body
    assert {name: body[name] for name in sampling} == sampling | {"stop": ["</search>"]}
    assert body["stream"] is True and body["stream_options"] == {"include_usage": True}
    assert not body.keys() & {"top_k", "repetition_penalty", "chat_template_kwargs", "max_completion_tokens"}


def test_a_reasoning_api_gets_no_temperature(server: Server, home: Path) -> None:
    opened(server, home, api_style="reasoning").complete(ask("gout", temperature=0.7, top_p=0.8, max_tokens=99))
    body = server.requests[0].body
    assert body["max_completion_tokens"] == 99
    assert not body.keys() & {"temperature", "top_p", "max_tokens"}


def test_settings_that_only_some_servers_accept_are_sent_only_if_set(server: Server, home: Path) -> None:
    opened(server, home, thinking=True).complete(ask("gout", top_k=20, repetition_penalty=1.05))
    body = server.requests[0].body
    assert (body["top_k"], body["repetition_penalty"]) == (20, 1.05)
    assert body["chat_template_kwargs"] == {"enable_thinking": True}
    assert not body.keys() & {"temperature", "top_p", "seed", "stop", "max_tokens"}


def test_an_answer_is_saved_before_the_stream_is_closed(server: Server, home: Path) -> None:
    """A stop between the end mark and the end of the stream loses nothing."""
    server.otherwise = api.streamed(api.chunk({"content": "Gout."}, "stop"), api.DONE, close=False)
    chat = opened(server, home)
    kept: list[bool] = []

    async def drain(answer: HTTPAnswer, seconds: float) -> None:
        kept.append(not unanswered(chat, ask("gout")))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(HTTPAnswer, "drain", drain)
        texts(chat.complete(ask("gout")))
    assert kept == [True]


def test_an_answer_is_saved_before_its_bill_arrives_and_the_bill_is_added(server: Server, home: Path) -> None:
    bill = b'data: {"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 3}}\n\n'
    server.otherwise = api.streamed(api.chunk({"content": "Gout."}, "stop"), bill, api.DONE)
    chat, real = opened(server, home), openai._take_events
    kept: list[bool] = []

    async def take(events: AsyncIterator[bytes], reply: Reply, until_complete: bool = False) -> None:
        if not until_complete:  # what comes is the bill
            kept.append(not unanswered(chat, ask("gout")))
        await real(events, reply, until_complete)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(openai, "_take_events", take)
        chat.answers(ask("gout"))
    assert kept == [True]
    [answer] = opened(server, home).answers(ask("gout"))
    assert isinstance(answer, RawAnswer) and not answer.estimated
    assert (answer.prompt_tokens, answer.completion_tokens) == (7, 3) and len(server.requests) == 1


@pytest.mark.parametrize(
    "delta",
    [
        {"content": "Let me look.", "tool_calls": [{"index": 0, "function": {"name": "search", "arguments": "{}"}}]},
        {"content": "Let me look.", "function_call": {"name": "search", "arguments": "{}"}},
    ],
)
def test_text_beside_a_tool_call_is_not_an_answer(server: Server, home: Path, delta: dict[str, Any]) -> None:
    server.otherwise = api.streamed(api.chunk(delta), api.chunk({}, "stop"), api.DONE)
    one(opened(server, home).complete(ask("gout")), "unfinished")


@pytest.mark.parametrize("tokens", ["1" + "0" * 4000, "1" + "0" * 5000, "-1", "1.5", "null"])
def test_an_invalid_bill_is_replaced_by_an_estimate(server: Server, home: Path, tokens: str) -> None:
    piece = json.dumps(api.chunk({"content": "Gout."}, "stop"))[:-1]
    usage = f'"usage": {{"prompt_tokens": {tokens}, "completion_tokens": {tokens}}}'
    server.otherwise = api.streamed(
        api.chunk({"content": ""}, "stop"), f"data: {piece}, {usage}}}\n\n".encode(), api.DONE
    )
    (answer,) = opened(server, home).answers(ask("gout"))
    assert isinstance(answer, RawAnswer) and answer.estimated and answer.prompt_tokens < 100


def test_an_answer_that_never_ends_is_stopped(server: Server, home: Path) -> None:
    async def endless(exchange: api.Exchange) -> None:
        await exchange.begin_stream()
        while not exchange.writer.is_closing():
            await exchange.event(api.chunk({"content": "and " * 100_000}))

    server.plan = {"gout": [endless]}
    first, second = opened(server, home, concurrency=1).complete(ask("asthma", "gout"))
    assert isinstance(first, Generation)
    assert "is larger than 16 MB" in one([second], "invalid").message


def test_a_list_of_text_parts_is_joined_and_other_parts_are_refused() -> None:
    reply = Reply()
    parts = [{"type": "text", "text": "It is "}, {"type": "text", "text": "gout."}]
    reply.take(json.dumps({"choices": [{"message": {"content": parts}, "finish_reason": "stop"}]}).encode(), whole=True)
    assert reply.answer(ask("q")[0], 0.1).content == "It is gout."
    picture = {"choices": [{"message": {"content": [{"type": "image_url", "image_url": {}}]}}]}
    with pytest.raises(MalformedReply, match="content has a part of type image_url, but only text is supported"):
        Reply().take(json.dumps(picture).encode(), whole=True)
