"""The command that exports runs writes what every version of trec_eval can read."""

from __future__ import annotations

import gzip
from pathlib import Path

from r2med.evaluation.running.evaluation import evaluate
from support.datasets import random_folder
from support.fork_server import Command


def test_a_run_is_exported_as_lines_of_six_columns(tmp_path: Path, r2med: Command) -> None:
    evaluate("bm25", random_folder(tmp_path / "mini", documents=30), tmp_path / "results")
    [run] = (tmp_path / "results").rglob("*.trec.gz")
    folders = ["--results", tmp_path / "results", "-o", tmp_path / "out"]
    made = r2med("records", "export", "--format", "runs", "bm25", *folders)
    content = Path(made.stdout.strip()).read_bytes()
    assert content == gzip.decompress(run.read_bytes())
    assert all(len(line.split()) == 6 for line in content.splitlines())
