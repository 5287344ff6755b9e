"""`r2med answer` on the command line, with a reader whose replies are written beforehand."""

import json
from pathlib import Path

from support.facts import some_states, states
from support.fork_server import Command

WORDS = ["answer", "bm25", "--reader", "script", "--data", "demo/Medical-Sciences", "--queries", "2"]


def test_a_plan_asks_nothing_and_the_command_prints_and_keeps_the_answers(r2med: Command, tmp_path: Path) -> None:
    rule = {"when": [], "answer": json.dumps({"answer": "It is the nocebo effect [1]."})}
    (tmp_path / "replies.jsonl").write_text(json.dumps(rule) + "\n")
    words = [*WORDS, "--model-path", "script=replies.jsonl"]
    plan = r2med(*words, "--plan")
    assert plan.returncode == 0, plan.stderr
    some_states(plan.stdout.splitlines(), "script as reader", "about 8 times", "at most 24")
    assert "prompt of script as reader" in plan.stdout
    assert not (tmp_path / "results").exists()
    done = r2med(*words, "--format", "json")
    assert done.returncode == 0, done.stderr
    (record,) = json.loads(done.stdout)
    assert record["statuses"]["retrieved"] == {"answered": 2}
    assert record["calls"] == 8
    assert len(list(tmp_path.rglob("*.answers.jsonl"))) == 1
    again = r2med(*words)
    some_states(again.stdout.splitlines(), "1 of 1 records")
    (tmp_path / "replies.jsonl").write_text(json.dumps({**rule, "when": ["no question has these words"]}) + "\n")
    failed = r2med(*words, "-o", "other")
    assert failed.returncode == 1, "requests failed"


def test_a_missing_reader_and_an_unknown_condition_are_one_line(r2med: Command) -> None:
    states(r2med("answer", "bm25").messages[0], "reader", "LLM")
    wrong = r2med(*WORDS, "--llm-backend", "scripted", "--condition", "gold")
    assert wrong.returncode == 2
    assert "condition" in wrong.messages[0]
