"""Commands take a dataset folder here by its name, also where a known set has this name."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.datasets import r2med_folder
from support.fork_server import Command

SCIFACT = "hub:mteb/scifact:test"


def test_commands_take_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, r2med: Command) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    r2med_folder(tmp_path / "SciFact")
    run = r2med("run", "bm25", "rm3 → bm25", "--data", "SciFact")
    assert run.returncode == 0
    assert "own/SciFact" in run.stdout
    assert SCIFACT in run.stderr
    for words in (
        ["compare", "--data", "SciFact"],
        ["why", "bm25", "SciFact", "q1"],
        ["audit", "SciFact"],
        ["data", "check", "SciFact"],
        ["search", "SciFact", "a question"],
        ["cache", "clear", "--dataset", "SciFact"],
    ):
        ended = r2med(*words)
        assert SCIFACT in ended.stderr, words
        assert "cannot fetch" not in ended.stderr, words
