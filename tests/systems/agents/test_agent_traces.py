"""Traces of systems with a search agent behind a real server: a conversation for each query, and what is in it."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from r2med import System
from r2med.data import Query, load
from support import chat_server as api
from support import retrieve_server
from support.agents import dataset
from support.chat_models import setup
from support.traces import foreign_names, kind_of, read_spans, traces, tree

pytestmark = pytest.mark.usefixtures("marked_keys")

AGENT, RERANKER = "agent(some-model, by=bm25(k1=2))", "listwise(some-model)@3"
SYSTEM = f"{AGENT} → {RERANKER}"
TURNS: list[list[tuple[str, str]]] = [
    [("search", '{"query": "light and rods", "k": 3}'), ("think", '{"thought": "rods"}')],
    [("finish", '{"ids": ["d2"]}')],
]


async def taking_turns(exchange: api.Exchange) -> None:
    """Search once, then finish. A request without tools is one of the reranker."""
    if "tools" not in exchange.request.body:
        await api.answer("[2] > [1] > [3]")(exchange)
        return
    turn = sum(message["role"] == "assistant" for message in exchange.request.body["messages"])
    await api.answer("", calls=TURNS[turn])(exchange)


def test_a_run_has_a_span_for_each_conversation_with_its_calls_and_searches(tmp_path: Path) -> None:
    with api.serve(taking_turns) as server, setup(server, tmp_path, trace=tmp_path / "trace.jsonl") as runtime:
        data = load("demo/Biology", runtime.store)
        System.parse(SYSTEM, runtime).run(data, runtime.store, 10)
    spans = read_spans(tmp_path / "trace.jsonl")
    [trace] = traces(spans)
    assert not foreign_names(spans)
    by_id = {each.context.span_id: each for each in trace}
    parts: dict[tuple[str, str], Counter[str]] = {}
    for each in trace:
        if each.parent is not None:
            owner = by_id[each.parent.span_id]
            named = kind_of(owner), str(owner.attributes.get("r2med.query.id", owner.name))
            parts.setdefault(named, Counter())[kind_of(each)] += 1
    assert parts.pop(("CHAIN", SYSTEM)) == {"CHAIN": 2}
    assert parts.pop(("CHAIN", AGENT)) == {"CHAIN": 1, "RETRIEVER": len(data.queries)}
    assert parts.pop(("CHAIN", RERANKER)) == {"RERANKER": len(data.queries)}
    for query in data.queries:
        assert parts.pop(("RETRIEVER", query.id)) == {"AGENT": 1}
        assert parts.pop(("AGENT", query.id)) == {"LLM": 2, "RETRIEVER": 1}
        assert parts.pop(("RERANKER", query.id)) == {"LLM": 1}
    assert not parts
    agents = [each.attributes for each in trace if kind_of(each) == "AGENT"]
    assert {each["agent.name"] for each in agents} == {AGENT}
    assert all(len(json.loads(str(each["output.value"]))) == 1 for each in agents)


def test_the_calls_of_tools_are_written_with_the_texts(tmp_path: Path) -> None:
    trace = tmp_path / "trace.jsonl"
    with api.serve(taking_turns) as server, setup(server, tmp_path, trace=trace, trace_content=True) as runtime:
        data = load("demo/Biology", runtime.store)
        System.parse(SYSTEM, runtime).answer(data, "why is it dark", 3, runtime.store)
    spans = read_spans(trace)
    assert not foreign_names(spans)
    assert tree(spans)[f"AGENT {AGENT}"] == ["LLM some-model", "RETRIEVER bm25(k1=2)", "LLM some-model"]
    assert f"AGENT {AGENT}" in tree(spans)[f"RETRIEVER {AGENT}"]
    first, second = (
        each.attributes
        for each in spans
        if kind_of(each) == "LLM" and "llm.tools.0.tool.json_schema" in each.attributes
    )
    called = "message.tool_calls.0.tool_call"
    assert first[f"llm.output_messages.0.{called}.function.name"] == "search"
    assert json.loads(str(first[f"llm.output_messages.0.{called}.function.arguments"]))["k"] == 3
    assert second[f"llm.input_messages.2.{called}.id"] == second["llm.input_messages.3.message.tool_call_id"]


def test_the_searches_of_a_server_elsewhere_are_in_the_conversation(tmp_path: Path) -> None:
    async def searching(exchange: api.Exchange) -> None:
        turns = sum(message["role"] == "assistant" for message in exchange.request.body["messages"])
        await api.answer("<answer>rods</answer>" if turns else "<search>rods</search>")(exchange)

    with (
        retrieve_server.serve() as remote,
        api.serve(searching) as server,
        setup(server, tmp_path, trace=tmp_path / "trace.jsonl") as runtime,
    ):
        spec = f"search-r1(some-model, remote={remote.url}) → bm25"
        system = System.parse(spec, runtime)
        system.run(dataset((Query("1", "swollen face"), Query("2", "blue lips"))), runtime.store, 3)
    spans = read_spans(tmp_path / "trace.jsonl")
    traces(spans)
    agents = {each.context.span_id for each in spans if kind_of(each) == "AGENT"}
    searches: list[Any] = [each for each in spans if kind_of(each) == "RETRIEVER" and each.name != "bm25"]
    assert {each.parent.span_id for each in searches} == agents and len(agents) == 2
    assert all("retrieval.documents.0.document.id" in each.attributes for each in searches)
