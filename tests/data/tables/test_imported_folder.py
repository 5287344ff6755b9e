"""`import --update`: the dataset in a folder that an import made is replaced whole; any other folder is refused."""

from __future__ import annotations

import fcntl
from pathlib import Path
from typing import Any

import pytest

from r2med.data.tables import importing
from r2med.data.tables.importing import plan_import
from support.facts import error_states


def notes(folder: Path, count: int) -> Path:
    file = folder / "notes.csv"
    rows = [f"n{i},A note about patient number {i} and what ailed them." for i in range(count)]
    file.write_text("\n".join(["id,text", *rows, ""]))
    return file


def questions(folder: Path) -> Path:
    file = folder / "questions.csv"
    file.write_text("question,relevant\nWhat ailed patient number 1 last week?,n1\nWho was patient number 2?,n2\n")
    return file


def documents(folder: Path) -> int:
    return (folder / "corpus.jsonl").read_text().count("\n")


def test_a_newer_import_replaces_the_dataset_and_keeps_other_files(tmp_path: Path) -> None:
    folder = tmp_path / "ward"
    plan_import([notes(tmp_path, 3), questions(tmp_path)]).write(folder, update=True)  # there is nothing yet
    (folder / "card.toml").write_text('like = "MedQA-Diag"\n')
    (folder / "hyde").mkdir()
    (folder / "hyde" / "texts.jsonl").write_text("{}\n")
    plan_import([notes(tmp_path, 4), questions(tmp_path)]).write(folder, update=True)
    assert documents(folder) == 4
    assert (folder / "card.toml").exists() and (folder / "hyde" / "texts.jsonl").exists()
    assert sorted(path.name for path in tmp_path.iterdir() if path.name.startswith(".")) == []


def test_only_the_owner_can_read_an_imported_folder_unless_they_opened_it(tmp_path: Path) -> None:
    folder = tmp_path / "ward"
    plan_import([notes(tmp_path, 3)]).write(folder)
    assert folder.stat().st_mode & 0o777 == 0o700
    folder.chmod(0o750)  # a server of the same group reads it
    plan_import([notes(tmp_path, 4)]).write(folder, update=True)
    assert folder.stat().st_mode & 0o777 == 0o750


def test_an_import_into_a_folder_locks_it_so_that_others_wait(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, replace_folder, held = tmp_path / "ward", importing.replace_folder, []

    def replacing(*how: Any) -> None:
        with (tmp_path / ".ward.lock").open() as lock, pytest.raises(BlockingIOError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        held.append(how)
        replace_folder(*how)

    monkeypatch.setattr(importing, "replace_folder", replacing)
    for count in (3, 4):
        plan_import([notes(tmp_path, count), questions(tmp_path)]).write(folder, update=True)
    assert len(held) == 1 and documents(folder) == 4
    assert not (tmp_path / ".ward.lock").exists()


def test_what_a_killed_import_left_is_removed_by_the_next_one(tmp_path: Path) -> None:
    left, other = tmp_path / f".ward.{1:032x}.tmp", tmp_path / f".ward2.{1:032x}.tmp"
    for folder in (left, other):
        folder.mkdir()
        (folder / "corpus.jsonl").write_text("a note\n")
    plan_import([notes(tmp_path, 3)]).write(tmp_path / "ward")
    assert not left.exists() and other.exists()


def test_without_update_a_folder_that_is_there_is_refused(tmp_path: Path) -> None:
    plan_import([notes(tmp_path, 3)]).write(tmp_path / "ward")
    with error_states(tmp_path / "ward", "update (--update)"):
        plan_import([notes(tmp_path, 4)]).write(tmp_path / "ward")


def test_a_folder_that_no_import_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "corpus.jsonl").write_text("mine\n")
    with error_states("thesis", "r2med data import"):
        plan_import([notes(tmp_path, 3)]).write(tmp_path / "thesis", update=True)
    assert (tmp_path / "thesis" / "corpus.jsonl").read_text() == "mine\n"


def test_files_that_were_changed_by_hand_are_not_replaced(tmp_path: Path) -> None:
    plan_import([notes(tmp_path, 3)]).write(tmp_path / "ward")
    (tmp_path / "ward" / "corpus.jsonl").write_text('{"id": "n1", "text": "corrected by hand"}\n')
    with error_states("corpus.jsonl", "changed"):
        plan_import([notes(tmp_path, 4)]).write(tmp_path / "ward", update=True)
    assert documents(tmp_path / "ward") == 1


def test_questions_are_not_lost_when_only_notes_are_named(tmp_path: Path) -> None:
    folder = tmp_path / "ward"
    plan_import([notes(tmp_path, 3), questions(tmp_path)]).write(folder)
    with error_states(folder, "qrels.jsonl", "query.jsonl"):
        plan_import([notes(tmp_path, 4)]).write(folder, update=True)
    assert documents(folder) == 3
