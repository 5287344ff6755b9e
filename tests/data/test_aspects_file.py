"""`aspects.jsonl` beside a dataset names the aspects of answers. Its faults are reported with file and line."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from r2med.data import load
from r2med.data.check import check
from r2med.data.dataset import QueryAspect
from support.facts import error_states, some_states

ROW = {"query": "q1", "aspect": "cause", "weight": 2, "documents": ["d1"]}


def write(folder: Path, *aspects: dict[str, Any]) -> Path:
    rows = {
        "corpus.jsonl": [{"id": "d1", "text": "one"}, {"id": "d2", "text": "two"}],
        "query.jsonl": [{"id": "q1", "text": "why"}, {"id": "q2", "text": "how"}],
        "qrels.jsonl": [{"q_id": query, "p_id": "d1", "score": 1} for query in ("q1", "q2")],
    }
    if aspects:
        rows["aspects.jsonl"] = list(aspects)
    folder.mkdir()
    for name, lines in rows.items():
        (folder / name).write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    return folder


def test_aspects_load_with_weights_and_change_the_fingerprint(tmp_path: Path) -> None:
    dataset = load(write(tmp_path / "own", ROW, {**ROW, "query": "q2", "weight": None}))
    assert dataset.aspects == {"q1": {"cause": QueryAspect(2.0, ("d1",))}, "q2": {"cause": QueryAspect(1.0, ("d1",))}}
    bare = load(write(tmp_path / "bare"))
    assert bare.aspects == {}
    assert bare.fingerprint != dataset.fingerprint


@pytest.mark.parametrize(
    ("change", "facts"),
    [
        ({"weight": 0}, ["'weight'", "above 0"]),
        ({"weight": float("inf")}, ["'weight'", "above 0"]),
        ({"weight": "much"}, ["'weight'", "number"]),
        ({"documents": []}, ["'documents'", "at least one"]),
        ({"documents": [1]}, ["'documents'", "at least one"]),
        ({"aspect": ""}, ["empty id"]),
    ],
)
def test_a_bad_aspect_is_one_line_with_file_and_line(tmp_path: Path, change: dict[str, Any], facts: list[str]) -> None:
    with error_states("aspects.jsonl:2", *facts):
        load(write(tmp_path / "own", {**ROW, "aspect": "other"}, {**ROW, **change}))


def test_a_repeated_aspect_is_a_problem(tmp_path: Path) -> None:
    with error_states("aspects.jsonl:2", "'cause'", "'q1'", "repeated"):
        load(write(tmp_path / "own", ROW, ROW))


def test_check_reports_unknown_queries_documents_that_are_not_relevant_and_queries_without_aspects(
    tmp_path: Path,
) -> None:
    folder = write(tmp_path / "own", ROW, {**ROW, "query": "q9"}, {**ROW, "aspect": "cure", "documents": ["d2"]})
    lines = list(check(folder).lines())
    some_states(lines, "aspects.jsonl:2", "'q9'", "unknown")
    some_states(lines, "aspects.jsonl:3", "'d2'", "'cure'", "'q1'", "not relevant")
    some_states(lines, "'q2'", "no aspect")


def test_the_demo_has_aspects_for_one_dataset_that_cover_its_relevant_documents(tmp_path: Path) -> None:
    dataset = load("demo/Medical-Sciences")
    assert check("demo/Medical-Sciences").flaws == []
    for query, grades in dataset.qrels.items():
        assert {each for aspect in dataset.aspects[query].values() for each in aspect.documents} == set(grades)
    assert dataset.folder is not None
    copied = shutil.copytree(dataset.folder, tmp_path / "copy")
    (copied / "aspects.jsonl").unlink()
    assert load(copied).qrels.fingerprint == dataset.qrels.fingerprint
