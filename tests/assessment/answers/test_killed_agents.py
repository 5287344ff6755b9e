"""An agent that answers, behind a server: killed four times, no turn is paid for twice."""

from __future__ import annotations

import json
import os
import signal
from collections import Counter
from pathlib import Path

import pytest

from r2med.evaluation.records.record import Record
from r2med.foundation.store import Store
from r2med.models.llm.journal import answers_by_model
from support import chat_server as api
from support.agent_turns import turn_of
from support.faults import tell_process
from support.fork_server import ForkServer, Running
from support.killed_runs import KilledRuns
from support.processes import wait_for
from support.searching_agents import QUESTION, village

pytestmark = pytest.mark.slow

NAMES = ("finder", "dropper", "skimmer", "guesser")
ALL = len(NAMES) * 4
"""Three turns of the agent for each question, and one in a closed book."""


def answering(server: ForkServer, folder: Path, key: str) -> Running:
    words = ["answer", "agent(fair)", "--data", folder / "set", "--out", folder / "results", "--concurrency", "2"]
    words += ["--condition", "searched", "--condition", "closed book"]
    places = {
        "R2MED_HOME": folder / "home",
        "R2MED_PLUGINS": folder / "plugin",
        "OPENAI_API_KEY": key,
        "R2MED_THREADS": "1",
    }
    return server.start(*words, cwd=folder, fault=tell_process(folder / "process"), **places)


def turn(name: str, number: int) -> tuple[str, dict[str, object]]:
    answer = {"answer": f"Illness {name} [d1].", "confidence": 75, "ids": ["d1"]}
    return [
        ("search", {"query": f"{name} evidence", "k": 3}),
        ("get_document", {"id": "d1"}),
        ("answer", answer),
    ][number]


def test_an_agent_that_is_killed_is_asked_nothing_twice(fork_server: ForkServer, tmp_path: Path) -> None:
    village(tmp_path / "set", NAMES)
    runs = KilledRuns()
    answered: Counter[str] = Counter()

    async def step(exchange: api.Exchange) -> None:
        if runs.hangs(exchange, answered.total()):
            await api.hang(exchange)
            return
        answered[json.dumps(exchange.request.body["messages"])] += 1
        if "tools" not in exchange.request.body:
            await api.answer(json.dumps({"answer": "Gout."}))(exchange)
            return
        asked = json.dumps(exchange.request.body["messages"])
        (name,) = [each for each in NAMES if QUESTION.format(each) in asked]
        called, arguments = turn(name, turn_of(exchange))
        await api.answer("", calls=[(called, json.dumps(arguments))])(exchange)

    def stalled() -> bool:
        kept = sum(len(keys) for keys in answers_by_model(Store(tmp_path / "home")).values())
        return server.at_once >= 1 and kept == answered.total() == runs.allowed

    with api.serve(step) as server:
        cards = tmp_path / "plugin" / "llms"
        cards.mkdir(parents=True)
        (cards / "fair.toml").write_text(f'model = "fair"\nbackend = "openai"\nbase_url = "{server.address}"\n')
        for count in (1, 6, 11, ALL - 1):
            process = answering(fork_server, tmp_path, runs.begin(count))
            wait_for(stalled)
            os.kill(int((tmp_path / "process").read_text()), signal.SIGKILL)
            assert process.ended().returncode == -signal.SIGKILL
            assert not list(tmp_path.rglob("*.answers.json"))
        last = answering(fork_server, tmp_path, runs.begin()).ended()
        assert last.returncode == 0, last.stderr
        assert answered.total() == ALL and set(answered.values()) == {1}
        asked = len(server.requests)
        assert answering(fork_server, tmp_path, runs.key).ended().returncode == 0
        assert len(server.requests) == asked
    (file,) = tmp_path.rglob("*.answers.json")
    record = Record.read(file)
    assert record.answers.statuses["searched"] == {"answered": len(NAMES)}
    assert record.answers.searching["turns"] == 3 and record.answers.searching["searches"] == 1
