"""Analyses by name: one page, and a CSV file for every table of it."""

import csv
import shutil
from importlib.resources import files
from pathlib import Path

import pytest

from r2med.analysis import run_analyses
from r2med.evaluation.running.evaluation import evaluate
from r2med.foundation.core.errors import UserError


def test_overlap_of_the_demo_is_a_page_and_tables(tmp_path: Path) -> None:
    done = run_analyses("overlap", data=["demo/MedQA-Diag", "demo/Biology"], out=tmp_path / "out")
    page, *tables = done.files
    assert page.name == "index.html"
    side_by_side = {f"overlap-by-{measure}.csv" for measure in ("coverage", "idf-weighted")}
    assert {table.name for table in tables} == {
        "overlap-terms.csv",
        "overlap-bm25.csv",
        "overlap-queries.csv",
        *side_by_side,
    }
    rows = list(csv.DictReader((tmp_path / "out/overlap-terms.csv").open()))
    assert len(rows) == 9  # of two datasets and of both together
    assert all(float(row["coverage low"]) <= float(row["coverage"]) <= float(row["coverage high"]) for row in rows[:6])


def test_the_same_material_gives_the_same_bytes(tmp_path: Path) -> None:
    first, second = (run_analyses("overlap", data=["demo/Biology"], out=tmp_path / name) for name in "ab")
    assert [file.read_bytes() for file in first.files] == [file.read_bytes() for file in second.files]


def test_an_unknown_analysis_is_an_error_with_the_nearest_name() -> None:
    with pytest.raises(UserError, match="overlap"):
        run_analyses("overlaps")


def test_records_of_a_folder_with_a_reserved_name_are_found(tmp_path: Path) -> None:
    demo = Path(str(files("r2med") / "data/demo/Biology"))
    folder = shutil.copytree(demo, tmp_path / "SciFact")
    evaluate("bm25", folder, tmp_path / "results")
    done = run_analyses("slices", data=[str(folder)], results=tmp_path / "results", out=tmp_path / "out")
    assert "best system, bm25" in done.sections[0].lead
