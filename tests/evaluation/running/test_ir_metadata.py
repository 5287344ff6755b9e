"""ir_metadata: a file beside a run says how it was made; readers of ours pass over it where it is a header."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import yaml

import r2med
from r2med.data.runs import Run
from r2med.data.runs.trec import WrittenRun, format_run
from r2med.evaluation.records.record import Record
from r2med.evaluation.running.evaluation import evaluate
from r2med.evaluation.running.ir_metadata import metadata_path
from r2med.evaluation.running.run_export import export_runs
from r2med.foundation.store.files import sha256
from support.datasets import random_folder


def metadata(run: Path) -> dict[str, Any]:
    """Return the metadata beside a run, whose own lines have six columns each."""
    lines = gzip.decompress(run.read_bytes()).decode().splitlines()
    assert lines and all(len(line.split()) == 6 and not line.startswith("#") for line in lines)
    facts: dict[str, Any] = yaml.safe_load(metadata_path(run).read_text(encoding="utf-8"))
    return facts


class ShortestFirst:
    revision = "1"

    def predict(self, pairs: list[tuple[str, str]]) -> list[float]:
        return [-float(len(document)) for _, document in pairs]


def test_a_file_beside_a_run_says_how_it_was_made(tmp_path: Path) -> None:
    record = evaluate("rm3 → fuse(bm25+bm25(b=0.7), weights=3:1)", "demo/MedQA-Diag", tmp_path)
    [run] = tmp_path.rglob("*.trec.gz")
    facts = metadata(run)
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
    found, reranker = metadata(second)["method"]["retrieval"]
    assert found["name"] == f"run:{first.name}" and reranker["reranks"] == found["name"]
    assert str(tmp_path) not in metadata_path(second).read_text()


def test_readers_pass_over_comments_and_ids_that_look_like_one_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "run.trec.gz"
    run = Run.of({"#1": {"#a": 2.0, "b": 1.0}, "q": {"b": 1.0}})
    comments = b"# ir_metadata.start\n# q Q0 b 1 9.0 other\n# ir_metadata.end\n"
    path.write_bytes(gzip.compress(comments + b"".join(format_run(run, "r2med"))))
    assert list(Run.read(path, encoded=True)) == list(run)
    assert WrittenRun(path, run.queries).top("#1", 5) == [("#a", 2.0), ("b", 1.0)]
    assert WrittenRun(path, run.queries).rank("q", "b") == 1


def test_a_run_of_version_0_2_loses_its_header_when_it_is_exported_without(tmp_path: Path) -> None:
    evaluate("bm25", random_folder(tmp_path / "mini", documents=30), tmp_path / "results")
    [run] = (tmp_path / "results").rglob("*.trec.gz")
    content = gzip.decompress(run.read_bytes())
    head = b"# ir_metadata.start\n# tag: 1\n# ir_metadata.end\n"
    run.write_bytes(gzip.compress(head + content))
    _note_hash(run)
    metadata_path(run).unlink()
    for header, expected in ((False, content), (True, head + content)):
        [file] = export_runs(["bm25"], tmp_path / "out", tmp_path / "results", header=header)
        assert file.read_bytes() == expected


def _note_hash(run: Path) -> None:
    """State the hash of a run in its record, as if the record had been made with it."""
    path = run.with_suffix("").with_suffix(".json")
    record = Record.read(path)
    assert record.run is not None
    record.model_copy(update={"run": record.run.model_copy(update={"sha256": sha256(run)})}).write(path)
