"""The command compare shows how often mimics are ranked before relevant documents."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from r2med import run
from r2med.data.overlays import Overlay
from support.fork_server import Command

NAME = "demo/MedQA-Diag"


LABELS = "demo/mimics.jsonl"


BM25, HYDE = "bm25", "hyde(author) → bm25"


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("results")
    run([BM25, HYDE], NAME, out=folder)
    return folder


def test_the_command_shows_the_rate_with_its_interval(results: Path, tmp_path: Path, r2med: Command) -> None:
    words = ("compare", "--results", str(results), "--overlay", LABELS, "--measure", "mimic@10")
    shown = r2med(*words)
    assert "Mimic@10 × 100, lower is better" in shown.stdout
    assert f"{HYDE} cannot be distinguished from {BM25}: −10.00 points" in shown.stdout
    found = json.loads(r2med(*words, "--format", "json").stdout)
    assert found["means"][BM25]["mean"]["value"] == pytest.approx(43.75)
    few = Overlay("few", tuple(Overlay.read(LABELS).labels[:40]))
    few.write(tmp_path / "few.jsonl")
    part = r2med("compare", "--results", str(results), "--overlay", tmp_path / "few.jsonl", "--measure", "Mimic@10")
    assert "Mimic@10 counts labelled passages only, so it is a lower bound" in part.stdout
