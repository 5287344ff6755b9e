"""Raw answers before cleaning, which are saved and counted like cleaned answers."""

import contextlib
import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from r2med.foundation.store import Store
from r2med.models.llm.chat import Failure, Generation, RawAnswer
from r2med.models.llm.journal import journal_file
from r2med.models.llm.journaled import JournaledChat
from support import chat_server as api
from support.chat_models import ask, card, one, opened, texts, unanswered
from support.chat_server import Server, reply_to

pytestmark = pytest.mark.usefixtures("marked_keys")

SEARCHES = "<think>I need more. <search>podagra at night</search>"


def test_a_raw_answer_contains_the_reasoning(server: Server, home: Path) -> None:
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
def test_a_text_that_cleaning_refuses_is_a_raw_answer(
    server: Server, home: Path, step: api.Step, kind: str, finish: str
) -> None:
    server.otherwise = step
    chat = opened(server, home, answer="think")
    (got,) = chat.answers(ask("gout"))
    assert isinstance(got, RawAnswer) and got.finish_reason == finish
    one(chat.complete(ask("gout")), kind)
    assert len(server.requests) == 1, "both read the same journal"


def test_a_raw_answer_is_counted_and_saved_like_a_cleaned_one(server: Server, home: Path) -> None:
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


def of_an_earlier_run(home: Path) -> None:
    """Change the journal's rows to look like those of another process."""
    with contextlib.closing(sqlite3.connect(journal_file(Store(home)))) as sql, sql:
        rows = sql.execute("SELECT key, value FROM journal").fetchall()
        for key, value in rows:
            row = json.loads(value)
            row["process"] = "another"
            sql.execute("UPDATE journal SET value = ? WHERE key = ?", (json.dumps(row).encode(), key))


def test_a_local_server_is_asked_again_for_unusable_answers_only_on_request(server: Server, home: Path) -> None:
    server.plan = {"gout": [api.answer("")]}
    one(opened(server, home).complete(ask("gout", "asthma"))[:1], "empty")
    of_an_earlier_run(home)  # as after a kill: what was answered stays as it is
    one(opened(server, home).complete(ask("gout", "asthma"))[:1], "empty")
    assert len(server.requests) == 2
    assert unanswered(opened(server, home, ask_again=True), ask("gout", "asthma")) == ask("gout")
    assert texts(opened(server, home, ask_again=True).complete(ask("gout"))) == [reply_to("gout")]
    of_an_earlier_run(home)
    texts(opened(server, home, ask_again=True).complete(ask("gout", "asthma")))
    assert len(server.requests) == 3, "an answer that can be used is not asked for again"


@pytest.mark.parametrize("ask_again", [False, True])
def test_a_provider_is_asked_again_only_on_request(server: Server, home: Path, ask_again: bool) -> None:
    class Provider:
        is_local = False
        asked = 0

        def key(self) -> dict[str, Any]:
            return {"backend": "test"}

        def answer(self, requests: Any, done: Any) -> None:
            for number, _ in enumerate(requests):
                Provider.asked += 1
                done(number, RawAnswer("" if Provider.asked == 1 else "Gout."))

    Provider.asked = 0
    one(JournaledChat(card(), Provider(), Store(home)).complete(ask("gout")), "empty")
    of_an_earlier_run(home)
    again = JournaledChat(card(), Provider(), Store(home), ask_again=ask_again).complete(ask("gout"))
    assert isinstance(again[0], Generation if ask_again else Failure)
    assert Provider.asked == 1 + ask_again


def test_a_cut_passage_is_kept_if_useful_and_not_asked_again(server: Server, home: Path) -> None:
    server.otherwise = api.answer("Gout hurts. It is a dis", finish="max_tokens")
    chat = opened(server, home)
    (got,) = chat.complete(ask("gout"), keep_cut=True)
    assert isinstance(got, Generation) and (got.text, got.finish_reason) == ("Gout hurts.", "length")
    one(chat.complete(ask("gout")), "truncated")
    of_an_earlier_run(home)
    assert unanswered(opened(server, home), ask("gout"), keep_cut=True) == []
    assert len(unanswered(opened(server, home, ask_again=True), ask("gout"))) == len(server.requests) == 1
