"""Verified scores: what `reproduce --cpu` runs, the file that it writes, and where README, docs and board show it."""

from __future__ import annotations

import json
import shutil
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from r2med import UserError, reproduce
from r2med.data.dataset_cards import BENCHMARK, bundled_cards, groups
from r2med.evaluation.records.collection import collect
from r2med.publication.leaderboard import verified_scores
from r2med.publication.leaderboard.expectations import expectations
from r2med.publication.leaderboard.published import published
from r2med.publication.leaderboard.reproduction import chosen_scores, known_scores
from r2med.publication.leaderboard.verified_scores import NOT_YET, VerifiedScores
from r2med.publication.site.reproduce_page import reproduce_value
from support.docs_stand_ins import DEMO
from support.facts import error_states
from support.fork_server import Command

ROOT = Path(__file__).parents[3]
NAMES = groups()[BENCHMARK]
RECORDED = "hyde/gpt4/query_with_hydoc.jsonl"


@pytest.fixture
def benchmark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the benchmark's names. Folders in the shape of its repositories, with texts of an LLM, are read."""
    folders = {}
    for name in NAMES:
        folder = Path(shutil.copytree(DEMO / name, tmp_path / "data" / name))
        (folder / RECORDED).parent.mkdir()
        shutil.copy(folder / "hyde/author/query_with_hydoc.jsonl", folder / RECORDED)
        folders[bundled_cards()[name].hub] = folder
    monkeypatch.setattr("r2med.data.hub.snapshot", lambda hub, store: folders[hub])
    return list(NAMES)


def test_every_published_row_of_bm25_needs_neither_gpu_nor_key_and_no_other_does() -> None:
    known, others = known_scores([""], cpu=True)
    of_rows = [each for each in known if each.label]
    rows = [row for row in published() if row.retriever == "bm25" and not row.reranker]
    assert {(each.label, each.source) for each in of_rows} == {(row.name, row.source) for row in rows}
    assert len(of_rows) > 15 and not others
    assert {each.system.split(" → ")[-1].partition("(")[0] for each in known} == {"bm25"}
    assert all(each.recorded for each in of_rows if "→" in each.system)
    chosen = chosen_scores([], [BENCHMARK], cpu=True)
    assert {each.system for each, _ in chosen} == {each.system for each in of_rows} | {"bm25(scorer=lucene)"}


def test_a_system_that_needs_a_gpu_is_refused_in_one_line() -> None:
    with error_states("nv:published", "GPU", "cpu=True"):
        chosen_scores(["nv:published"], [BENCHMARK], cpu=True)


def test_a_stopped_check_continues_and_the_file_has_every_score(benchmark: list[str], tmp_path: Path) -> None:
    file = tmp_path / "docs/verified.json"
    [plain] = reproduce("bm25", benchmark, cpu=True, out=tmp_path / "results", verified=file)
    first = VerifiedScores.read(file)
    assert first is not None and first.rows == (plain,)
    made = reproduce(["bm25", "hyde(gpt4) → bm25"], benchmark, cpu=True, out=tmp_path / "results", verified=file)
    read = VerifiedScores.read(file)
    assert read is not None and list(read.rows) == made
    observed = {row.expectation.system: row.figures[-1].observed for row in read.whole}
    assert {system: round(score, 2) for system, score in observed.items() if score is not None} == {
        "bm25": 17.95,
        "hyde(gpt4) → bm25": 91.4,
    }
    assert "computed 2 published rows on the eight datasets" in read.statement and "2 off" in read.statement


def test_rows_without_all_scores_and_other_data_are_not_verified(benchmark: list[str], tmp_path: Path) -> None:
    some = reproduce("bm25", benchmark[:2], out=tmp_path / "results")
    demo = reproduce("bm25", "demo", out=tmp_path / "results")
    scores = VerifiedScores.of([*some, *demo])
    assert (scores.whole, scores.statement) == ([], NOT_YET)


def test_the_board_shows_what_we_ran(benchmark: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    outcomes = reproduce("bm25", benchmark, out=tmp_path / "results")
    records = collect([tmp_path / "results"])
    nothing = reproduce_value(records)
    assert nothing["by_us"] == NOT_YET
    assert not any(row["by_us"] for row in nothing["rows"])
    VerifiedScores.of(outcomes).write(tmp_path / "verified.json")
    monkeypatch.setattr(verified_scores, "FILE", tmp_path / "verified.json")
    page = reproduce_value(records)
    assert page["by_us"].startswith("r2med ")
    [row] = [row for row in page["rows"] if row["by_us"]]
    assert row["name"] == "bm25" and row["by_us"].startswith("17.95 (off), r2med ")


def pages(monkeypatch: pytest.MonkeyPatch, file: Path) -> dict[str, str]:
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    parts: Any = import_module("generators.marked_parts")
    monkeypatch.setattr(parts, "VERIFIED", file)
    return {path.name: text for path, text in parts.pages().items()}


def test_readme_and_docs_show_what_we_ran_or_that_we_ran_nothing(
    benchmark: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "verified.json"
    without = pages(monkeypatch, file)
    assert "verified.json" not in without
    for name in ("README.md", "reproduce.md", "evidence.md"):
        assert NOT_YET in without[name]
    VerifiedScores.of(reproduce("bm25", benchmark, out=tmp_path / "results")).write(file)
    shown = pages(monkeypatch, file)
    assert shown["verified.json"] == file.read_text()
    for name in ("README.md", "reproduce.md", "evidence.md"):
        assert NOT_YET not in shown[name]
        assert "computed 1 published row on" in shown[name]
    assert "| `bm25` | 15.13 | 17.95 | off |" in shown["reproduce.md"]


def test_the_package_has_the_scores_of_the_docs_and_no_others() -> None:
    docs = ROOT / "docs/verified.json"
    assert verified_scores.FILE.exists() == docs.exists()
    if docs.exists():
        assert verified_scores.FILE.read_bytes() == docs.read_bytes()


def test_a_file_of_something_else_is_refused_in_one_line(tmp_path: Path) -> None:
    file = tmp_path / "verified.json"
    file.write_text(json.dumps({"format": 2, "rows": []}))
    with error_states("verified.json", "reproduce --verified"):
        VerifiedScores.read(file)


def test_a_folder_that_cannot_be_written_to_is_refused_before_the_run(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match="verified"):
        reproduce("bm25", "demo/Biology", out=tmp_path / "results", verified=tmp_path / "file/verified.json")
    assert not (tmp_path / "results").exists()


def test_the_command_writes_the_file(tmp_path: Path, r2med: Command) -> None:
    done = r2med("reproduce", "--cpu", "--data", "demo/Biology", "--verified", "docs/verified.json")
    assert done.returncode == 0, done.stderr
    written = json.loads((tmp_path / "docs/verified.json").read_text())
    assert len(written["rows"]) == len([each for each in expectations() if "demo/Biology" in each.values])
