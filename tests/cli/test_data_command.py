"""`r2med data`: every dataset by name, whatever stands in its card or its folder's name."""

import json
from pathlib import Path

import pytest

from r2med import load
from support.commands import typed
from support.datasets import r2med_folder
from support.facts import states
from support.fork_server import Command


def folder_of(folder: Path, documents: int = 2) -> Path:
    folder.mkdir(parents=True)
    (folder / "query.jsonl").write_text('{"id": "1", "text": "fever"}\n')
    rows = [{"id": f"d{number}", "text": f"fever {number}"} for number in range(documents)]
    (folder / "corpus.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "qrels.jsonl").write_text('{"q_id": "1", "p_id": "d0", "score": 1}\n')
    return folder


def test_the_list_names_every_dataset_and_group(capsys: pytest.CaptureFixture[str]) -> None:
    typed("list", "datasets")
    printed = capsys.readouterr().out
    assert all(name in printed for name in ("Biology", "IIYi-Clinical", "group R2MED", "clinical-evidence"))


def test_markup_and_escapes_in_a_card_are_shown_as_they_are(tmp_path: Path, r2med: Command) -> None:
    (tmp_path / "datasets").mkdir()
    card = 'task = "[bold]x[/y]"\nscenario = "[/nothing]"\nkind = "post"\nlicence = "evil\\u001b[31m"\n'
    (tmp_path / "datasets" / "mine.toml").write_text(card)
    done = r2med("list", "datasets", R2MED_PLUGINS=tmp_path)
    assert done.returncode == 0, done.stderr
    [line] = [line for line in done.stdout.splitlines() if line.startswith("mine ")]
    assert "[bold]x[/y]" in line and "[/nothing]" in line and r"evil\x1b[31m" in line
    assert "\x1b" not in done.stdout


def test_sizes_are_whole_on_a_narrow_screen(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "70")
    typed("show", "demo")
    printed = capsys.readouterr().out
    assert printed.count("demo/") == 8
    assert "…" not in printed


def test_the_name_of_a_folder_cannot_steer_the_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = folder_of(tmp_path / "evil\x1b[31m[bold]")
    for words in (("data", "fetch"), ("data", "check"), ("show",)):
        typed(*words, folder)
        printed = capsys.readouterr().out
        assert r"evil\x1b[31m[bold]" in printed
        assert "\x1b" not in printed


def test_problems_of_one_cause_are_one_line_with_their_number(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = folder_of(tmp_path / "set")
    rows = "".join(f'{{"q_id": "1", "p_id": "gone{number}", "score": 1}}\n' for number in range(1153))
    (folder / "qrels.jsonl").write_text('{"q_id": "1", "p_id": "d0", "score": 1}\n' + rows)
    assert typed("data", "check", folder) == 2
    printed = capsys.readouterr().out.splitlines()
    assert len(printed) == 2
    states(printed[0], 1153, "document", "line 2")
    states(printed[1], 1153, "problems")


def test_one_problem_is_counted_in_the_singular(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = folder_of(tmp_path / "set")
    with (folder / "qrels.jsonl").open("a") as file:
        file.write('{"q_id": "1", "p_id": "gone", "score": 1}\n')
    assert typed("data", "check", folder) == 2
    assert capsys.readouterr().out.splitlines()[-1].endswith(": 1 problem")


def test_example_writes_two_tables_and_the_dataset_that_an_import_makes_of_them(r2med: Command, tmp_path: Path) -> None:
    made = r2med("data", "example")
    assert made.returncode == 0 and "544 texts, 64 questions" in made.stdout
    assert r2med("data", "import", "notes.csv", "questions.csv", "-o", "mine", "--yes").returncode == 0
    assert load(tmp_path / "mine").fingerprint == load(tmp_path / "example").fingerprint
    again = r2med("data", "example")
    assert again.returncode == 2
    states(again.stderr, "notes.csv", "--out DIR")


def test_sizes_are_shown_of_a_group_a_folder_and_a_name(tmp_path: Path, r2med: Command) -> None:
    folder = r2med_folder(tmp_path / "Mine")
    shown = [r2med("show", name) for name in ("demo", folder)]
    assert [(done.returncode, done.stderr) for done in shown] == [(0, "")] * 2
    rows = [line.split() for done in shown for line in done.stdout.splitlines()]
    assert ["Dataset", "#Q", "#D", "Avg.", "Pos", "Q-Len", "D-Len", "D-Chars", "D-Max"] in rows
    assert ["Mine", "2", "3", "1.00", "3.5", "6.7", "37", "48"] in rows
    assert [row for row in rows if row[:1] == ["demo/Biology"]]
