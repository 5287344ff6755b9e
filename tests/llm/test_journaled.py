"""What a model wrote before cleaning, for those who parse its reasoning; journaled and counted like cleaned answers."""

from pathlib import Path

import pytest

from r2med.llm.chat import Failure, RawAnswer
from support import chat_server as api
from support.chat_models import ask, one, opened, texts
from support.chat_server import Server

pytestmark = pytest.mark.usefixtures("marked_keys")

SEARCHES = "<think>I need more. <search>podagra at night</search>"


@pytest.fixture
def server(chat_server: Server) -> Server:
    return chat_server


def test_reasoning_that_cleaning_would_take_away_is_there(server: Server, home: Path) -> None:
    server.otherwise = api.answer(SEARCHES, reasoning="in a field of its own")
    (got,) = opened(server, home, answer="think").answers(ask("gout"))
    assert isinstance(got, RawAnswer)
    assert (got.content, got.reasoning, got.finish_reason) == (SEARCHES, "in a field of its own", "stop")
    assert (got.prompt_tokens, got.completion_tokens) == (6, 12) and got.seconds > 0


@pytest.mark.parametrize(
    ("step", "kind", "finish"),
    [
        (api.answer(SEARCHES), "no_marker", "stop"),
        (api.answer("half", finish="length"), "truncated", "length"),
        (api.answer(""), "no_marker", "stop"),
    ],
)
def test_what_is_no_answer_once_cleaned_is_one_here(
    server: Server, home: Path, step: api.Step, kind: str, finish: str
) -> None:
    server.otherwise = step
    chat = opened(server, home, answer="think")
    (got,) = chat.answers(ask("gout"))
    assert isinstance(got, RawAnswer) and got.finish_reason == finish
    one(chat.complete(ask("gout")), kind)
    assert len(server.requests) == 1, "both read the same journal"


def test_it_is_counted_and_kept_like_a_cleaned_answer(server: Server, home: Path) -> None:
    one_by_one = ask("gout", "gout", "asthma")
    raw, cleaned = opened(server, home / "raw"), opened(server, home / "cleaned")
    contents = [answer.content for answer in raw.answers(one_by_one) if isinstance(answer, RawAnswer)]
    assert contents == texts(cleaned.complete(one_by_one))
    again = opened(server, home / "raw")
    assert again.answers(one_by_one) == opened(server, home / "raw").answers(one_by_one)
    assert len(server.requests) == 4


def test_a_failure_that_is_not_the_models_is_a_failure_here_too(server: Server, home: Path) -> None:
    server.plan = {"gout": [api.refuse(422)]}
    chat = opened(server, home)
    failed, fine = chat.answers(ask("gout", "asthma"))
    assert isinstance(failed, Failure) and failed.kind == "bad_request" and isinstance(fine, RawAnswer)
    assert isinstance(chat.answers(ask("gout"))[0], RawAnswer), "and it is tried again"
