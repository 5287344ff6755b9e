"""The commands lock, run --lock and compare --lock."""

from pathlib import Path

import pytest

from support.datasets import random_folder
from support.facts import some_states, states
from support.fork_server import Command


@pytest.fixture
def mini(tmp_path: Path) -> Path:
    return random_folder(tmp_path / "mini", documents=30)


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
