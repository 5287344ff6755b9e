"""An agent that answers, behind a real server on loopback: native calls, and nothing is paid for twice."""

import json
from pathlib import Path
from typing import Any

import pytest

import r2med
from support import chat_server as api
from support.agent_turns import turn_of
from support.chat_models import setup
from support.searching_agents import QUESTION, village

pytestmark = pytest.mark.usefixtures("marked_keys")

CALLS: list[Any] = [
    ("search", {"query": "finder evidence", "k": 3}),
    ("get_document", {"id": "d1"}),
    ("answer", {"answer": "Illness finder [d1].", "confidence": 75, "ids": ["d1", "d2"]}),
]


async def answering(exchange: api.Exchange) -> None:
    """Take the turns of the agent. A request without tools is a question in a closed book."""
    if "tools" not in exchange.request.body:
        await api.answer(json.dumps({"answer": "Gout."}))(exchange)
        return
    name, arguments = CALLS[turn_of(exchange)]
    await api.answer("", calls=[(name, json.dumps(arguments))])(exchange)


async def broken_at_the_end(exchange: api.Exchange) -> None:
    """Fail when the agent is about to answer."""
    last = "tools" in exchange.request.body and turn_of(exchange) == 2
    await (api.refuse(400, "broken")(exchange) if last else answering(exchange))


def test_a_command_that_was_stopped_goes_on_without_asking_anything_twice(tmp_path: Path) -> None:
    data = village(tmp_path / "set", ["finder"])
    with api.serve(broken_at_the_end) as server:
        runtime = setup(server, tmp_path / "home")
        asked = {"data": data, "conditions": ["closed book", "searched"], "out": tmp_path / "out", "setup": runtime}
        (stopped,) = r2med.answer("agent(any)", **asked)
        assert stopped.answers.statuses["searched"] == {"failed": 1} and "searched" not in stopped.answers.searching
        before, server.otherwise = len(server.requests), answering
        (record,) = r2med.answer("agent(any)", **asked)
        assert len(server.requests) == before + 1, "only the turn that failed is asked"
        r2med.answer("agent(any)", **{**asked, "out": tmp_path / "again"})
        assert len(server.requests) == before + 1
    assert record.answers.mean["searched"]["kept-recall"] == pytest.approx(2 / 3)
    assert record.answers.mean["searched"]["opened-recall"] == pytest.approx(1 / 3)
    assert record.answers.statuses["closed book"] == {"answered": 1}


WAVERERS = ("finder", "dropper", "skimmer", "guesser", "reader", "inventor")


async def wavering(exchange: api.Exchange) -> None:
    """Be sure in every second repeat; repeats differ by their seed."""
    body = exchange.request.body
    called, arguments = CALLS[turn_of(exchange)]
    name = next(each for each in WAVERERS if QUESTION.format(each) in json.dumps(body["messages"]))
    if called == "answer":
        waver = int(body["seed"]) % 2 and name != WAVERERS[0]
        arguments = {**arguments, "confidence": 25 if waver else 75}
    await api.answer("", calls=[(called, json.dumps(arguments))])(exchange)


def test_each_repeat_has_its_own_conversations_and_compare_shows_what_is_chance(tmp_path: Path) -> None:
    data = village(tmp_path / "set", WAVERERS)
    with api.serve(wavering) as server:
        runtime = setup(server, tmp_path / "home")
        asked = {"data": data, "conditions": "searched", "out": tmp_path / "out", "setup": runtime, "repeats": 3}
        records = r2med.answer("agent(any)", **asked)
        assert [record.repeat for record in records] == [0, 1, 2] and len({record.key for record in records}) == 3
        assert len(server.requests) == 3 * 6 * 3, "three turns about six questions in three repeats"
        again = r2med.answer("agent(any)", **{**asked, "out": tmp_path / "again"})
        assert len(server.requests) == 54, "nothing is asked twice"
        assert [record.answers.per_query for record in again] == [record.answers.per_query for record in records]
        r2med.answer("agent(any, turns=9)", **asked)
        assert len(server.requests) == 54, "the other agent has the same conversations"
    conversations = {record.traces.sha256 for record in records if record.traces}
    assert len(conversations) == 3
    compared = r2med.compare(tmp_path / "out", answers=True, condition="searched", measure="confidence")
    for row in compared.systems:
        assert row.runs == 3
