"""LLMs behind an endpoint: no question is asked twice, even after kills, damage and parallel runs."""

import errno
import json
import os
import platform
import signal
import threading
import time
from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from subprocess import Popen
from typing import Any

import pytest

from r2med.foundation.core.errors import UserError
from r2med.foundation.store import Store
from r2med.foundation.store.memo import Claims, memo_rows
from r2med.foundation.store.rows import Rows
from r2med.models.llm import journal
from r2med.models.llm.chat import Failure, RawAnswer, ToolCall
from r2med.models.llm.costs import answers_cost
from r2med.models.llm.journal import answers_by_model, decoded_answer, journal_file
from r2med.models.llm.journaled import JournaledChat
from support import chat_server as api
from support.by_day import some_by_day
from support.chat_models import ask, card, numbered, opened, texts, unanswered
from support.chat_server import Server
from support.keys import KEY
from support.processes import PATIENCE, started, wait_for

pytestmark = pytest.mark.usefixtures("marked_keys")


def test_a_second_model_asks_nothing_and_needs_no_key(
    server: Server, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = opened(server, home).complete(numbered(3))
    monkeypatch.delenv("OPENAI_API_KEY")
    chat = opened(server, home, budget=0.0)
    assert unanswered(chat, numbered(4)) == numbered(4)[3:]
    assert chat.complete(numbered(3)) == first
    assert answers_cost(first, card()).completion_tokens == 15
    assert len(server.requests) == 3


def test_cleaning_may_change_without_a_call(server: Server, home: Path) -> None:
    server.otherwise = api.answer("hm\n## Final Response\ngout")
    assert texts(opened(server, home).complete(ask("q"))) == ["hm\n## Final Response\ngout"]
    assert texts(opened(server, home, answer="final-response").complete(ask("q"))) == ["gout"]
    assert len(server.requests) == 1


def test_answers_of_another_model_setting_or_server_are_not_used(server: Server, home: Path) -> None:
    for changes in ({}, {"model": "other"}, {"thinking": True}):
        opened(server, home, **changes).complete(ask("gout"))
    opened(server, home).complete(ask("gout", max_tokens=5))
    assert len(server.requests) == 4
    with api.serve() as other:
        opened(other, home).complete(ask("gout"))
        assert len(other.requests) == 1


def test_an_invalid_journal_file_stops_the_command_and_nothing_is_paid(server: Server, home: Path) -> None:
    file = journal_file(Store(home))
    file.parent.mkdir(parents=True)
    file.write_bytes(content := b"not a database, but somebody's work" * 99)
    with pytest.raises(UserError, match=r"chat.sqlite: this journal of LLM answers is damaged .*\.recover"):
        opened(server, home).complete(ask("gout"))
    assert file.read_bytes() == content
    assert server.requests == []


CHILD = """
import sys
from r2med.models.llm.chat import ChatRequest, Generation, Message, Sampling
from r2med.models.llm.journaled import open_chat
from r2med.foundation.runtime.runtime import Runtime
from r2med.models.llm.llm_cards import LLMCard
from r2med.foundation.store import Store

card, address, home = LLMCard.model_validate_json(sys.argv[1]), sys.argv[2], sys.argv[3]
chat = open_chat(card, Runtime(base_url=address, concurrency=8, first_wait=0.001, store=Store(home)))
system = Message("system", "You are a helpful assistant.")
requests = [ChatRequest((system, Message("user", f"question {i}")), Sampling()) for i in range(100)]
try:
    answers = chat.complete(requests)
except KeyboardInterrupt:
    sys.exit(77)
assert all(isinstance(a, Generation) and a.text == f"A passage about question {i}." for i, a in enumerate(answers))
"""


def child(server: Server, home: Path) -> AbstractContextManager[Popen[str]]:
    return started(["-c", CHILD, card().model_dump_json(), server.address, home], OPENAI_API_KEY=KEY)


@pytest.mark.parametrize("number", some_by_day([signal.SIGKILL, signal.SIGINT], 2))
def test_a_killed_run_repeats_nothing(server: Server, home: Path, number: signal.Signals) -> None:
    begun = 0

    async def answer_thirty(exchange: api.Exchange) -> None:
        nonlocal begun
        begun += 1
        await (api.answer() if begun <= 30 else api.hang)(exchange)

    def stalled() -> bool:
        """Return True if eight questions hang and all answers are in the journal: only what hangs is lost."""
        kept = sum(len(keys) for keys in answers_by_model(Store(home)).values())
        return kept == 30 and server.at_once == 8

    server.otherwise = answer_thirty
    with child(server, home) as first:
        wait_for(stalled)
        first.send_signal(number)
        first.communicate(timeout=PATIENCE)
    assert first.returncode == (77 if number == signal.SIGINT else -number)
    before = len(server.served)
    server.otherwise = None
    second = opened(server, home)
    begun = time.monotonic()
    texts(second.complete(numbered(100)))
    assert time.monotonic() - begun < 30, "a dead process's leases, of a minute, are nobody's"
    assert before == 30
    assert len(server.served) == 100 and set(server.served.values()) == {1}


def test_two_processes_share_a_journal(server: Server, home: Path) -> None:
    server.otherwise = api.answer(delay=0.03)
    with child(server, home) as one, child(server, home) as two:
        results = [process.communicate(timeout=PATIENCE) for process in (one, two)]
    assert (one.returncode, two.returncode) == (0, 0), results
    assert len(server.served) == 100 and set(server.served.values()) == {1}
    assert len(server.requests) == 100


def test_a_waiting_process_asks_what_another_gave_up(server: Server, home: Path) -> None:
    steps = [api.answer(delay=0.5), api.refuse(400)]
    server.plan = {"question 0": steps[:1], "question 1": steps[1:]}
    first = threading.Thread(target=lambda: opened(server, home).complete(numbered(2)))
    first.start()
    wait_for(lambda: len(server.requests) == 2)
    chat = opened(server, home)
    texts(chat.complete(numbered(2)))
    first.join()
    assert len(server.requests) == 3
    assert server.served == {"question 0": 1, "question 1": 1}


def test_a_backend_that_omits_answers_raises_an_error(home: Path) -> None:
    class Forgetful:
        is_local = False

        def key(self) -> dict[str, Any]:
            return {}

        def answer(self, requests: Any, done: Any) -> None:
            assert len(list(requests)) == 2
            done(0, RawAnswer("text"))

    with pytest.raises(RuntimeError, match="without 1 of its 2 answers"):
        JournaledChat(card(), Forgetful(), Store(home)).complete(numbered(2))


def test_the_log_says_which_process_is_waited_for(server: Server, home: Path, caplog: pytest.LogCaptureFixture) -> None:
    chat, [request] = opened(server, home), numbered(1)
    with memo_rows(journal_file(Store(home))) as rows:
        other = Claims(rows.database)
        other.take([journal.request_key(chat._raw_key(), request)])
        threading.Timer(0.3, lambda: other.__exit__()).start()
        with caplog.at_level("INFO", "r2med"):
            texts(chat.complete([request]))
    assert f"waiting for answers: process {os.getpid()} on {platform.node()} is asking for 1 of them" in caplog.text


def test_half_a_surrogate_pair_anywhere_in_an_answer_is_replaced_also_in_the_journal() -> None:
    half, odd = "\ud800", "\ufffd"
    row = {
        "content": half,
        "reasoning": half,
        "finish_reason": half,
        "first_choices": [[half, -1.0]],
        "last_tokens": [[half, -1.0]],
        "calls": [{"id": half, "name": half, "arguments": half}],
    }
    answer = decoded_answer(json.loads(json.dumps({"answer": row})))  # as an earlier version saved it
    call = ToolCall(odd, odd, odd)
    assert answer == RawAnswer(odd, odd, odd, first_choices=((odd, -1.0),), last_tokens=((odd, -1.0),), calls=(call,))
    assert RawAnswer(half, calls=(ToolCall(half, half, half),)) == RawAnswer(odd, calls=(call,))
    assert decoded_answer({"failure": {"kind": "refused", "message": half}}) == Failure("refused", odd)


def test_on_a_full_disk_nothing_more_is_sent_and_only_answers_in_flight_are_asked_again(
    server: Server, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put = Rows.put

    def full(rows: Rows, values: Mapping[bytes, bytes], durable: bool = True) -> None:
        if len(server.requests) > 10:
            with rows.database.as_user_error():
                raise OSError(errno.ENOSPC, "No space left on device")
        put(rows, values, durable)

    monkeypatch.setattr(Rows, "put", full)
    chat = opened(server, home, concurrency=4)
    with pytest.raises(UserError, match=r"the disk that holds .* is full: free some space"):
        chat.complete(numbered(40))
    sent = len(server.requests)
    assert sent <= 10 + 4, "those in flight, and no other"
    monkeypatch.undo()
    assert len(texts(opened(server, home).complete(numbered(40)))) == 40
    assert len(server.requests) - 40 <= 4
