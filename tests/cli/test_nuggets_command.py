"""`r2med nuggets` writes a file of nuggets, which `r2med review serve` takes."""

import json
from pathlib import Path

from support.facts import some_states, states
from support.fork_server import Command

DATA = ("--data", "demo/Medical-Sciences")


def test_nuggets_are_written_and_can_be_reviewed(r2med: Command, tmp_path: Path) -> None:
    fact = {"nuggets": [{"text": "It is so.", "importance": "vital"}]}
    (tmp_path / "author.jsonl").write_text(json.dumps({"when": [], "answer": json.dumps(fact)}) + "\n")
    asked = ("nuggets", *DATA, "--llm", "author", "--model-path", "author=author.jsonl", "-o", "n.jsonl")
    planned = r2med(*asked, "--plan")
    assert planned.returncode == 0, planned.stderr
    assert "author: asks an LLM about 8 times, at most 24" in planned.stdout
    assert not (tmp_path / "n.jsonl").exists()
    made = r2med(*asked)
    assert made.returncode == 0, made.stderr
    some_states(made.stdout.splitlines(), "8 nuggets", "8 questions", "n.jsonl", "vital")
    assert "r2med review serve n.jsonl --data demo/Medical-Sciences" in made.stdout
    rows = [json.loads(line) for line in (tmp_path / "n.jsonl").read_text().splitlines()]
    assert rows[0] == {
        "query": "0",
        "nugget": "n1",
        "text": "It is so.",
        "vital": True,
        "by": "author",
        "reviewed": False,
    }
    early = r2med("review", "export", "n.jsonl", *DATA, "-o", "checked.jsonl")
    assert early.returncode == 2
    states(early.stderr, "reviewed nothing", "n.jsonl")
    lost = r2med("review", "serve", "n.jsonl")
    states(lost.stderr, "dataset", "--data")
