"""An agent with tools behind a real server on loopback: native calls and tags, faults, kills and prices."""

import hashlib
import json
import random
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import r2med
from r2med import System, UserError, evaluate
from r2med.data import Query, load
from r2med.evaluation.records.stored_records import StoredRecord
from r2med.foundation.core.spec import parse_stage
from r2med.foundation.runtime.stages import stage_of
from r2med.foundation.store import Store
from r2med.models.llm.llm_cards import Price
from support import chat_server as api
from support.agent_turns import TOOL, TURNS, agent_and_reranker, taking_turns, turn_of
from support.agents import ranked, ranking_agent
from support.chat_models import opened, setup
from support.keys import KEY
from support.processes import environment, wait_for
from support.ready import Ready

pytestmark = pytest.mark.usefixtures("marked_keys")


def expanded(server: api.Server, home: Path, spec: str, **changes: Any) -> Any:
    runtime = setup(server, home, **changes)
    retriever = Ready(stage_of(parse_stage(spec)[0], "retrieve"), runtime)
    return ranked(retriever, load("demo/Biology", runtime.store), runtime.store)


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
from r2med.foundation.store import Store
from r2med.systems.system import System

store = Store(sys.argv[2])
outcome = System.parse("agent(any)", Runtime(base_url=sys.argv[1], store=store)).run(
    load("demo/Biology", store), 100
)
traces = {query: {**trace, "total": "", "turns": [{**turn, "seconds": 0} for turn in trace["turns"]]}
          for query, trace in outcome.traces.items()}
print(json.dumps([list(outcome.run), traces]))
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
    assert first.searched.report == second.searched.report and first.rankings == second.rankings


def test_the_budget_ends_conversations_and_a_larger_one_goes_on_with_them(tmp_path: Path) -> None:
    settings = {"max_tokens": 100, "price": Price(prompt=1.0, completion=1.0)}
    with api.serve(taking_turns("native")) as server:

        def expand(budget: float | None, home: str) -> Any:
            llm = opened(server, tmp_path / home, budget, **settings)
            data = load("demo/Biology", Store(tmp_path / home))
            return ranked(ranking_agent("agent", llm, card=llm.card), data, Store(tmp_path / home))

        unlimited = expand(None, "unlimited")
        server.requests.clear()
        short = expand(unlimited.cost.dollars / 2, "short")
        sent = len(server.requests)
        assert 0 < sent < 24 and set(short.failure_kinds) == {"budget"} and short.cost.calls == sent
        assert short.cost.dollars <= unlimited.cost.dollars / 2
        whole = expand(unlimited.cost.dollars * 10, "short")
        assert len(server.requests) == 24 and whole.rankings == unlimited.rankings


O1_TURNS = [f"<|begin_search_query|>{query}<|end_search_query|>" for query in ("light and rods", "skin and water")]
R1_TURNS = [f"<search>{query}</search>" for query in ("light and rods", "skin and water")]


def writing(turns: list[str]) -> api.Step:
    async def step(exchange: api.Exchange) -> None:
        reads = "Documents:\n" in exchange.request.body["messages"][-1]["content"]
        text = "**Final Information** it fits" if reads else turns[min(turn_of(exchange), 2)]
        await api.answer(text)(exchange)

    return step


@pytest.mark.parametrize(
    ("spec", "step", "digest"),
    [
        ("agent(any)", taking_turns("native"), "d58eb3e98f57b7f0"),
        ("agent(any, by=bm25(k1=2)+bm25(scorer=lucene))", taking_turns("native"), "fcb27901ee97bcc7"),
        ("agent(any, by=[bm25(k1=2)+bm25(scorer=lucene)])", taking_turns("native"), "fcb27901ee97bcc7"),
        ("agent(any, turns=2)", taking_turns("native"), "6f2a55d43a28a10f"),
        ("search-o1-finds(any)", writing([*O1_TURNS, "**Final Passage** rods"]), "03b896fada00405e"),
        ("search-r1-finds(any, topk=5)", writing([*R1_TURNS, "<answer>rods</answer>"]), "e9a60a836380f84c"),
        ("search-r1-finds(any, by=bm25(k1=2))", writing([*R1_TURNS, "<answer>rods</answer>"]), "93e9c64b067086ce"),
    ],
)
def test_rankings_and_scores_are_those_of_the_form_before_a_retriever(
    tmp_path: Path, spec: str, step: api.Step, digest: str
) -> None:
    with api.serve(step) as server:
        runtime = setup(server, tmp_path)
        run = System.parse(spec, runtime).run(load("demo/Biology", runtime.store), 100).run
    rankings = json.dumps({query: [[document, score] for document, score in ranking] for query, ranking in run})
    assert hashlib.sha256(rankings.encode()).hexdigest()[:16] == digest


def test_the_tool_of_an_agent_may_be_a_whole_system_and_its_costs_are_added_up(tmp_path: Path) -> None:
    with api.serve(agent_and_reranker) as server:
        runtime = setup(server, tmp_path / "store")
        system, data = System.parse(TOOL, runtime), load("demo/Biology", runtime.store)
        assert set(system.asking) == {TOOL, "listwise(any)@3"}
        [row] = r2med.plan(r2med.run, TOOL, data, out=None, setup=runtime).rows
        # Turns of the agent, then calls of its searches, and of one for the query itself.
        assert {need.stage: need.most_calls for need in row.needs if need.most_calls} == {
            TOOL: 8 * 20,
            "listwise(any)@3": 21 * 8,
        }
        assert all(need.calls is None for need in row.needs if need.most_calls), "the agent decides how often"
        record = evaluate(system, data, tmp_path / "out", store=runtime.store)
        (stage,) = record.stages
        asked = len(server.requests)
        # Both searches are the same for all queries, so their two calls are asked once. Each query is searched itself.
        assert (stage.stage, stage.name, stage.cost.calls) == ("retrieve", TOOL, 24 + 16 + 8) and asked == 24 + 2 + 8
        assert (stage.failures, stage.asked, stage.details["finished"]) == (0, 8 + 16 + 8, 8)
        assert record.settings["retrieve"]["by"]["rerank"][0]["stage"] == "listwise"
        traces = json.loads((tmp_path / "out/demo/Biology" / record.traces.file).read_text())
        first = next(iter(traces.values()))
        found = [[hit["id"] for hit in turn["documents"]] for turn in first["turns"] if turn["documents"]]
        query = replace(data, queries=(Query("x", "skin and water"),))
        alone = System.parse("bm25 → listwise(any)@3", runtime).run(query, 50).run
        assert found[1][:10] == [document for document, _ in alone.top("x")][:10], "what it is shown is reranked"
        evaluate(system, data, store=runtime.store, fresh=False)
        assert len(server.requests) == asked, "a second run asks nothing"


def test_failures_inside_the_tool_are_counted_and_only_these_are_asked_again(tmp_path: Path) -> None:
    async def broken(exchange: api.Exchange) -> None:
        await (agent_and_reranker if "tools" in exchange.request.body else api.refuse(500))(exchange)

    with api.serve(broken) as server:
        runtime = setup(server, tmp_path / "store", attempts=1)
        system = System.parse(TOOL, runtime)
        record = evaluate(system, "demo/Biology", tmp_path / "out", store=runtime.store)
        (stage,) = record.stages
        assert stage.failures == 24 and stage.failure_kinds["server"] == 24 and record.may_improve
        server.otherwise, before = agent_and_reranker, len(server.requests)
        repaired = evaluate(system, "demo/Biology", tmp_path / "out", store=runtime.store)
        assert repaired.failures == 0 and not repaired.may_improve and repaired.key == record.key
        # The agent sees other documents after the repair, so its second turn is another request.
        assert len(server.requests) > before


def test_agents_are_parts_of_fusions_and_rerankers_follow_them(tmp_path: Path) -> None:
    with api.serve(agent_and_reranker) as server:
        runtime = setup(server, tmp_path / "store")
        data = load("demo/Biology", runtime.store)
        fused = System.parse("agent(any)+[agent(any, by=bm25(k1=2)) → listwise(any)@3]+bm25", runtime)
        record = evaluate(fused, data, tmp_path / "out", store=runtime.store)
        (stage,) = record.stages
        assert stage.cost.calls == 24 + 24 + 8 and stage.details["finished"] == 16
        traces = StoredRecord(record, next((tmp_path / "out/demo/Biology").glob("*.json"))).traces()
        assert {len(each) for each in traces.values()} == {2}
        alone = System.parse("agent(any)", runtime).run(data, 100)
        after = System.parse("agent(any) → listwise(any)@3", runtime).run(data, 100)
        for query in data.queries:
            first, second = ([each for each, _ in outcome.run.top(query.id)] for outcome in (alone, after))
            assert second[:3] == [first[1], first[0], first[2]] and second[3:] == first[3:]
