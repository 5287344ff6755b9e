"""Tool calls: offered, read from streams and whole replies, sent back, saved; a server without them is refused."""

import json
from pathlib import Path
from typing import Any

import pytest

from r2med.foundation.core.errors import UserError
from r2med.models.llm.chat import ChatRequest, Message, RawAnswer, Sampling, ToolCall
from r2med.models.llm.costs import request_tokens
from support import chat_server as api
from support.chat_models import opened
from support.chat_server import Server

pytestmark = pytest.mark.usefixtures("marked_keys")

TOOLS = json.dumps([{"name": "search", "description": "Search.", "parameters": {"type": "object", "properties": {}}}])
CALLS = [("search", '{"query": "gout"}'), ("think", '{"thought": "ürate"}')]
ASKED = ChatRequest((Message("user", "Why?"),), Sampling(max_tokens=50), tools=TOOLS)


def calls_of(answer: object) -> list[tuple[str, str]]:
    assert isinstance(answer, RawAnswer)
    return [(call.name, call.arguments) for call in answer.calls]


@pytest.mark.parametrize("stream", [True, False])
def test_calls_are_read_from_streams_and_whole_replies_and_the_journal_saves_them(
    server: Server, home: Path, stream: bool
) -> None:
    server.otherwise = api.answer("Let me see.", calls=CALLS, finish="tool_calls", stream=stream)
    first, second = (opened(server, home).answers([ASKED])[0] for _ in range(2))
    assert calls_of(first) == CALLS and first == second
    assert isinstance(first, RawAnswer) and (first.content, first.finish_reason) == ("Let me see.", "tool_calls")
    assert len({call.id for call in first.calls}) == 2
    (sent,) = server.requests
    assert sent.body["tools"] == [{"type": "function", "function": json.loads(TOOLS)[0]}]


@pytest.mark.parametrize(
    ("pieces", "calls"),
    [
        # Whole calls without an index, one event each.
        ([{"id": "1", "function": {"name": "a", "arguments": "{}"}}, {"id": "2", "function": {"name": "b"}}], "a{} b"),
        # Pieces of the second call between those of the first.
        (
            [
                {"index": 0, "id": "1", "function": {"name": "a", "arguments": "{"}},
                {"index": 1, "id": "2", "function": {"name": "b", "arguments": "["}},
                {"index": 0, "function": {"arguments": "}"}},
                {"index": 1, "function": {"arguments": "]"}},
            ],
            "a{} b[]",
        ),
        # Arguments as an object.
        ([{"function": {"name": "a", "arguments": {"q": 1}}}], 'a{"q": 1}'),
        # Arguments that are not JSON are the business of the caller.
        ([{"index": 0, "function": {"name": "a", "arguments": "{q"}}], "a{q"),
    ],
)
def test_the_pieces_of_a_stream_make_the_calls(
    server: Server, home: Path, pieces: list[dict[str, Any]], calls: str
) -> None:
    events = [api.chunk({"tool_calls": [piece]}) for piece in pieces]
    server.otherwise = api.streamed(*events, api.chunk({}, "tool_calls"), api.DONE)
    (answer,) = opened(server, home).answers([ASKED])
    assert " ".join(name + arguments for name, arguments in calls_of(answer)) == calls


@pytest.mark.parametrize(
    "bad", [3, [3], [{"function": "a"}], [{"index": "x", "function": {}}], [{"function": {"name": 3}}]]
)
def test_calls_that_do_not_follow_the_protocol_are_not_an_answer(server: Server, home: Path, bad: Any) -> None:
    server.script = [api.streamed(api.chunk({"tool_calls": bad}), api.chunk({}, "stop"), api.DONE)]
    server.otherwise = api.answer("", calls=CALLS)
    (answer,) = opened(server, home).answers([ASKED])
    assert calls_of(answer) == CALLS and len(server.requests) == 2, "asked again"


def test_a_call_that_the_token_limit_cut_is_marked(server: Server, home: Path) -> None:
    server.otherwise = api.answer("", calls=[("search", '{"que')], finish="length")
    (answer,) = opened(server, home).answers([ASKED])
    assert calls_of(answer) == [("search", '{"que')]
    assert isinstance(answer, RawAnswer) and answer.finish_reason == "length"


def test_calls_and_results_are_sent_in_the_form_of_the_api(server: Server, home: Path) -> None:
    call = ToolCall("call00001", "search", '{"query": "gout"}')
    parts = (*ASKED.messages, Message("assistant", "", (call,)), Message("tool", "[d1] Gout", call_id="call00001"))
    opened(server, home).answers([ChatRequest(parts, tools=TOOLS)])
    asked, called, told = server.requests[0].body["messages"]
    assert asked == {"role": "user", "content": "Why?"}
    function = {"name": "search", "arguments": '{"query": "gout"}'}
    assert called["content"] is None
    assert called["tool_calls"] == [{"id": "call00001", "type": "function", "function": function}]
    assert told == {"role": "tool", "content": "[d1] Gout", "tool_call_id": "call00001"}


def test_tools_and_calls_count_as_tokens() -> None:
    plain = ChatRequest((Message("user", "Why?"),))
    call = ToolCall("1", "search", "x" * 400)
    assert request_tokens(ASKED) == request_tokens(plain) + -(-len(TOOLS) // 4)
    assert request_tokens(ChatRequest((Message("assistant", "Why?", (call,)),))) > request_tokens(plain) + 100


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (400, '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'),
        (400, "registry.ollama.ai/library/x:latest does not support tools"),
        (404, "No endpoints found that support tool use. Try disabling search"),
        (500, "tools param requires --jinja flag"),
        (400, "Function calling is not supported by this model"),
        (422, "Unrecognized request argument supplied: tools"),
    ],
)
def test_a_server_that_refuses_tools_is_one_line_that_says_what_to_set(
    server: Server, home: Path, status: int, message: str
) -> None:
    server.otherwise = api.refuse(status, json.dumps({"error": {"message": message}}))
    with pytest.raises(UserError, match=r"does not accept tool calls for .*calls=tags") as error:
        opened(server, home).answers([ASKED])
    assert "\n" not in str(error.value)


def test_a_conversation_that_is_too_long_is_not_a_refusal_of_tools(server: Server, home: Path) -> None:
    message = "This model's maximum context length is 9 tokens (8 in the messages, 5 in the functions)"
    server.otherwise = api.refuse(400, json.dumps({"error": {"message": message}}))
    (answer,) = opened(server, home).answers([ASKED])
    assert getattr(answer, "kind", "") == "context_length"
