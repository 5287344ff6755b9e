"""The command that exports runs writes the metadata header on request."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import yaml

from r2med.evaluation.running.evaluation import evaluate
from r2med.evaluation.running.ir_metadata import metadata_path
from r2med.evaluation.running.run_export import export_runs
from support.datasets import random_folder
from support.fork_server import Command


def metadata(run: Path) -> dict[str, Any]:
    """Return the metadata beside a run, whose own lines have six columns each."""
    lines = gzip.decompress(run.read_bytes()).decode().splitlines()
    assert lines and all(len(line.split()) == 6 and not line.startswith("#") for line in lines)
    facts: dict[str, Any] = yaml.safe_load(metadata_path(run).read_text(encoding="utf-8"))
    return facts


def test_a_run_is_exported_with_the_header_on_request(tmp_path: Path, r2med: Command) -> None:
    evaluate("bm25", random_folder(tmp_path / "mini", documents=30), tmp_path / "results")
    [run] = (tmp_path / "results").rglob("*.trec.gz")
    [bare] = export_runs(["bm25"], tmp_path / "bare", tmp_path / "results")
    assert bare.read_bytes() == gzip.decompress(run.read_bytes())
    made = r2med(
        "records",
        "export",
        "--format",
        "runs",
        "bm25",
        "--results",
        tmp_path / "results",
        "-o",
        tmp_path / "out",
        "--header",
    )
    lines = Path(made.stdout.strip()).read_text().splitlines()
    end = lines.index("# ir_metadata.end")
    assert lines[0] == "# ir_metadata.start" and lines[end + 1 :] == bare.read_text().splitlines()
    # As the schema's own reader does it: comments between two marks are YAML.
    assert yaml.safe_load("\n".join(line.strip("#") for line in lines[1:end])) == metadata(run)
