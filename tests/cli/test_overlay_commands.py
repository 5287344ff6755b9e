"""The command compare with overlays: corrected scores."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from r2med import compare, load, run
from r2med.data.overlays import Overlay, OverlayLabel, random_order
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


def test_the_command_shows_all_three_kinds_of_scores(results: Path, tmp_path: Path, r2med: Command) -> None:
    queries = random_order(NAME, (query.id for query in load(NAME).queries))
    documents = [document for document, _ in load(NAME).corpus][:12]
    judge = labels(1, queries, documents, judge="j")
    Overlay("labels", (*judge, *labels(0, queries[:5], documents, reviewer="R1", drawn="random"))).write(
        tmp_path / "labels.jsonl"
    )
    given = ["compare", "--results", str(results), "--data", NAME]
    overlay = ["--overlay", str(tmp_path / "labels.jsonl")]
    published, labelled, estimated = (
        json.loads(r2med(*given, *more, "--format", "json").stdout) for more in ([], overlay, [*overlay, "--estimate"])
    )
    assert published["pairs"] != labelled["pairs"]
    assert published["labels"] == "as published"
    states(labelled["labels"], "overlay labels")
    some_states(r2med(*given, *overlay).stdout.splitlines(), "Labels", "overlay labels")
    assert [system["reviewed"] for system in estimated["estimates"]["systems"]] == [5, 5]
    assert estimated["estimates"]["systems"][0]["low"] is None, "five queries are too few for an interval"
    shown = r2med(*given, *overlay, "--estimate").stdout
    states(" ".join(shown.split()), "Labels: estimated", "5 of 8 queries")
    written = compare(
        results=results, out=tmp_path / "report", data=[NAME], overlays=[tmp_path / "labels.jsonl"], estimate=True
    )
    assert {"estimates.md", "estimates.tex", "estimates.csv"} <= {file.name for file in written.files}
    assert "bm25" in (tmp_path / "report" / "estimates.md").read_text()
    some_states((tmp_path / "report" / "table.md").read_text().splitlines(), "Labels", "overlay labels")
    refused = r2med(*given, "--estimate")
    assert refused.returncode == 2
    assert "--overlay FILE" in refused.stderr
