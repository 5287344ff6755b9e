"""`r2med data import` shows what it took columns for, writes a dataset and names the next command."""

from pathlib import Path

import pytest

from support.facts import some_states, states
from support.fork_server import Command


@pytest.fixture(autouse=True)
def tables(tmp_path: Path) -> None:
    (tmp_path / "notes.csv").write_text("note_id;note;ward\nn1;A cough \x1b[2Jsince May.;3\nn2;An itch.;4\n")
    (tmp_path / "asked.tsv").write_text("question\trelevant\nWho coughs?\tn1\n")


def test_three_rows_are_shown_and_the_next_command_runs(r2med: Command, tmp_path: Path) -> None:
    ended = r2med("data", "import", "notes.csv", "asked.tsv", "-o", "my ward")
    assert ended.returncode == 0, ended.stderr
    assert "notes.csv: documents" in ended.stdout
    assert "id = note_id" in ended.stdout
    assert "not used: ward" in ended.stdout
    some_states(ended.stdout.splitlines(), "2 documents", "1 question", "1 judgement", "1 relevant")
    assert "\x1b" not in ended.stdout
    states(ended.stdout.splitlines()[-1], "r2med run bm25 --data 'my ward'")
    assert r2med("run", "bm25", "--data", "my ward").returncode == 0


def test_without_judgements_one_can_search_but_not_score(r2med: Command) -> None:
    made = r2med("data", "import", "notes.csv", "-o", "mine").stdout
    states(made.splitlines()[-1], "r2med search mine 'a question'")
    ended = r2med("run", "bm25", "--data", "mine")
    assert ended.returncode == 2
    states(ended.stderr.splitlines()[-1], "mine", "no queries", "scored")


@pytest.mark.parametrize(
    ("words", "facts"),
    [
        (["notes.csv", "-o", "notes.csv"], ["notes.csv", "exists"]),
        (["notes.csv", "-o", "mine", "--text", "nota"], ["--text nota", "note?"]),
        (["nothing.csv", "-o", "mine"], ["nothing.csv", "not exist"]),
        (["notes.csv"], ["--out"]),
    ],
)
def test_bad_input_is_one_line(r2med: Command, words: list[str], facts: list[str]) -> None:
    ended = r2med("data", "import", *words)
    assert ended.returncode == 2
    states(ended.stderr, *facts)


def test_the_language_is_shown_with_the_command_that_searches_it(r2med: Command, tmp_path: Path) -> None:
    notes = "".join(f"n{n};Der Patient klagt über Schmerzen in der Hand {n}.\n" for n in range(4))
    (tmp_path / "faelle.csv").write_text(f"note_id;note\n{notes}", encoding="utf-8")
    shown = r2med("data", "import", "faelle.csv", "-o", "ward").stdout
    some_states(shown.splitlines(), "German", "100%", "4 documents")
    states(shown.splitlines()[-1], "r2med search ward 'a question' --system 'bm25(language=de)'")
