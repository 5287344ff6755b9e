"""LLMs behind an endpoint: an error that affects every request stops all of them with one line."""

import asyncio
import json
from pathlib import Path

import pytest

from r2med.foundation.core.errors import UserError
from r2med.foundation.net import request_loop
from r2med.models.llm import openai
from r2med.models.llm.chat import Failure, Generation
from r2med.models.llm.journaled import open_chat
from support import chat_server as api
from support.chat_models import card, numbered, one, opened, setup, unanswered
from support.chat_server import Server
from support.loopback import nobody_listening

pytestmark = pytest.mark.usefixtures("marked_keys")


def hopeless(server: Server, home: Path, said: str, attempts: int = 1) -> str:
    with pytest.raises(UserError, match=said) as error:
        opened(server, home, concurrency=4).complete(numbered(100))
    assert "\n" not in str(error.value)
    assert len(server.requests) <= 4 * attempts, "nobody asks a hundred times"
    return str(error.value)


def test_a_wrong_key_stops_everything(server: Server, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    server.otherwise = api.refuse(401)
    hopeless(server, home, "refuses the key in OPENAI_API_KEY")
    server.otherwise = api.refuse(403)
    server.requests.clear()
    hopeless(server, home, "forbids the request to the key in OPENAI_API_KEY")
    monkeypatch.delenv("OPENAI_API_KEY")
    server.otherwise = api.refuse(401)
    server.requests.clear()
    hopeless(server, home, "needs a key; set the environment variable OPENAI_API_KEY")
    server.otherwise = api.refuse(403)
    server.requests.clear()
    hopeless(server, home, "forbids the request, which had no key; OPENAI_API_KEY is not set")


@pytest.mark.parametrize(
    "page",
    [
        api.raw(b"<!doctype html><title>Welcome</title>", "text/html"),
        api.raw(b"<!doctype html><title>Welcome</title>"),
        api.raw(b"Welcome", "text/plain"),
        api.raw(b'{"welcome": true}'),
    ],
)
def test_an_address_that_gives_no_answers_stops_everything(server: Server, home: Path, page: api.Step) -> None:
    server.otherwise = page
    said = hopeless(server, home, r"^m at 127.0.0.1:\d+: the answer is .*; check the base URL \(3 attempts\)$", 3)
    assert said.count("m at") == 1 and "Welcome" not in said


@pytest.mark.parametrize("status", [405, 501])
def test_an_address_that_accepts_no_questions_stops_everything(server: Server, home: Path, status: int) -> None:
    server.otherwise = api.refuse(status, "<html><title>Unsupported method</title><p>No</p></html>")
    hopeless(
        server, home, rf"m at \S+ answered HTTP {status}: Unsupported method \(asked .* and the base URL is right\)"
    )


def test_one_damaged_answer_is_a_failure_of_its_own(server: Server, home: Path) -> None:
    server.plan = {"question 7": [api.invalid_json] * 3}
    outcomes = opened(server, home, concurrency=1).complete(numbered(10))
    assert one(outcomes[7:8], "invalid")
    assert len([o for o in outcomes if isinstance(o, Generation)]) == 9


@pytest.mark.parametrize(("status", "said"), [(404, "Not Found"), (400, "The model `org/m` does not exist")])
def test_an_unknown_model_stops_everything(server: Server, home: Path, status: int, said: str) -> None:
    server.otherwise = api.refuse(status, json.dumps({"error": {"message": said}}))
    hopeless(server, home, f"m at 127.0.0.1:.*{status}.*'org/m'")


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (400, "Unsupported parameter: 'max_tokens' is not supported with this model."),
        (400, "Unsupported value: 'temperature' does not support 0.7 with this model."),
        (400, "Unrecognized request argument supplied: top_k"),
        (422, "Extra inputs are not permitted"),
    ],
)
def test_a_setting_that_the_api_does_not_accept_stops_everything(
    server: Server, home: Path, status: int, said: str
) -> None:
    server.otherwise = api.refuse(status, json.dumps({"error": {"message": said}}))
    hopeless(server, home, f"m at 127.0.0.1:.*{status}: {said}.*the LLM's card")


def test_an_account_without_money_stops_everything(server: Server, home: Path) -> None:
    server.otherwise = api.refuse(429, '{"error": {"message": "quota", "code": "insufficient_quota"}}')
    hopeless(server, home, "429: quota")


def test_a_server_that_is_down_gives_a_one_line_error(home: Path) -> None:
    with nobody_listening() as address:
        hopeless(
            Server(address),
            home,
            r"connection to m at 127.0.0.1:\d+ failed \(\w+\); check that it is running .* \(6 attempts\)",
        )


def test_one_forbidden_question_is_a_failure_of_its_own(server: Server, home: Path) -> None:
    server.plan = {"question 7": [api.refuse(403)]}
    outcomes = opened(server, home, concurrency=1).complete(numbered(10))
    assert one(outcomes[7:8], "auth")
    assert len([o for o in outcomes if isinstance(o, Generation)]) == 9


def test_running_requests_are_saved_when_everything_stops(server: Server, home: Path) -> None:
    refused = asyncio.Event()

    async def refuse(exchange: api.Exchange) -> None:
        await api.refuse(401)(exchange)
        refused.set()

    async def answer_later(exchange: api.Exchange) -> None:
        await refused.wait()
        await api.answer(delay=0.2)(exchange)

    server.plan = {"question 0": [answer_later], "question 1": [refuse]}
    with pytest.raises(UserError):
        opened(server, home, concurrency=2).complete(numbered(10))
    assert server.served["question 0"] == 1 and len(server.requests) < 10
    asked_again = [request.messages[-1].content for request in unanswered(opened(server, home), numbered(10))]
    assert asked_again == [f"question {i}" for i in range(10) if f"question {i}" not in server.served]


@pytest.mark.parametrize("status", [500, 502])
def test_an_endpoint_with_a_dozen_equal_failures_is_given_up(server: Server, home: Path, status: int) -> None:
    server.plan = {f"question {i}": [api.refuse(status)] * 2 for i in range(5, 100)}
    said = rf"answered HTTP {status}: no; the last 12 questions all failed like this \(2 attempts\); .* run again"
    with pytest.raises(UserError, match=said):
        opened(server, home, concurrency=1, attempts=2).complete(numbered(100))
    assert len(server.requests) == 5 + 2 * 12
    assert len(unanswered(opened(server, home), numbered(100))) == 95, "what was answered is kept"


def test_failures_of_the_questions_themselves_are_no_reason_to_give_up(server: Server, home: Path) -> None:
    server.plan = {f"question {i}": [api.refuse(400)] for i in range(30)}
    outcomes = opened(server, home, concurrency=1).complete(numbered(40))
    assert [type(outcome) for outcome in outcomes] == [Failure] * 30 + [Generation] * 10


def test_an_endpoint_that_never_answers_is_given_up_after_a_dozen_attempts(server: Server, home: Path) -> None:
    server.otherwise = api.hang
    with pytest.raises(UserError, match=r"was silent for 0\.3 s, \d\d times and without one answer; check"):
        opened(server, home, concurrency=6, idle=0.3).complete(numbered(876))
    assert 12 <= len(server.requests) <= 30


def test_a_log_line_names_a_silent_endpoint(
    server: Server, home: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(request_loop, "SILENT_SECONDS", 0.05)
    server.script = [api.hang]
    [outcome] = opened(server, home, idle=0.5, attempts=2).complete(numbered(1))
    assert isinstance(outcome, Generation)
    said = [record.message for record in caplog.records if "has not answered within" in record.message]
    assert len(said) == 1 and "waits up to 0.5 s for a byte" in said[0]


def test_a_long_retry_after_ends_the_run_with_one_line(server: Server, home: Path) -> None:
    server.otherwise = api.refuse(429, retry_after="86400")
    with pytest.raises(
        UserError, match=r"the last 12 questions all failed like this; it asks to wait 86400 s; paid answers"
    ):
        opened(server, home, concurrency=4).complete(numbered(100))
    assert len(server.requests) <= 12 + 4


@pytest.mark.parametrize("location", ["http://elsewhere.example/v1/chat/completions", "/v1/chat/completions"])
def test_a_redirect_is_not_followed(server: Server, home: Path, location: str) -> None:
    server.otherwise = api.refuse(307, "", Location=location)
    hopeless(server, home, "answered HTTP 307 and redirects to .*; this is not followed")


def test_an_endpoint_that_cannot_be_reached_is_not_tried_again_for_the_next_dataset(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with nobody_listening() as address:
        runtime = setup(Server(address), home, attempts=2)
        with pytest.raises(UserError, match="check that it is running"):
            open_chat(card(), runtime).complete(numbered(2))
        monkeypatch.setattr(openai, "run_sync", lambda work: pytest.fail("it was tried again"))
        with pytest.raises(UserError, match="check that it is running"):
            open_chat(card(), runtime).complete(numbered(3))
