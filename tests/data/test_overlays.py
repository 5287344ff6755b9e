"""Overlays: further labels beside a dataset."""

from __future__ import annotations

from pathlib import Path

import pytest

from r2med import Dataset, load
from r2med.data import names
from r2med.data.loading import with_overlays
from r2med.data.overlays import Overlay, OverlayLabel, decided, overlay_files
from support.facts import error_states, some_states, states


def mine() -> Dataset:
    return Dataset.of(
        {"q1": "one", "q2": "two"}, {"a": "A", "b": "B", "c": "C"}, {"q1": {"a": 1}, "q2": {"b": 1}}, name="mine"
    )


def label(document: str, grade: int, by: str = "gpt4", query: str = "q1", **more: str) -> OverlayLabel:
    who = {"reviewer": by} if by.startswith("R") else {"judge": by}
    given = {"dataset": "mine", "query": query, "document": document, "grade": grade, **who, **more}
    return OverlayLabel.model_validate(given)


def test_labels_are_added_and_the_dataset_stays_as_it_was() -> None:
    dataset = mine()
    labelled = with_overlays(dataset, [Overlay("judged", (label("b", 1), label("a", 0)))])
    assert labelled.qrels["q1"] == {"a": 0, "b": 1}
    assert labelled.qrels["q2"] == {"b": 1}
    assert dataset.qrels["q1"] == {"a": 1}
    assert labelled.name == "mine+judged"
    assert labelled.fingerprint != dataset.fingerprint
    assert [(each.name, each.labels, each.reviewed) for each in labelled.overlays] == [("judged", 2, 0)]


def test_people_come_before_judges_and_several_grades_become_their_lower_median() -> None:
    overlay = Overlay("x", (label("b", 3, "A"), label("b", 0, "B"), label("c", 3, "A"), label("c", 0, "R1")))
    assert overlay.grades("mine") == {"q1": {"b": 0, "c": 0}}
    twice = Overlay("x", (label("b", 3, "R1"), label("b", 1, "R1")))
    assert twice.grades("mine") == {"q1": {"b": 1}}, "the last label of a person counts"


def test_a_tie_of_people_counts_for_nothing_and_is_named(caplog: pytest.LogCaptureFixture) -> None:
    tied = (label("a", 0, "R1"), label("a", 1, "R2"), label("b", 1, "A"), label("b", 0, "R1"), label("b", 2, "R2"))
    overlay = Overlay("people", (*tied, label("c", 1, "R1"), label("c", 3, "R2")))
    assert overlay.grades("mine") == {"q1": {"b": 1, "c": 1}}, "the judge's label of b, and two that agree about c"
    assert overlay.unsettled("mine") == [("q1", "a"), ("q1", "b")]
    for _ in range(2):
        assert with_overlays(mine(), [overlay]).qrels["q1"] == {"a": 1, "b": 1, "c": 1}, "the dataset's label of a"
    (line,) = caplog.messages
    states(line, "2 passages", "mine", "a", "q1")


def test_a_later_overlay_replaces_labels_of_an_earlier_one() -> None:
    stacked = with_overlays(mine(), [Overlay("x", (label("b", 1),)), Overlay("y", (label("b", 0), label("c", 1)))])
    assert stacked.qrels["q1"] == {"a": 1, "b": 0, "c": 1}
    assert stacked.name == "mine+x+y"


def test_labels_about_other_datasets_change_nothing() -> None:
    labelled = with_overlays(mine(), [Overlay("x", (label("b", 1),))])
    assert with_overlays(labelled, [Overlay("y", (label("c", 1, dataset="other"),))]) == labelled


def test_a_file_can_be_written_and_read(tmp_path: Path) -> None:
    overlay = Overlay("judged", (label("b", 1, why="it says so — “yes”"), label("c", 0, "R1")))
    overlay.write(tmp_path / "judged.jsonl")
    assert Overlay.read(tmp_path / "judged.jsonl") == overlay
    assert len((tmp_path / "judged.jsonl").read_text(encoding="utf-8").splitlines()) == 2


@pytest.mark.parametrize(
    ("content", "facts"),
    [
        ("", ["no labels"]),
        ("{}", ["overlay", "dataset"]),
        ('{"dataset":"d","query":"q","document":"x","grade":1}', ["judge", "reviewer"]),
        ('{"dataset":"d","query":"q","document":"x","grade":1e99,"judge":"j"}', ["grade"]),
        ("\x00\xff", ["overlay"]),
    ],
)
def test_a_damaged_file_is_one_line(tmp_path: Path, content: str, facts: list[str]) -> None:
    file = tmp_path / "bad.jsonl"
    file.write_text(content, encoding="latin-1")
    with error_states("bad.jsonl", *facts):
        Overlay.read(file)


def test_a_missing_file_or_an_unknown_id_is_one_line(tmp_path: Path) -> None:
    with error_states("none.jsonl", "read"):
        Overlay.read(tmp_path / "none.jsonl")
    with error_states("'z'", "document"):
        with_overlays(mine(), [Overlay("x", (label("z", 1),))])
    with error_states("'q9'", "query"):
        with_overlays(mine(), [Overlay("x", (label("a", 1, query="q9"),))])


def test_a_dataset_is_loaded_with_its_overlay(tmp_path: Path) -> None:
    plain = load("demo/Biology")
    query, document = plain.queries[0].id, next(iter(plain.corpus))[0]
    line = OverlayLabel(dataset="demo/Biology", query=query, document=document, grade=1, judge="j")
    Overlay("more", (line,)).write(tmp_path / "more.jsonl")
    loaded = load(f"demo/Biology+{tmp_path / 'more.jsonl'}")
    assert loaded.name == "demo/Biology+more"
    assert loaded.qrels[query][document] == 1
    assert len(names(f"demo+{tmp_path / 'more.jsonl'}")) == len(names("demo"))


def test_an_overlay_of_another_dataset_is_reported(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    Overlay("x", (label("a", 1, dataset="other"),)).write(tmp_path / "x.jsonl")
    with caplog.at_level("INFO", logger="r2med"):
        assert load(f"demo/Biology+{tmp_path / 'x.jsonl'}").name == "demo/Biology"
    some_states(caplog.messages, "overlay x", "other", "demo/Biology")


def test_a_plus_in_the_name_of_a_dataset_or_of_an_overlay_file_is_part_of_the_name(tmp_path: Path) -> None:
    (tmp_path / "more+labels.jsonl").write_text("{}")
    assert overlay_files("notes+a") == ("notes+a", [])
    assert overlay_files("notes+a+more+labels.jsonl") == ("notes+a", ["more+labels.jsonl"])
    assert overlay_files("notes+a+none.jsonl") == ("notes+a", ["none.jsonl"])


@pytest.mark.parametrize(
    ("votes", "decision"),
    [
        ([], None),
        ([0, 2], None),
        ([2, 3, 0, 1], None),
        ([3], 3),
        ([2, 3], 2),
        ([0, 3, 3], 3),
        ([0, 1, 3], 1),
        ([0, 0, 3], 0),
    ],
)
def test_the_majority_of_yes_or_no_decides_and_their_lower_median_is_the_grade(
    votes: list[int], decision: int | None
) -> None:
    assert decided(votes, lambda grade: grade >= 2) == decision


def test_the_last_settlement_comes_before_all_votes() -> None:
    assert decided([0, 0, 0], bool, [1, 3]) == 3
    assert decided([], bool, [0]) == 0
