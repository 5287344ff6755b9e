"""An agent with tools behind a real server on loopback: native calls and tags, faults, kills and prices."""

import json
import random
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from r2med import UserError
from r2med.data import load
from r2med.foundation.core.spec import parse_stage
from r2med.foundation.core.stages import stage
from r2med.foundation.store import Store
from r2med.models.llm.llm_cards import Price
from support import chat_server as api
from support.agent_turns import TURNS, taking_turns, turn_of
from support.agents import agent
from support.chat_models import opened, setup
from support.keys import KEY
from support.processes import environment, wait_for

pytestmark = pytest.mark.usefixtures("marked_keys")


def expanded(server: api.Server, home: Path, spec: str, **changes: Any) -> Any:
    runtime = setup(server, home, **changes)
    return (
        stage(parse_stage(spec)[0], "expand").bind(runtime).expand(load("demo/Biology", runtime.store), runtime.store)
    )


@pytest.mark.parametrize("stream", [True, False])
def test_native_calls_and_tags_give_the_same_ranking(tmp_path: Path, stream: bool) -> None:
    rankings = []
    for calls in TURNS:
        with api.serve(taking_turns(calls, stream)) as server:
            expansion = expanded(server, tmp_path / calls, f"agent(any, calls={calls})")
        assert (expansion.failures, expansion.counts["finished"], expansion.failure_kinds) == (0, 8, {})
        assert len(server.requests) == 24 and expansion.cost.calls == 24
        rankings.append(expansion.rankings)
        for query, trace in expansion.traces.items():
            assert trace["chosen"] == list(expansion.rankings[query][:2])
    assert rankings[0] == rankings[1]


def test_a_busy_server_is_asked_again_and_one_that_stays_busy_is_a_counted_failure(tmp_path: Path) -> None:
    with api.serve(taking_turns("native")) as server:
        server.script = [api.refuse(429)] * 5
        expansion = expanded(server, tmp_path / "a", "agent(any)")
        assert expansion.failures == 0 and len(server.requests) == 29

        async def busy_later(exchange: api.Exchange) -> None:
            broken = turn_of(exchange) == 1 and "?" in exchange.request.body["messages"][1]["content"][-40:]
            await (api.refuse(500) if broken else taking_turns("native"))(exchange)

        server.otherwise = busy_later
        later = expanded(server, tmp_path / "b", "agent(any)", attempts=2)
    broken = [query for query, trace in later.traces.items() if trace["failure"]]
    assert broken and later.failure_kinds == {"server": len(broken)} and later.failures == 0
    for query in later.traces:
        documents = [hit["id"] for hit in later.traces[query]["turns"][0]["documents"]]
        if query in broken:
            assert later.rankings[query] == tuple(documents), "its one search is its ranking"


def test_a_server_without_tool_calls_is_one_line_that_names_the_setting(tmp_path: Path) -> None:
    refused = api.refuse(400, json.dumps({"error": {"message": "registry/m does not support tools"}}))
    with api.serve(refused) as server, pytest.raises(UserError, match="calls=tags") as error:
        expanded(server, tmp_path, "agent(any)")
    assert "\n" not in str(error.value)


CHILD = """
import json, sys
from r2med.data import load
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.core.spec import parse_stage
from r2med.foundation.core.stages import stage
from r2med.foundation.store import Store

store = Store(sys.argv[2])
setup = Runtime(base_url=sys.argv[1], store=store)
expansion = stage(parse_stage("agent(any)")[0], "expand").bind(setup).expand(load("demo/Biology", store), store)
traces = {query: {**trace, "total": "", "turns": [{**turn, "seconds": 0} for turn in trace["turns"]]}
          for query, trace in expansion.traces.items()}
print(json.dumps([expansion.rankings, traces]))
"""


def child(server: api.Server, home: Path) -> subprocess.Popen[str]:
    arguments = [sys.executable, "-c", CHILD, server.address, str(home)]
    pipe = subprocess.PIPE
    return subprocess.Popen(arguments, env=environment(OPENAI_API_KEY=KEY), stdout=pipe, stderr=pipe, text=True)


def finished(process: subprocess.Popen[str]) -> str:
    with process:
        out, err = process.communicate()
    assert process.returncode == 0, err
    return out


def conversation(request: api.Request) -> str:
    """Return what a request says, without what differs between two equal ones."""
    return json.dumps(request.body["messages"])


@pytest.mark.slow
def test_a_run_that_is_killed_again_and_again_asks_no_turn_twice_and_gives_the_same_traces(tmp_path: Path) -> None:
    # Whole replies, because the bill of a stream comes after its answer and is estimated if a kill comes between.
    with api.serve(taking_turns("native", stream=False)) as server:
        whole = finished(child(server, tmp_path / "whole"))
        expected = len(server.requests)
        server.requests.clear()
        server.served.clear()
        chosen = random.Random(7)
        for stop in sorted(chosen.sample(range(1, expected), 4)):
            with child(server, tmp_path / "killed") as process:
                wait_for(
                    lambda stop=stop, process=process: sum(server.served.values()) >= stop or process.poll() is not None
                )
                process.send_signal(signal.SIGKILL)
                process.communicate()
        killed = finished(child(server, tmp_path / "killed"))
    assert killed == whole
    answered = [conversation(request) for request in server.requests]
    # A turn whose answer was on its way when the process was killed is asked once more, at most eight each time.
    assert expected <= len(answered) <= expected + 4 * 8 and len(set(answered)) == expected


def test_a_second_run_asks_nothing(tmp_path: Path) -> None:
    with api.serve(taking_turns("native")) as server:
        first = expanded(server, tmp_path, "agent(any)")
        asked = len(server.requests)
        second = expanded(server, tmp_path, "agent(any)")
        assert len(server.requests) == asked
    assert first == second and first.traces == second.traces


def test_the_budget_ends_conversations_and_a_larger_one_goes_on_with_them(tmp_path: Path) -> None:
    settings = {"max_tokens": 100, "price": Price(prompt=1.0, completion=1.0)}
    with api.serve(taking_turns("native")) as server:

        def expand(budget: float | None, home: str) -> Any:
            llm = opened(server, tmp_path / home, budget, **settings)
            data = load("demo/Biology", Store(tmp_path / home))
            return agent("agent", llm, card=llm.card).expand(data, Store(tmp_path / home))

        unlimited = expand(None, "unlimited")
        server.requests.clear()
        short = expand(unlimited.cost.dollars / 2, "short")
        sent = len(server.requests)
        assert 0 < sent < 24 and set(short.failure_kinds) == {"budget"} and short.cost.calls == sent
        assert short.cost.dollars <= unlimited.cost.dollars / 2
        whole = expand(unlimited.cost.dollars * 10, "short")
        assert len(server.requests) == 24 and whole.rankings == unlimited.rankings
