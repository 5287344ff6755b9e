"""`r2med search` and `r2med why` in a terminal."""

import json
from pathlib import Path

import pytest

from support.facts import states
from support.fork_server import Command


def test_the_best_passages_are_shown_and_nothing_in_them_steers_the_terminal(r2med: Command, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    rows = [{"id": "a\x1b[2J", "text": "A cough \x1b[31msince May."}, {"id": "b", "text": "An itch."}]
    (tmp_path / "mine" / "corpus.jsonl").write_text("\n".join(map(json.dumps, rows)))
    ended = r2med("search", "mine", "Who has a cough?")
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.splitlines()[1] == "A cough \\x1b[31msince May."
    assert "\x1b" not in ended.stdout
    assert json.loads(r2med("search", "mine", "itch", "--format", "json", "-k", "1").stdout)["passages"][0]["id"] == "b"
    states(r2med("search", "mine", "zebra").stdout, "nothing")


def test_a_query_s_story_fits_one_screen(r2med: Command, tmp_path: Path) -> None:
    r2med("run", "hyde(author) → bm25", "--data", "demo/MedQA-Diag", "--out", "out")
    [record] = (tmp_path / "out").rglob("*-*.json")
    query = next(iter(json.loads(record.read_text())["per_query"]))
    ended = r2med("why", record, query, COLUMNS="100")
    assert ended.returncode == 0, ended.stderr
    assert {"question:", "written:"} <= set(ended.stdout.split())
    assert "bm25 (the question alone)" in ended.stdout
    assert len(ended.stdout.splitlines()) < 60


def test_the_story_shows_every_relevant_passage_with_its_ranks(r2med: Command, tmp_path: Path) -> None:
    documents = [{"id": f"d{number}", "text": f"cough number {number}"} for number in range(9)]
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "corpus.jsonl").write_text("\n".join(map(json.dumps, documents)))
    (folder / "query.jsonl").write_text(json.dumps({"id": "q", "text": "cough"}))
    relevant = [{"q_id": "q", "p_id": f"d{number}", "score": 1} for number in range(7)]
    (folder / "qrels.jsonl").write_text("\n".join(map(json.dumps, relevant)))
    r2med("run", "bm25", "--data", "./mine", "--out", "out")
    [record] = (tmp_path / "out").rglob("*-*.json")
    shown = r2med("why", record, "q", "--data", "./mine").stdout
    assert [number for number in range(9) if f"relevant d{number}, grade 1: " in shown] == list(range(7))
    table = shown.partition("rank after")[2]
    assert all(f"\nd{number} " in table for number in range(7))
    assert [rank for rank in (1, 2, 3) if f"found {rank}. d" in shown] == [1, 2, 3]


def test_a_relevant_passage_that_shares_no_word_is_not_found(r2med: Command, tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "corpus.jsonl").write_text('{"id": "d0", "text": "cough"}\n{"id": "d1", "text": "a rash"}\n')
    (folder / "query.jsonl").write_text(json.dumps({"id": "q", "text": "cough"}))
    (folder / "qrels.jsonl").write_text(json.dumps({"q_id": "q", "p_id": "d1", "score": 1}))
    r2med("run", "bm25", "--data", "./mine")
    shown = r2med("why", "bm25", "mine", "cough", "--data", "./mine").stdout
    assert "not found" in shown.partition("rank after")[2] and "found 1. d0, not judged:" in shown


@pytest.mark.parametrize(
    ("words", "facts"),
    [
        (["search", "nowhere", "x"], ["'nowhere'"]),
        (["search", "demo/Biology", " "], ["question", "empty"]),
        (["search", "demo/Biology", "x", "--system", "bm26"], ["bm26", "bm25?"]),
        (["why", "no.json", "1"], ["no.json", "record"]),
    ],
)
def test_bad_input_is_one_line(r2med: Command, words: list[str], facts: list[str]) -> None:
    ended = r2med(*words)
    assert ended.returncode == 2
    states(ended.stderr, *facts)


def test_a_query_is_explained_by_system_and_dataset_too(r2med: Command, tmp_path: Path) -> None:
    r2med("run", "bm25", "--data", "demo/Biology")
    [record] = tmp_path.glob("results/demo/Biology/*.json")
    query = next(iter(json.loads(record.read_bytes())["per_query"]))
    assert r2med("why", "bm25", "demo/Biology", query).stdout == r2med("why", record, query).stdout != ""
    missing = r2med("why", "bm25", "demo/Biolgy", query)
    assert missing.returncode == 2
    states(missing.stderr, "bm25 on demo/Biolgy", "demo/Biology?", "r2med run bm25")
