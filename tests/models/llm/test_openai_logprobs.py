"""Log-probabilities of tokens: requested, read from both endpoints, saved; a server without them is refused."""

import json
from pathlib import Path

import pytest

from r2med.foundation.core.errors import UserError
from r2med.models.llm.chat import LAST_TOKENS, ChatRequest, Message, RawAnswer, Sampling
from r2med.models.llm.journal import request_key
from support import chat_server as api
from support.chat_models import opened
from support.chat_server import Server

pytestmark = pytest.mark.usefixtures("marked_keys")

TOKENS = [("[", {"[": -0.1, "(": -2.5}), ("7", {"7": -0.25, "8": -1.75})]
SAID = RawAnswer("[7", first_choices=(("[", -0.1), ("(", -2.5)), last_tokens=(("[", -0.1), ("7", -0.25)))


def request(raw: bool) -> ChatRequest:
    sampling = Sampling(max_tokens=5)
    if raw:
        return ChatRequest(prompt="Score:", sampling=sampling, top_logprobs=20)
    return ChatRequest((Message("user", "Score?"),), sampling, top_logprobs=20)


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("raw", [True, False])
def test_both_endpoints_report_log_probabilities_and_the_journal_saves_them(
    server: Server, home: Path, raw: bool, stream: bool
) -> None:
    server.otherwise = api.answer("[7", logprobs=TOKENS, stream=stream)
    for _ in range(2):
        (got,) = opened(server, home).answers([request(raw)])
        assert isinstance(got, RawAnswer)
        assert (got.content, got.first_choices, got.last_tokens) == ("[7", SAID.first_choices, SAID.last_tokens)
    (sent,) = server.requests
    asked = {"logprobs": 20} if raw else {"logprobs": True, "top_logprobs": 20}
    assert {name: value for name, value in sent.body.items() if "logprobs" in name} == asked


def test_only_the_last_tokens_are_saved(server: Server, home: Path) -> None:
    tokens = [(f"t{number}", {f"t{number}": -float(number)}) for number in range(50)]
    server.otherwise = api.answer("long", logprobs=tokens)
    (got,) = opened(server, home).answers([request(raw=False)])
    assert isinstance(got, RawAnswer)
    assert got.first_choices == (("t0", 0.0),)
    assert [token for token, _ in got.last_tokens] == [f"t{number}" for number in range(50)][-LAST_TOKENS:]


def test_a_server_without_log_probabilities_gives_a_one_line_error_and_its_answer_is_not_saved(
    server: Server, home: Path
) -> None:
    server.otherwise = api.answer("[7")
    with pytest.raises(UserError, match="no log-probabilities of tokens") as error:
        opened(server, home).answers([request(raw=False)])
    assert "\n" not in str(error.value)
    server.otherwise = api.answer("[7", logprobs=TOKENS)
    (got,) = opened(server, home).answers([request(raw=False)])
    assert isinstance(got, RawAnswer) and got.last_tokens == SAID.last_tokens


def test_log_probabilities_that_cannot_be_read_are_a_failure_of_the_answer(server: Server, home: Path) -> None:
    choice = {"index": 0, "message": {"content": "7"}, "finish_reason": "stop", "logprobs": {"content": [{"token": 1}]}}
    server.otherwise = api.raw(json.dumps({"choices": [choice]}).encode())
    with pytest.raises(UserError, match="log-probabilities that cannot be read"):
        opened(server, home).answers([request(raw=False)])


@pytest.mark.parametrize("value", ["NaN", "Infinity", "5000.0", "1" * 400])
@pytest.mark.parametrize("raw", [False, True])
def test_numbers_that_are_no_log_probabilities_are_a_failure_of_the_answer(
    value: str, raw: bool, server: Server, home: Path
) -> None:
    number = -int(value) if value.isdigit() else float(value)
    listed = {"content": [{"token": "7", "logprob": -0.1, "top_logprobs": [{"token": "7", "logprob": number}]}]}
    choice = {"index": 0, "text": "7", "message": {"content": "7"}, "finish_reason": "stop", "logprobs": listed}
    server.otherwise = api.raw(json.dumps({"choices": [choice]}).encode())
    with pytest.raises(UserError, match="log-probabilities that cannot be read"):
        opened(server, home).answers([request(raw=raw)])


def test_requests_without_log_probabilities_keep_their_old_keys() -> None:
    plain = ChatRequest((Message("user", "Score?"),), Sampling(max_tokens=5))
    wanted = ChatRequest((Message("user", "Score?"),), Sampling(max_tokens=5), top_logprobs=20)
    assert request_key({"model": "m"}, plain) != request_key({"model": "m"}, wanted)
