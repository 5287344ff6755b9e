"""Commands plan, run and explain a system with an agent behind a server on loopback."""

import json
from pathlib import Path
from typing import Any

import pytest

from r2med.data.runs.run import Run
from r2med.evaluation.records.record import Record
from support import chat_server as api
from support.agent_turns import taking_turns
from support.facts import some_states
from support.keys import KEY

pytestmark = pytest.mark.usefixtures("marked_keys")


def test_the_command_line_plans_runs_and_explains_an_agent(r2med: Any, tmp_path: Path) -> None:
    system = "agent(any, turns=5)"
    with api.serve(taking_turns("native")) as server:
        words = ("run", system, "--data", "demo/Biology", "--base-url", server.address)
        planned = r2med(*words, "--plan", OPENAI_API_KEY=KEY)
        assert not server.requests
        ran = r2med(*words, OPENAI_API_KEY=KEY)
    some_states(planned.stdout.splitlines(), "at most 40 times")
    assert ran.returncode == 0, ran.stderr
    (traced,) = tmp_path.rglob("*.traces.json")
    record = Record.read(traced.with_name(traced.name.replace(".traces", "")))
    assert record.stages[0].details["finished"] == 8 and record.stages[0].failures == 0
    traces = json.loads(traced.read_text())
    assert {len(trace["chosen"]) for trace in traces.values()} == {2}
    (run,) = (file for file in traced.parent.glob("*.trec.gz"))
    rankings = {query: [document for document, _ in ranking] for query, ranking in Run.read(run)}
    assert all(rankings[query][: len(trace["finds"])] == trace["finds"] for query, trace in traces.items())
    why = r2med("why", system, "demo/Biology", next(iter(traces)))
    assert why.returncode == 0 and system in why.stdout, why.stderr


def test_the_plan_lists_the_stages_inside(r2med: Any) -> None:
    planned = r2med("run", "[hyde(author) → bm25]+[rm3 → bm25(k1=2)]", "--data", "demo/Biology", "--plan")
    assert planned.returncode == 0, planned.stderr
    assert all(stage in planned.stdout for stage in ("hyde(author)", "rm3", "bm25(k1=2)"))
