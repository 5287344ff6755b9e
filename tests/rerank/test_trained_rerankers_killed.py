"""Trained rerankers behind a server on loopback: killed several times, with 429s between, nothing is asked twice."""

import re
import signal
from pathlib import Path

from r2med.llm.journal import answers_by_model
from r2med.store import Store
from support import chat_server as api
from support.keys import KEY
from support.processes import PATIENCE, started, wait_for

CHILD = """
import sys
import r2med

systems = ["bm25 → reasonrank-7b@25", "bm25 → rank-r1-7b@25", "bm25 → grouprank-7b@25", "bm25 → rank1-7b@4"]
setup = r2med.Setup(base_url=sys.argv[1], first_wait=0.001, concurrency=4)
results = r2med.run(systems, data="demo/Biology", setup=setup)
for record in results.records:
    print(record.system, record.per_query)
"""

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


def test_killed_and_resumed_nothing_is_asked_twice_and_the_scores_are_the_same(tmp_path: Path) -> None:
    allowed = 0
    answered = 0
    due = 0  # answers that are on their way or have come

    async def step(exchange: api.Exchange) -> None:
        nonlocal answered, due
        if answered >= allowed:
            await api.hang(exchange)
            return
        answered += 1
        due += answered % 9 > 0
        await (answer_of_the_model(exchange) if answered % 9 else api.refuse(429, retry_after="0"))(exchange)

    def run(home: Path, address: str) -> tuple[int, str, str]:
        with started(["-c", CHILD, address], OPENAI_API_KEY=KEY, R2MED_HOME=home) as process:
            out, err = process.communicate(timeout=PATIENCE)
        return process.returncode, out, err

    def stalled() -> bool:
        """Return True if the server hangs, and all that it answered is in the journal: a kill can take no answer."""
        kept = sum(len(keys) for keys in answers_by_model(Store(tmp_path / "a")).values())
        return answered >= allowed and server.at_once >= 1 and kept == due

    with api.serve(step) as server:
        for more in (7, 20, 40):
            allowed += more
            with started(["-c", CHILD, server.address], OPENAI_API_KEY=KEY, R2MED_HOME=tmp_path / "a") as process:
                wait_for(stalled)
                process.send_signal(signal.SIGKILL)
                process.communicate(timeout=PATIENCE)
        allowed = 1_000_000
        code, resumed, err = run(tmp_path / "a", server.address)
        assert code == 0, err
        assert len(server.served) > 80
        assert set(server.served.values()) == {1}
        before = len(server.requests)
        code, again, err = run(tmp_path / "a", server.address)
        assert (code, again, len(server.requests)) == (0, resumed, before), err
    with api.serve(step) as server:
        code, whole, err = run(tmp_path / "b", server.address)
        assert (code, whole) == (0, resumed), err
