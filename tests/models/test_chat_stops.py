"""LLMs behind an endpoint: what makes every request pointless stops them all, in one line."""

import json
from pathlib import Path
from typing import Any

import pytest

from r2med.errors import UserError
from r2med.models.chat.contracts import Generation
from support import chat_server as api
from support.chat_models import numbered, one, opened
from support.chat_server import Server

pytestmark = pytest.mark.usefixtures("marked_keys")


@pytest.fixture
def server(chat_server: Server) -> Server:
    return chat_server


def hopeless(server: Server, home: Path, said: str, **changes: Any) -> str:
    with pytest.raises(UserError, match=said) as error:
        opened(server, home, concurrency=4, **changes).complete(numbered(100))
    assert "\n" not in str(error.value)
    assert len(server.requests) <= 4, "nobody asks a hundred times"
    return str(error.value)


def test_a_wrong_key_stops_everything(server: Server, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    server.otherwise = api.refuse(401)
    hopeless(server, home, "refuses the key in OPENAI_API_KEY")
    server.otherwise = api.refuse(403)
    server.requests.clear()
    hopeless(server, home, "refuses the key in OPENAI_API_KEY")
    monkeypatch.delenv("OPENAI_API_KEY")
    server.otherwise = api.refuse(401)
    server.requests.clear()
    hopeless(server, home, "needs a key: set the environment variable OPENAI_API_KEY")


@pytest.mark.parametrize(("status", "said"), [(404, "Not Found"), (400, "The model `org/m` does not exist")])
def test_an_unknown_model_stops_everything(server: Server, home: Path, status: int, said: str) -> None:
    server.otherwise = api.refuse(status, json.dumps({"error": {"message": said}}))
    hopeless(server, home, f"m at 127.0.0.1:.*{status}.*'org/m'")


def test_an_account_without_money_stops_everything(server: Server, home: Path) -> None:
    server.otherwise = api.refuse(429, '{"error": {"message": "quota", "code": "insufficient_quota"}}')
    hopeless(server, home, "429: quota")


def test_a_server_that_is_down_is_one_line(home: Path) -> None:
    with api.serve() as server:
        pass
    hopeless(server, home, r"connection to m at 127.0.0.1:\d+ failed \(\w+\) \(6 attempts\)")


def test_a_forbidden_question_among_others_is_a_failure_of_its_own(server: Server, home: Path) -> None:
    server.plan = {"question 7": [api.refuse(403)]}
    outcomes = opened(server, home, concurrency=1).complete(numbered(10))
    assert one(outcomes[7:8], "auth")
    assert len([o for o in outcomes if isinstance(o, Generation)]) == 9


def test_what_was_under_way_is_kept_when_all_stops(server: Server, home: Path) -> None:
    server.plan = {"question 0": [api.answer(delay=0.3)], "question 1": [api.refuse(401)]}
    with pytest.raises(UserError):
        opened(server, home, concurrency=2).complete(numbered(10))
    assert len(opened(server, home).unanswered(numbered(10))) == 9
