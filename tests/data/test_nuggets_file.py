"""Nuggets beside a dataset: read, written, checked, and no part of the dataset's fingerprint."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from r2med import Dataset, load
from r2med.data.check import check
from r2med.data.dataset_cards import demo_folder
from r2med.data.nuggets_file import NUGGETS_NAME, Nugget, Nuggets, nuggets_of, read_nuggets
from r2med.foundation.store import Store
from support.facts import error_states, some_states

ROW = {"query": "q", "nugget": "n1", "text": "It is the liver.", "vital": True}


def written(tmp_path: Path, *rows: Any) -> Path:
    file = tmp_path / NUGGETS_NAME
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return file


def test_nuggets_come_back_as_they_were_written(tmp_path: Path) -> None:
    nuggets = Nuggets.of([Nugget("q", "n1", "Ätiologie", True, "me", True), Nugget("q", "n2", "b", False)])
    nuggets.write(tmp_path / "new" / "n.jsonl")
    again = read_nuggets(tmp_path / "new" / "n.jsonl")
    assert again == nuggets
    assert len(again) == 2


def test_the_digest_changes_with_texts_and_weights_but_not_with_authors() -> None:
    first = Nugget("q", "n1", "a", True)
    digests = [
        Nuggets.of([each]).digest
        for each in (
            first,
            Nugget("q", "n1", "a", True, "me", True),
            Nugget("q", "n1", "a", False),
            Nugget("q", "n1", "b"),
        )
    ]
    assert digests[0] == digests[1]
    assert len(set(digests)) == 3


@pytest.mark.parametrize(
    ("rows", "facts"),
    [
        ([{**ROW, "vital": "yes"}], ["'vital'", "true or false"]),
        ([{**ROW, "text": " "}], ["id", "query"]),
        ([ROW, ROW], ["'n1'", "query 'q'", "repeated"]),
        ([], ["no nuggets"]),
    ],
)
def test_a_fault_is_one_line(tmp_path: Path, rows: list[Any], facts: list[str]) -> None:
    with error_states(NUGGETS_NAME, *facts):
        read_nuggets(written(tmp_path, *rows))


def test_nuggets_of_another_dataset_are_refused(tmp_path: Path) -> None:
    dataset = Dataset.of({"other": "?"}, {"d": "text"}, name="small")
    with error_states("no nuggets", "small"):
        read_nuggets(written(tmp_path, ROW), dataset)
    assert nuggets_of(dataset) is None


def test_nuggets_do_not_change_the_fingerprint_and_are_checked(tmp_path: Path, store: Store) -> None:
    folder = tmp_path / "set"
    shutil.copytree(demo_folder("Medical-Sciences"), folder)
    (folder / NUGGETS_NAME).unlink(missing_ok=True)
    bare = load(folder, store).fingerprint
    written(folder, {**ROW, "query": "0"}, {**ROW, "query": "unknown"})
    dataset = load(folder, store)
    assert dataset.fingerprint == bare
    assert nuggets_of(dataset)
    some_states(check(folder, store).lines(), "query 'unknown'", "nugget")
