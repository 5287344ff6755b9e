"""`r2med board`: the page's path, and one line for what cannot be shown."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.facts import some_states, states
from support.fork_server import Command


@pytest.fixture
def results(r2med: Command, tmp_path: Path) -> Path:
    r2med("run", "bm25", "--data", "demo/Biology", "--out", tmp_path / "results")
    return tmp_path / "results"


def test_the_path_of_the_page_is_printed(r2med: Command, results: Path, tmp_path: Path) -> None:
    done = r2med("board", results)
    states(done.stdout, "board/index.html")
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


PLANTED = "the patient of ward seven coughs purple sequins"


@pytest.fixture
def own_results(r2med: Command, tmp_path: Path) -> Path:
    """Records of an own dataset, whose note, query and answer hold a planted string."""
    ward = tmp_path / "ward"
    ward.mkdir()
    (ward / "corpus.jsonl").write_text(json.dumps({"id": "note-1", "text": f"{PLANTED} in a note"}) + "\n")
    query = {"id": "q-1", "text": f"why does {PLANTED}", "answer": f"{PLANTED} because"}
    (ward / "query.jsonl").write_text(json.dumps(query) + "\n")
    (ward / "qrels.jsonl").write_text(json.dumps({"q_id": "q-1", "p_id": "note-1", "score": 1}) + "\n")
    r2med("run", "bm25", "--data", ward, "--out", tmp_path / "own")
    return tmp_path / "own"


def holding_texts(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and PLANTED.encode() in path.read_bytes()]


def test_a_board_says_that_it_holds_texts_of_an_own_dataset(r2med: Command, own_results: Path, tmp_path: Path) -> None:
    done = r2med("board", own_results, "--data", tmp_path / "ward", "-o", tmp_path / "board")
    assert holding_texts(tmp_path / "board")
    some_states(done.stderr.splitlines(), "ward", "or make it without texts (--without-texts)")
    assert "texts of documents" in (tmp_path / "board" / "data" / "site.js").read_text()


def test_the_command_that_runs_a_system_again_has_the_folder_of_an_own_dataset(
    r2med: Command, own_results: Path, tmp_path: Path
) -> None:
    r2med("board", own_results, "--data", tmp_path / "ward", "-o", tmp_path / "board")
    assert f"r2med run bm25 --data {tmp_path / 'ward'}" in (tmp_path / "board" / "data" / "system" / "0.js").read_text()
    r2med("board", own_results, "-o", tmp_path / "board")
    assert "r2med run bm25 --data path/to/ward" in (tmp_path / "board" / "data" / "system" / "0.js").read_text()


def test_a_board_without_texts_holds_none(r2med: Command, own_results: Path, tmp_path: Path) -> None:
    site = tmp_path / "board"
    r2med("board", own_results, "--data", tmp_path / "ward", "-o", site)
    done = r2med("board", own_results, "--data", tmp_path / "ward", "-o", site, "--without-texts")
    assert done.returncode == 0 and "holds texts" not in done.stderr
    assert holding_texts(site) == [] and not list(site.rglob("q0.js"))
    assert "ward" in (site / "data" / "site.js").read_text()
    assert "holds texts" not in (site / "data" / "site.js").read_text()
