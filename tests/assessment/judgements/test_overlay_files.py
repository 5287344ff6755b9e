"""`r2med list overlays`: list, compare and remove overlays."""

from __future__ import annotations

import json
from pathlib import Path

from r2med import Overlay, OverlayLabel
from r2med.assessment.judgements.overlay_files import compared_overlays, comparison_page, overlay_paths
from support.facts import error_states
from support.fork_server import Command


def overlay(file: Path, *grades: int, **who: str) -> None:
    lines = [{"dataset": "d", "query": "q", "document": f"x{n}", "grade": g, **who} for n, g in enumerate(grades)]
    file.parent.mkdir(exist_ok=True)
    Overlay(file.stem, tuple(map(OverlayLabel.model_validate, lines))).write(file)


def test_overlays_are_listed_and_compared(r2med: Command, tmp_path: Path) -> None:
    overlay(tmp_path / "overlays/judged.jsonl", 1, 1, 0, 0, judge="gpt4")
    overlay(tmp_path / "overlays/people.jsonl", 1, 0, 0, reviewer="R1")
    rows = json.loads(r2med("list", "overlays", "--format", "json").stdout)
    assert [(row["file"], row["labels"], row["judges"], row["reviewers"]) for row in rows] == [
        ("overlays/judged.jsonl", 4, "gpt4", 0),
        ("overlays/people.jsonl", 3, None, 1),
    ]
    both = "overlays/judged.jsonl", "overlays/people.jsonl"
    (row,) = json.loads(r2med("review", "show", *both, "--format", "json").stdout)
    assert (row["pairs of both"], row["yes in judged"], row["yes in people"]) == (3, 2, 1)
    assert row["agree"] == 2 / 3
    assert "Gwet" in r2med("review", "show", *both).stdout


def test_two_overlays_whose_files_have_one_name_are_compared(tmp_path: Path) -> None:
    overlay(tmp_path / "mine/judged.jsonl", 1, 1, 0, judge="gpt4")
    overlay(tmp_path / "theirs/judged.jsonl", 1, 0, 0, judge="o3")
    _, (row,) = comparison_page([tmp_path / "mine/judged.jsonl", tmp_path / "theirs/judged.jsonl"])
    assert (row["pairs of both"], row["agree"]) == (3, 2 / 3)


def test_overlays_without_a_common_pair_cannot_be_compared(tmp_path: Path) -> None:
    overlay(tmp_path / "a/mine.jsonl", 1, judge="gpt4")
    Overlay("other", (OverlayLabel(dataset="d", query="p", document="x0", grade=1, judge="o3"),)).write(
        tmp_path / "other.jsonl"
    )
    with error_states("mine", "other"):
        comparison_page([tmp_path / "a/mine.jsonl", tmp_path / "other.jsonl"])


def test_grades_of_other_datasets_are_not_compared(tmp_path: Path) -> None:
    def label(dataset: str, grade: int) -> OverlayLabel:
        return OverlayLabel(dataset=dataset, query="q", document="x", grade=grade, judge="j")

    first = Overlay("first", (label("d", 1), label("e", 1)))
    second = Overlay("second", (label("d", 0), label("f", 1)))
    found = [(dataset, ratings.table().tolist()) for dataset, ratings in compared_overlays(first, second)]
    assert found == [("d", [[1.0, 0.0]])]


def test_a_folder_without_overlays_names_the_command_that_makes_one(tmp_path: Path) -> None:
    with error_states(tmp_path, "r2med judge"):
        overlay_paths([tmp_path])


def test_a_folder_without_overlays_is_one_line(r2med: Command, tmp_path: Path) -> None:
    assert "there is no overlay in overlays" in r2med("list", "overlays").stderr
    overlay(tmp_path / "mine" / "judged.jsonl", 1, judge="gpt4")
    assert "gpt4" in r2med("list", "overlays", "mine").stdout
    assert "gpt4" in r2med("show", "mine/judged.jsonl").stdout
