"""The command compare shows how often mimics are ranked before relevant documents."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from r2med import run
from r2med.data.overlays import Overlay
from support.facts import some_states
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
    some_states(shown.stdout.splitlines(), "Mimic@10", "lower")
    some_states(shown.stdout.splitlines(), HYDE, "cannot be distinguished", BM25, "−10.00 points")
    found = json.loads(r2med(*words, "--format", "json").stdout)
    assert found["means"][BM25]["mean"]["value"] == pytest.approx(43.75)
    few = Overlay("few", tuple(Overlay.read(LABELS).labels[:40]))
    few.write(tmp_path / "few.jsonl")
    part = r2med("compare", "--results", str(results), "--overlay", tmp_path / "few.jsonl", "--measure", "Mimic@10")
    some_states(part.stdout.splitlines(), "Mimic@10", "lower bound")
