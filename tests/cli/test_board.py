"""`r2med board`: the page's path, and one line for what cannot be shown."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.fork_server import Command


@pytest.fixture
def results(r2med: Command, tmp_path: Path) -> Path:
    r2med("run", "bm25", "--data", "demo/Biology", "--out", tmp_path / "results")
    return tmp_path / "results"


def test_the_path_of_the_page_is_printed(r2med: Command, results: Path, tmp_path: Path) -> None:
    done = r2med("board", results)
    assert done.stdout == "The board: board/index.html\n"
    assert (tmp_path / "board" / "index.html").is_file()


def test_what_cannot_be_shown_is_one_line(r2med: Command, results: Path, tmp_path: Path) -> None:
    [record] = results.rglob("bm25-*.json")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("mine")
    refused = r2med("board", results, "-o", tmp_path / "mine")
    assert (refused.returncode, refused.stderr.count("\n")) == (2, 1)
    assert "is not a board" in refused.stderr
    content = json.loads(record.read_text())
    record.write_text(json.dumps({**content, "system": "better"}))
    refused = r2med("board", results)
    assert (refused.returncode, refused.stderr.count("\n")) == (2, 1)
    assert "was altered" in refused.stderr


def test_records_in_the_folder_of_the_site_are_never_deleted(r2med: Command, results: Path, tmp_path: Path) -> None:
    site = tmp_path / "site"
    r2med("board", results, "-o", site)
    results.rename(site / "results")
    before = {path: path.read_bytes() for path in (site / "results").rglob("*") if path.is_file()}
    done = r2med("board", site / "results", "-o", site)
    assert done.returncode == 0, done.stderr
    assert {path: path.read_bytes() for path in (site / "results").rglob("*") if path.is_file()} == before
    (site / "board.json").unlink()
    assert "is not a board" in r2med("board", site / "results", "-o", site).stderr
