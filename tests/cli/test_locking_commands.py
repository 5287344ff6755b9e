"""The commands lock, run --lock and compare --lock."""

import re
from pathlib import Path

import pytest

from r2med.evaluation.records.record import Record
from support.datasets import random_folder
from support.facts import some_states, states
from support.fork_server import Command


@pytest.fixture
def mini(tmp_path: Path) -> Path:
    return random_folder(tmp_path / "mini", documents=30)


def test_in_a_folder_with_results_the_printed_commands_lead_to_a_comparison(r2med: Command, mini: Path) -> None:
    systems = ("bm25", "bm25(k1=1.2)")
    assert r2med("run", *systems, "--data", "mini").returncode == 0
    for file in (mini.parent / "results").rglob("*.json"):
        Record.read(file).model_copy(update={"created": "2001-01-01T00:00:00+00:00"}).write(file)
    made = r2med("lock", *systems, "--data", "mini")
    refused = r2med("run", "--lock", "plan.lock")
    some_states((refused.stdout + refused.stderr).splitlines(), "before the lock", "--out", "--results")
    states(r2med("compare", "--lock", "plan.lock").stderr, "before the lock", "--out DIR", "--results DIR")
    commands = re.findall(r"r2med (\w+ --lock plan.lock --\w+ locked)", made.stdout)
    assert [command.split()[0] for command in commands] == ["run", "compare"]
    for command in commands:
        done = r2med(*command.split())
        assert done.returncode == 0, done.stderr
    assert "differ" in done.stdout


def test_the_commands_lock_run_and_compare(r2med: Command, mini: Path, tmp_path: Path) -> None:
    made = r2med("lock", "bm25", "bm25(k1=1.2)", "--data", "mini", "--k", "20")
    assert made.returncode == 0, made.stderr
    some_states(made.stdout.splitlines(), "plan.lock", "2 systems", "1 dataset", "1 comparison", "nDCG@10")
    again = r2med("lock", "bm25", "--data", "mini")
    states(again.stderr, "plan.lock", "exists")
    assert r2med("run", "--lock", "plan.lock", "--data", "mini").returncode == 0
    refused = r2med("run", "bge", "--lock", "plan.lock", "--data", "mini")
    assert refused.returncode == 2
    compared = r2med("compare", "--lock", "plan.lock")
    some_states(compared.stdout.splitlines(), "beforehand", "lock")
