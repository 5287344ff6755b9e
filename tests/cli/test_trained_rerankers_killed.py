"""Trained rerankers behind a server on loopback: killed several times, with 429s between, nothing is asked twice."""

import os
import re
import signal
from pathlib import Path
from typing import Any

import pytest

from r2med.evaluation.records.record import Record
from r2med.foundation.store import Store
from r2med.models.llm.journal import answers_by_model
from support import chat_server as api
from support.faults import tell_process
from support.fork_server import ForkServer
from support.killed_runs import KilledRuns
from support.processes import wait_for

SYSTEMS = ("bm25 → reasonrank-7b@25", "bm25 → rank-r1-7b@25", "bm25 → grouprank-7b@25", "bm25 → rank1-7b@4")


class Run:
    """A run of all systems in a folder of its own, with a server as their LLM."""

    def __init__(self, fork_server: ForkServer, folder: Path, address: str, key: str) -> None:
        folder.mkdir(exist_ok=True)
        self._folder = folder
        words = ("run", *SYSTEMS, "--data", "demo/Biology", "--base-url", address, "--concurrency", "4")
        told = tell_process(folder / "process")
        self._running = fork_server.start(*words, cwd=folder, fault=told, OPENAI_API_KEY=key, R2MED_HOME=folder)

    def kill(self) -> None:
        os.kill(int((self._folder / "process").read_text()), signal.SIGKILL)
        assert self._running.ended().returncode == -signal.SIGKILL

    def scores(self) -> dict[str, Any]:
        """Wait for its end, and return what each system scored for each query."""
        ended = self._running.ended()
        assert ended.returncode == 0, ended.stderr
        records = map(Record.read, (self._folder / "results").rglob("*.json"))
        scores = {record.system: record.per_query for record in records}
        assert len(scores) == len(SYSTEMS)
        return scores


LABEL = re.compile(r"^\[(\d+)\]", re.MULTILINE)


def answer_of_the_model(exchange: api.Exchange) -> api.Step:
    """Return the answer that each model would give: the last passage is the best one."""
    body = exchange.request.body
    text = str(body.get("prompt") or body["messages"][-1]["content"])
    numbers = LABEL.findall(text)
    if body["model"].startswith("jhu-clsp"):
        likely = {" true": -0.1 - len(text) % 7, " false": -1.0}
        return api.answer(" true", finish="stop" if body.get("stop") else "length", logprobs=[(" true", likely)])
    if "Rank-R1" in body["model"]:
        return api.answer(f"<think> hm </think> <answer>[{numbers[-1]}]</answer>")
    if "GroupRank" in body["model"]:
        scores = ", ".join(f'"[{number}]": {int(number) % 11}' for number in numbers)
        return api.answer(f"<answer>{{{scores}}}</answer>")
    order = " > ".join(f"[{number}]" for number in reversed(numbers))
    return api.answer(f"<think> hm </think> <answer> {order} </answer>")


@pytest.mark.slow
def test_killed_and_resumed_nothing_is_asked_twice_and_the_scores_are_the_same(
    fork_server: ForkServer, tmp_path: Path
) -> None:
    runs = KilledRuns()
    answered = 0
    due = 0  # answers that are on their way or have come

    async def step(exchange: api.Exchange) -> None:
        nonlocal answered, due
        if runs.hangs(exchange, answered):
            await api.hang(exchange)
            return
        answered += 1
        due += answered % 9 > 0
        await (answer_of_the_model(exchange) if answered % 9 else api.refuse(429, retry_after="0"))(exchange)

    def stalled() -> bool:
        """Return True if the server hangs, and all that it answered is in the journal: a kill can take no answer."""
        kept = sum(len(keys) for keys in answers_by_model(Store(tmp_path / "a")).values())
        return answered == runs.allowed and server.at_once >= 1 and kept == due

    with api.serve(step) as server:
        for more in (7, 20, 40):
            run = Run(fork_server, tmp_path / "a", server.address, runs.begin(runs.allowed + more))
            wait_for(stalled)
            run.kill()
        resumed = Run(fork_server, tmp_path / "a", server.address, runs.begin()).scores()
        assert len(server.served) > 80
        assert set(server.served.values()) == {1}
        before = len(server.requests)
        assert Run(fork_server, tmp_path / "a", server.address, runs.key).scores() == resumed
        assert len(server.requests) == before
    with api.serve(step) as server:
        assert Run(fork_server, tmp_path / "b", server.address, runs.key).scores() == resumed
