"""ir_metadata: the head of a run file says how it was made, and every reader of ours passes over it."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import yaml

import r2med
from r2med.results import evaluate
from r2med.retrieve import Run, write_run
from r2med.retrieve.written_run import WrittenRun
from support.datasets import random_folder


def head(path: Path) -> dict[str, Any]:
    """Return the metadata of a run as the schema's own reader does it: comments between two marks are YAML."""
    lines = gzip.decompress(path.read_bytes()).decode().splitlines()
    assert lines[0] == "# ir_metadata.start"
    end = lines.index("# ir_metadata.end")
    assert not any(line.startswith("#") for line in lines[end + 1 :])
    facts: dict[str, Any] = yaml.safe_load("\n".join(line.strip("#") for line in lines[1:end]))
    return facts


class ShortestFirst:
    revision = "1"

    def predict(self, pairs: list[tuple[str, str]]) -> list[float]:
        return [-float(len(document)) for _, document in pairs]


def test_a_run_file_says_how_it_was_made(tmp_path: Path) -> None:
    record = evaluate("rm3 → fuse(bm25+bm25(b=0.7), weights=3:1)", "demo/MedQA-Diag", tmp_path)
    [run] = tmp_path.rglob("*.trec.gz")
    facts = head(run)
    assert {*facts} == {"tag", "actor", "platform", "implementation", "research goal", "method", "data"}
    assert facts["platform"]["software"]["retrieval toolkit"] == [f"r2med=={r2med.__version__}"]
    command = facts["implementation"]["executable"]["cmd"]
    assert command == f"r2med run '{record.system}' --data demo/MedQA-Diag --k 1000"
    expansion, first, second, fused = facts["method"]["retrieval"]
    assert expansion["name"] == "rm3" and expansion["params"] == record.settings["expand"]
    assert (first["name"], second["name"], second["params"]["b"]) == ("bm25", "bm25(b=0.7)", 0.7)
    assert fused["interpolates"] == ["bm25", "bm25(b=0.7)"] and fused["params"]["weights"] == [3, 1]
    assert facts["data"]["test collection"]["fingerprint"] == record.dataset.fingerprint


def test_a_reranker_names_what_it_reranks_and_no_path_of_the_machine_is_told(tmp_path: Path) -> None:
    folder = random_folder(tmp_path / "mini", documents=30)
    evaluate("bm25", folder, tmp_path / "first")
    [first] = (tmp_path / "first").rglob("*.trec.gz")
    r2med.run(f"run:{first}", folder, rerank=[ShortestFirst()], out=tmp_path / "second")
    [second] = (tmp_path / "second").rglob("*.trec.gz")
    found, reranker = head(second)["method"]["retrieval"]
    assert found["name"] == f"run:{first.name}" and reranker["reranks"] == found["name"]
    assert str(tmp_path) not in gzip.decompress(second.read_bytes()).decode().partition("ir_metadata.end")[0]


def test_readers_pass_over_comments_and_ids_that_look_like_one_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "run.trec.gz"
    run = Run.of({"#1": {"#a": 2.0, "b": 1.0}, "q": {"b": 1.0}})
    write_run(run, path, header=["# ir_metadata.start", "# q Q0 b 1 9.0 other", "# ir_metadata.end"])
    assert list(Run.read(path, encoded=True)) == list(run)
    assert WrittenRun(path, run.queries).top("#1", 5) == [("#a", 2.0), ("b", 1.0)]
    assert WrittenRun(path, run.queries).rank("q", "b") == 1
