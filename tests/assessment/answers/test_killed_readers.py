"""A reader behind a server: killed five times, nothing is asked twice."""

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
from support.datasets import r2med_folder
from support.faults import tell_process
from support.fork_server import Command, ForkServer, Running
from support.killed_runs import KilledRuns
from support.processes import wait_for

pytestmark = pytest.mark.slow

QUESTIONS = 12
CONDITIONS = ("closed book", "retrieved", "relevant")
ALL = QUESTIONS * len(CONDITIONS)


def work_place(r2med: Command, folder: Path, address: str) -> None:
    """Write a dataset whose labelled documents no search finds, its ranking, and the card of a reader."""
    documents = [
        *({"id": f"near-{n}", "text": f"Patient{n} is tired."} for n in range(QUESTIONS)),
        *({"id": f"far-{n}", "text": f"Fact{n} about iron."} for n in range(QUESTIONS)),
    ]
    queries = [{"id": str(n), "text": f"What ails patient{n}?", "answer": f"illness{n}"} for n in range(QUESTIONS)]
    qrels = [{"q_id": str(n), "p_id": f"far-{n}", "score": 1} for n in range(QUESTIONS)]
    r2med_folder(folder / "small", documents, queries, qrels)
    cards = folder / "plugin" / "llms"
    cards.mkdir(parents=True)
    (cards / "fair.toml").write_text(f'model = "fair"\nbackend = "openai"\nbase_url = "{address}"\n')
    done = r2med("run", "bm25", "--data", folder / "small", R2MED_HOME=folder / "home")
    assert done.returncode == 0, done.stderr


def answering(server: ForkServer, folder: Path, key: str) -> Running:
    words = ["answer", "bm25", "--reader", "fair", "--data", folder / "small", "--passages", "1"]
    words += ["--concurrency", "4", "--condition", ",".join(CONDITIONS), "--out", folder / "results"]
    places = {
        "R2MED_HOME": folder / "home",
        "R2MED_PLUGINS": folder / "plugin",
        "OPENAI_API_KEY": key,
        "R2MED_THREADS": "1",
    }
    return server.start(*words, cwd=folder, fault=tell_process(folder / "process"), **places)


def test_a_reader_that_is_killed_five_times_is_asked_nothing_twice(
    r2med: Command, fork_server: ForkServer, tmp_path: Path
) -> None:
    runs = KilledRuns()
    answered: Counter[str] = Counter()

    async def step(exchange: api.Exchange) -> None:
        if runs.hangs(exchange, answered.total()):
            await api.hang(exchange)
            return
        answered[exchange.request.question] += 1
        number = exchange.request.question.split("ails patient")[1].split("?")[0]
        await api.answer(json.dumps({"answer": f"Illness{number} [1]."}))(exchange)

    def stalled() -> bool:
        """Return True if the server hangs, and all that it answered is in the journal: a kill can take no answer."""
        kept = sum(len(keys) for keys in answers_by_model(Store(tmp_path / "home")).values())
        return server.at_once >= 1 and kept == answered.total() == runs.allowed

    with api.serve(step) as server:
        work_place(r2med, tmp_path, server.address)
        for count in (1, ALL // 4, ALL // 2, ALL - 8, ALL - 1):
            process = answering(fork_server, tmp_path, runs.begin(count))
            wait_for(stalled)
            os.kill(int((tmp_path / "process").read_text()), signal.SIGKILL)
            assert process.ended().returncode == -signal.SIGKILL
            assert not list(tmp_path.rglob("*.answers.json"))
        last = answering(fork_server, tmp_path, runs.begin()).ended()
        assert last.returncode == 0, last.stderr
        assert answered.total() == ALL
        assert set(answered.values()) == {1}
        asked = len(server.requests)
        assert answering(fork_server, tmp_path, runs.key).ended().returncode == 0
        assert len(server.requests) == asked
    (file,) = tmp_path.rglob("*.answers.json")
    record = Record.read(file)
    assert record.answers.statuses == {condition: {"answered": QUESTIONS} for condition in CONDITIONS}
    assert record.cost_of("read").calls == ALL  # as if it had never been killed
