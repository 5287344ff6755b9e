"""A committee of two judges behind a server: killed five times, nothing is asked twice."""

from __future__ import annotations

import json
import os
import signal
from collections import Counter
from pathlib import Path

import pytest

from r2med.data.overlays import Overlay, OverlayLabel
from r2med.foundation.store import Store
from r2med.models.llm.journal import answers_by_model
from support import chat_server as api
from support.datasets import r2med_folder
from support.faults import tell_process
from support.fork_server import Command, ForkServer, Running
from support.killed_runs import KilledRuns
from support.processes import wait_for

pytestmark = pytest.mark.slow

ORGANS = [f"organ{number}" for number in range(24)]
DOCUMENTS = [
    *({"id": f"{organ}-{part}", "text": f"The {organ} is ill, says text {part}."} for organ in ORGANS for part in "ab"),
    *({"id": f"boat-{number}", "text": f"Boats in harbour {number}."} for number in range(8)),
]
QUERIES = [{"id": organ, "text": f"What ails the {organ}?", "answer": f"{organ} disease"} for organ in ORGANS]
QRELS = [{"q_id": organ, "p_id": f"{organ}-a", "score": 1} for organ in ORGANS]

PROMPT = (
    "Question: {query}\nPassage: {text}\n"
    'Is it the answer? Copy one: {"why": "yes", "grade": 3} {"why": "no", "grade": 0}'
)
FIRST = 48
"""Number of controls that each judge is asked first: all that 24 labels give."""


def work_place(r2med: Command, folder: Path, address: str) -> None:
    """Write a dataset, its rankings, a prompt, and the cards of two judges behind a server."""
    r2med_folder(folder / "small", DOCUMENTS, QUERIES, QRELS)
    (folder / "prompt.txt").write_text(PROMPT)
    cards = folder / "plugin" / "llms"
    cards.mkdir(parents=True)
    for name in ("fair", "strict"):
        (cards / f"{name}.toml").write_text(f'model = "{name}"\nbackend = "openai"\nbase_url = "{address}"\n')
    done = r2med("run", "bm25", "bm25(b=0)", "--data", folder / "small", R2MED_HOME=folder / "home")
    assert done.returncode == 0, done.stderr


def judging(server: ForkServer, folder: Path, key: str) -> Running:
    words = ["judge", "--data", folder / "small", "--llm", "fair", "--llm", "strict", "--depth", "2"]
    words += ["--prompt", folder / "prompt.txt", "--out", folder / "judged.jsonl", "--concurrency", "2"]
    places = {
        "R2MED_HOME": folder / "home",
        "R2MED_PLUGINS": folder / "plugin",
        "OPENAI_API_KEY": key,
        "R2MED_THREADS": "1",
    }
    return server.start(*words, cwd=folder, fault=tell_process(folder / "process"), **places)


def test_a_committee_that_is_killed_five_times_asks_nothing_twice(
    r2med: Command, fork_server: ForkServer, tmp_path: Path
) -> None:
    runs = KilledRuns()
    answered: Counter[tuple[str, str]] = Counter()

    async def step(exchange: api.Exchange) -> None:
        if runs.hangs(exchange, answered.total()):
            await api.hang(exchange)
            return
        body = exchange.request.body
        answered[body["model"], exchange.request.question] += 1
        organ = exchange.request.question.split("ails the ")[1].split("?")[0]
        right = f"The {organ} is ill" in exchange.request.question and "Boats" not in exchange.request.question
        await api.answer(json.dumps({"why": "so", "grade": 3 if right else 0}))(exchange)

    def kept() -> Counter[str]:
        by_model = answers_by_model(Store(tmp_path / "home"))
        return Counter({model.rpartition("/")[2]: len(keys) for model, keys in by_model.items()})

    def stalled() -> bool:
        """Return True if the server hangs, and all that it answered is in the journal: a kill can take no answer."""
        both = kept()
        return server.at_once >= 1 and both["fair"] + both["strict"] == answered.total() == runs.allowed

    with api.serve(step) as server:
        work_place(r2med, tmp_path, server.address)
        # Twice in the controls of the first judge, twice in those of the second, and once in the pool.
        for count in (3, 7, FIRST + 3, FIRST + 9, 2 * FIRST + 5):
            process = judging(fork_server, tmp_path, runs.begin(count))
            wait_for(stalled)
            os.kill(int((tmp_path / "process").read_text()), signal.SIGKILL)
            assert process.ended().returncode == -signal.SIGKILL
            assert not (tmp_path / "judged.jsonl").exists()
        last = judging(fork_server, tmp_path, runs.begin()).ended()
        assert last.returncode == 0, last.stderr
        assert set(answered.values()) == {1}
        assert answered.total() > 2 * (FIRST + len(ORGANS) // 2)
        asked = len(server.requests)
        first = Overlay.read(tmp_path / "judged.jsonl").labels
        assert judging(fork_server, tmp_path, runs.key).ended().returncode == 0
        assert len(server.requests) == asked
    again = Overlay.read(tmp_path / "judged.jsonl").labels
    assert [timeless(label) for label in again] == [timeless(label) for label in first]
    labels = {(label.judge, label.document): label.said for label in first}
    assert all(labels[judge, f"{organ}-b"] == "3" for judge in ("fair", "strict") for organ in ORGANS)
    assert {label.judge for label in first} == {"fair", "strict"}


def timeless(label: OverlayLabel) -> OverlayLabel:
    return label.model_copy(update={"at": ""})
