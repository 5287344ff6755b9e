"""The command compare with overlays."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from r2med import compare, load, run
from r2med.data.overlays import Overlay, OverlayLabel
from support.facts import some_states, states
from support.fork_server import Command

NAME = "demo/Biology"


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("results")
    run(["bm25", "bm25(k1=0.1, b=0)"], NAME, out=folder)
    return folder


def labels(grade: int, queries: list[str], documents: list[str], **who: str) -> tuple[OverlayLabel, ...]:
    lines = [{"dataset": NAME, "query": q, "document": d, "grade": grade, **who} for q in queries for d in documents]
    return tuple(map(OverlayLabel.model_validate, lines))


def test_the_command_shows_both_kinds_of_scores(results: Path, tmp_path: Path, r2med: Command) -> None:
    queries = [query.id for query in load(NAME).queries]
    documents = [document for document, _ in load(NAME).corpus][:12]
    judge = labels(1, queries, documents, judge="j")
    people = labels(0, queries[:5], documents, reviewer="R1")
    Overlay("labels", (*judge, *people)).write(tmp_path / "labels.jsonl")
    given = ["compare", "--results", str(results), "--data", NAME]
    overlay = ["--overlay", str(tmp_path / "labels.jsonl")]
    published, labelled = (json.loads(r2med(*given, *more, "--format", "json").stdout) for more in ([], overlay))
    assert published["pairs"] != labelled["pairs"]
    assert published["labels"] == "as published"
    states(labelled["labels"], "overlay labels")
    some_states(r2med(*given, *overlay).stdout.splitlines(), "Labels", "overlay labels")
    compare(results=results, out=tmp_path / "report", data=[NAME], overlays=[tmp_path / "labels.jsonl"])
    some_states((tmp_path / "report" / "table.md").read_text().splitlines(), "Labels", "overlay labels")
