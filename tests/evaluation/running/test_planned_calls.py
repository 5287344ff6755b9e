"""The calls of a plan are those that a run makes: a server on loopback counts them."""

from pathlib import Path

import pytest

import r2med
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.store import Store
from support import chat_server as api

FIXED = (
    "hyde(m) → bm25",
    "hyde(m, samples=2) → bm25",
    "hyde(m, rounds=1) → bm25",
    "lamer(m) → bm25",
    "queries(m) → bm25",
    "[hyde(m) → bm25]+bm25",
    "bm25 → listwise(m)@10",
    "bm25 → rankgpt(m)@30",
    "bm25 → groupwise(m, size=4, shuffles=2)@10",
    "bm25 → pointwise(m, samples=2)@3",
)
"""Systems in which no answer decides what is asked next, and no question can occur twice."""
DECIDED = (
    "[bm25 → listwise(m)@5]+[bm25(k1=2) → listwise(m)@5]",
    "bm25 → listwise(m, window=4, step=2, rounds=2)@9",
    "bm25 → setwise(m)@10",
    "bm25 → setwise(m, children=2, top=3)@12",
    "search-r1(m) → bm25",
    "search-o1(m, turns=3) → bm25",
    "agent(m, turns=4)",
    "agent(m, turns=3, by=[bm25 → listwise(m)@5])",
)


def planned_and_asked(system: str, home: Path) -> tuple[int | None, int, int]:
    """Return the usual calls of the plan, its most calls, and the requests of the run."""
    with api.serve() as server, Runtime(store=Store(home), base_url=server.address) as runtime:
        [row] = r2med.plan(r2med.run, system, "demo/Biology", out=None, setup=runtime).rows
        assert not server.requests
        assert not [path for path in home.rglob("*") if path.is_file()]
        r2med.run(system, "demo/Biology", out=None, setup=runtime)
        calls = [need.calls for need in row.needs]
        usual = None if None in calls else sum(number or 0 for number in calls)
        return usual, sum(need.most_calls or 0 for need in row.needs), len(server.requests)


@pytest.mark.parametrize("system", FIXED)
def test_the_calls_of_a_plan_are_those_of_the_run(system: str, tmp_path: Path) -> None:
    usual, most, asked = planned_and_asked(system, tmp_path / "home")
    assert usual == most == asked > 0


@pytest.mark.parametrize("system", DECIDED)
def test_a_run_makes_at_most_the_calls_of_its_plan_where_answers_decide(system: str, tmp_path: Path) -> None:
    usual, most, asked = planned_and_asked(system, tmp_path / "home")
    assert 0 < asked <= most and (usual is None or usual <= most)


@pytest.mark.parametrize("system", ["bm25", "minilm", "rm3 → bm25", "hyde(author) → bm25"])
def test_a_system_without_an_llm_plans_no_call(system: str, tmp_path: Path) -> None:
    with Runtime(store=Store(tmp_path / "home")) as runtime:
        [row] = r2med.plan(r2med.run, system, "demo/Biology", out=None, setup=runtime).rows
    assert not any(need.calls or need.most_calls or need.most_dollars for need in row.needs)
