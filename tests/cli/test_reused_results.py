"""The command run says what it reused, and builds an index once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from support.datasets import random_folder
from support.facts import each_states, states
from support.faults import tell_builds
from support.processes import Ended
from support.workspaces import Workspace


@pytest.fixture
def mini(tmp_path: Path) -> Path:
    return random_folder(tmp_path / "mini", documents=30)


def test_the_command_says_what_it_reused(r2med: Callable[..., Ended], mini: Path, workspace: Workspace) -> None:
    words = ["run", "bm25", "bm25(k1=1.2)", "--data", str(mini), "--out", str(workspace.out)]
    first, second, third = r2med(*words), r2med(*words), r2med(*words, "--fresh")
    next(workspace.out.rglob("*.json")).unlink()
    fourth = r2med(*words)
    told = [" ".join(end.stdout.split()) for end in (first, second, third, fourth)]
    assert "reused" not in told[0]
    states(told[1], "2 of them", "reused", "--fresh")
    assert "reused" not in told[2]
    states(told[3], "1 of them", "reused")


def test_a_damaged_record_is_told_once_and_not_counted_as_reused(
    r2med: Callable[..., Ended], mini: Path, workspace: Workspace
) -> None:
    words = ["run", "bm25", "--data", str(mini), "--out", str(workspace.out)]
    assert r2med(*words).returncode == 0
    (path,) = workspace.out.rglob("*.json")
    path.write_bytes(path.read_bytes()[:-100])
    end = r2med(*words)
    each_states(end.messages, (path, "record", "again"))
    assert "reused" not in end.stdout


def test_one_fresh_run_builds_an_index_once_for_all_systems(
    r2med: Callable[..., Ended], mini: Path, workspace: Workspace, tmp_path: Path
) -> None:
    words = ["run", "bm25", "bm25(k1=1.2)", "--data", str(mini), "--out", str(workspace.out), "--fresh"]
    for _ in range(2):
        assert r2med(*words, fault=tell_builds(tmp_path / "builds")).returncode == 0
    assert (tmp_path / "builds").read_text() == "build\n" * 2
