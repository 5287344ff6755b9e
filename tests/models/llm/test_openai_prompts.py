"""Raw prompts, which a model continues without a chat template, are treated like other requests."""

from pathlib import Path
from typing import Any

import pytest

from r2med.models.llm.chat import ChatRequest, Generation, Message, Sampling
from r2med.models.llm.costs import dollars_at_most, request_tokens
from r2med.models.llm.journaled import open_chat
from support import chat_server as api
from support.chat_models import HASTY, ask, card, one, opened, setup, texts
from support.chat_server import Server, reply_to

pytestmark = pytest.mark.usefixtures("marked_keys")

PROMPT = "<|im_start|>user\nWhat is gout?<|im_end|>\n<|im_start|>assistant\n"


def continued(*prompts: str, sample: int = 0, **sampling: Any) -> list[ChatRequest]:
    return [ChatRequest(sampling=Sampling(**sampling), sample=sample, prompt=prompt) for prompt in prompts]


def test_a_request_has_messages_or_a_prompt() -> None:
    for wrong in ({}, {"messages": (Message("user", "x"),), "prompt": "x"}):
        with pytest.raises(ValueError, match="messages or a prompt"):
            ChatRequest(**wrong)  # type: ignore[arg-type]


def test_a_prompt_is_sent_unchanged(server: Server, home: Path) -> None:
    sampling = {"temperature": 0.7, "top_p": 0.8, "seed": 42, "max_tokens": 99, "stop": ("</search>", "</answer>")}
    chat = opened(server, home, thinking=True, api_style="reasoning", answer="plain")
    assert texts(chat.complete(continued(PROMPT, sample=1, top_k=20, **sampling))) == [reply_to(PROMPT)]
    (request,) = server.requests
    assert request.path == "/v1/completions"
    assert request.body == {
        **{"model": "org/m", "prompt": PROMPT, "temperature": 0.7, "top_p": 0.8, "top_k": 20, "seed": 43},
        **{"max_tokens": 99, "stop": ["</search>", "</answer>"], "stream": True},
        "stream_options": {"include_usage": True},
    }


def test_the_limit_of_the_card_is_sent_because_the_default_is_16_tokens(server: Server, home: Path) -> None:
    opened(server, home, max_tokens=777).complete(continued("Gout is"))
    assert server.requests[0].body["max_tokens"] == 777


@pytest.mark.parametrize("stream", [True, False])
def test_answers_streamed_or_whole(server: Server, home: Path, stream: bool) -> None:
    server.otherwise = api.answer(" a disease of joints.", finish="length", stream=stream)
    (got,) = opened(server, home).answers(continued("Gout is"))
    assert got.content == " a disease of joints." and got.finish_reason == "length"  # type: ignore[union-attr]
    assert (got.prompt_tokens, got.completion_tokens) == (2, 4)


def test_prompts_and_conversations_have_different_keys_and_are_asked_once(server: Server, home: Path) -> None:
    requests = continued("gout", "gout", "asthma") + ask("gout")
    chat = opened(server, home)
    assert len(texts(chat.complete(requests))) == 4
    assert len(server.requests) == 3
    assert len(texts(opened(server, home).complete(requests))) == 4
    assert sorted(request.raw for request in server.requests) == [False, True, True]


@pytest.mark.parametrize(
    "fault",
    [
        *(api.refuse(429), api.refuse(500), api.drop, api.hang, api.close_half_way, api.stall_half_way),
        api.streamed(api.text_chunk("Half a pass")),
        api.invalid_json,
    ],
)
def test_temporary_errors_are_retried(server: Server, home: Path, fault: api.Step) -> None:
    server.plan = {"gout": [fault]}
    chat = opened(server, home, **HASTY)
    assert texts(chat.complete(continued("gout"))) == [reply_to("gout")]
    assert len(server.requests) >= 2, "on a busy machine a sound answer may look stalled"


@pytest.mark.parametrize(
    ("step", "kind"),
    [
        (api.refuse(422), "bad_request"),
        (api.refuse(400, '{"error": {"message": "the model\'s maximum context length is 5"}}'), "context_length"),
        (api.streamed(api.text_chunk(5, "stop")), "invalid"),  # type: ignore[arg-type]
        (api.answer("half", finish="length"), "truncated"),
        (api.answer(""), "empty"),
    ],
)
def test_a_permanent_error_is_a_typed_failure(server: Server, home: Path, step: api.Step, kind: str) -> None:
    server.plan = {"gout": [step] * 9}
    outcomes = opened(server, home, concurrency=1).complete(continued("asthma", "gout"))
    assert isinstance(outcomes[0], Generation)
    one(outcomes[1:], kind)


def test_a_prompt_counts_in_estimates_bills_and_the_budget(server: Server, home: Path) -> None:
    (request,) = continued("x" * 400, max_tokens=10)
    assert request_tokens(request) == 100
    assert dollars_at_most(card(), request) == 400 + 1 + 10, "its bytes, and a token that opens it"
    one(opened(server, home, budget=410.0).complete([request]), "budget")
    assert not server.requests
    server.otherwise = api.answer("x" * 40, usage=False)
    paid = setup(server, home, 420.0)
    texts(open_chat(card(), paid).complete([request]))
    assert paid.budget.spent == 110
