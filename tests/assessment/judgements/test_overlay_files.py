"""`r2med data overlays`: list, compare and remove overlays."""

from __future__ import annotations

import json
from pathlib import Path

from r2med import Overlay, OverlayLabel
from support.fork_server import Command


def overlay(file: Path, *grades: int, **who: str) -> None:
    lines = [{"dataset": "d", "query": "q", "document": f"x{n}", "grade": g, **who} for n, g in enumerate(grades)]
    file.parent.mkdir(exist_ok=True)
    Overlay(file.stem, tuple(map(OverlayLabel.model_validate, lines))).write(file)


def test_overlays_are_listed_compared_and_removed(r2med: Command, tmp_path: Path) -> None:
    overlay(tmp_path / "overlays/judged.jsonl", 1, 1, 0, 0, judge="gpt4")
    overlay(tmp_path / "overlays/people.jsonl", 1, 0, 0, reviewer="R1")
    rows = json.loads(r2med("data", "overlays", "--format", "json").stdout)
    assert [(row["file"], row["labels"], row["judges"], row["reviewers"]) for row in rows] == [
        ("overlays/judged.jsonl", 4, "gpt4", 0),
        ("overlays/people.jsonl", 3, None, 1),
    ]
    both = "overlays/judged.jsonl", "overlays/people.jsonl"
    (row,) = json.loads(r2med("data", "overlays", *both, "--compare", "--format", "json").stdout)
    assert (row["pairs of both"], row["yes in judged"], row["yes in people"]) == (3, 2, 1)
    assert row["agree"] == 2 / 3
    assert "Gwet" in r2med("data", "overlays", *both, "--compare").stdout
    assert "1 overlay deleted" in r2med("data", "overlays", both[0], "--remove").stdout
    assert not (tmp_path / both[0]).exists()
    assert (tmp_path / both[1]).exists()


def test_only_overlays_are_removed(r2med: Command, tmp_path: Path) -> None:
    (tmp_path / "notes.jsonl").write_text('{"my": "notes"}\n')
    overlay(tmp_path / "judged.jsonl", 1, judge="gpt4")
    refused = r2med("data", "overlays", "judged.jsonl", "notes.jsonl", "--remove")
    assert refused.returncode == 2
    assert "notes.jsonl:1: not a label of an overlay" in refused.stderr
    assert (tmp_path / "judged.jsonl").exists(), "nothing is deleted if one file is something else"
    assert "name the overlays" in r2med("data", "overlays", "--remove").stderr
    assert "there is no overlay in overlays" in r2med("data", "overlays").stderr
