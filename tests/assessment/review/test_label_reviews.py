"""People's reviews of the labels in an overlay, and the overlay that they become."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from r2med import Dataset, UserError
from r2med.assessment.review.label_reviews import LabelledPair, label_items, noted, pairs_to_label, people_overlay
from r2med.assessment.review.review_book import ReviewBook, reviews_file
from r2med.assessment.review.review_desk import ReviewDesk
from r2med.assessment.review.reviews import Review
from r2med.construction.review_items import add_reviews
from r2med.data.dataset import Query
from r2med.data.overlays import Overlay, OverlayLabel
from support.commands import typed

TOPICS = ["liver", "heart", "kidney", "lung"]


def small() -> Dataset:
    queries = [Query(f"q{n}", f"what ails the {topic}", f"{topic} disease") for n, topic in enumerate(TOPICS)]
    corpus = {f"d{n}{part}": f"The {topic} is ill, {part}." for n, topic in enumerate(TOPICS) for part in "abc"}
    return Dataset.of(queries, corpus, {f"q{n}": {f"d{n}a": 1} for n in range(4)}, name="small")


JUDGED = Overlay(
    "judged",
    tuple(
        OverlayLabel(dataset="small", query=f"q{n}", document=f"d{n}{part}", grade=0, said="1", judge="SECRET judge")
        for n in range(4)
        for part in "bc"
    ),
)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    JUDGED.write(tmp_path / "judged.jsonl")
    return tmp_path / "judged.jsonl"


def desk_of(book: ReviewBook, pairs: list[LabelledPair]) -> ReviewDesk:
    return ReviewDesk(noted(book, label_items(pairs, {"small": small()})), book, in_order=True)


def say(desk: ReviewDesk, name: str, grade: str, comment: str = "") -> dict[str, Any]:
    """Review the next item of a person."""
    item: dict[str, Any] = desk.view(name)["item"]
    desk.decide(name, item["token"], {"grade": grade}, comment, item["revision"])
    return item


def test_people_label_the_whole_pools_of_the_first_queries_by_id() -> None:
    other = JUDGED.labels[0].model_copy(update={"dataset": "other", "query": "q7", "document": "d9"})
    people = JUDGED.labels[0].model_copy(update={"query": "q1", "document": "d1a", "judge": "", "reviewer": "R1"})
    overlay = Overlay("judged", (*reversed(JUDGED.labels), other, people))
    pairs = pairs_to_label(overlay, {"small": small(), "other": small()}, 2)
    assert [(pair.dataset, pair.query, pair.document) for pair in pairs] == [
        ("small", "q0", "d0b"),
        ("small", "q0", "d0c"),
        ("other", "q7", "d9"),
        ("small", "q1", "d1b"),
        ("small", "q1", "d1c"),
    ]


def test_reviewers_see_the_same_order_and_nothing_of_judges_and_systems(file: Path) -> None:
    pairs = pairs_to_label(JUDGED, {"small": small()}, 2)
    with ReviewBook(reviews_file(file)) as book:
        desk = desk_of(book, pairs)
        shown = [[say(desk, name, grade) for _ in pairs] for name, grade in (("Ann", "2"), ("Bo", "0"))]
        assert desk.view("Ann")["item"] is None
    assert [each["token"] for each in shown[0]] == [each["token"] for each in shown[1]]
    assert [each["beside"][0]["text"] for each in shown[0]][::2][:2] == [
        f"what ails the {TOPICS[int(pair.query[1])]}" for pair in pairs[:4:2]
    ]
    assert not any(word in str(shown) for word in ("SECRET", "d0", "q0"))


def test_reviews_become_an_overlay(file: Path) -> None:
    pairs = pairs_to_label(JUDGED, {"small": small()}, 1)
    with pytest.raises(UserError, match=r"nothing of .*judged.jsonl yet: r2med review serve"):
        people_overlay(file, "people")
    with ReviewBook(reviews_file(file)) as book:
        desk = desk_of(book, pairs)
        say(desk, "Ann", "3", "names the organ")
        say(desk, "Bo", "1")
    ann, bo = people_overlay(file, "people").labels
    assert (ann.query, ann.document) == (pairs[0].query, pairs[0].document)
    assert (ann.reviewer, ann.grade, ann.said, ann.why, bool(ann.at)) == ("reviewer 1", 1, "3", "names the organ", True)
    assert (bo.document, bo.grade, bo.said) == (ann.document, 0, "1")
    with ReviewBook(reviews_file(file)) as book:
        desk = desk_of(book, pairs)
        item = desk.dispute("Cy")["item"]
        desk.decide("Cy", item["token"], {"grade": "2"}, "", "", True)
    (settled,) = people_overlay(file, "people").labels
    assert (settled.reviewer, settled.grade) == ("reviewer 3", 1)


def test_the_labels_of_people_are_a_file_of_their_own(file: Path, tmp_path: Path, r2med: Callable[..., Any]) -> None:
    with ReviewBook(reviews_file(file)) as book:
        pairs = pairs_to_label(JUDGED, {"small": small()}, 3)
        desk = desk_of(book, pairs)
        for _ in pairs[:-1]:
            say(desk, "Ann", "3")
    ended = r2med("review", "export", file, "-o", tmp_path / "people.jsonl")
    assert ended.stdout == f"5 labels of 1 reviewer in {tmp_path / 'people.jsonl'}\n", ended.stderr
    assert {label.query for label in Overlay.read(tmp_path / "people.jsonl").labels} == {"q0", "q1", "q2"}
    for wrong in (file, tmp_path / "people.csv"):
        assert r2med("review", "export", file, "-o", wrong).returncode == 2
    assert Overlay.read(file) == JUDGED


def test_a_passage_that_people_disagree_about_is_named(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pairs = pairs_to_label(JUDGED, {"small": small()}, 4)
    with ReviewBook(reviews_file(file)) as book:
        desk = desk_of(book, pairs)
        for number in range(len(pairs)):
            say(desk, "Ann", "3")
            say(desk, "Bo", "0" if number == 5 else "3")
    typed("review", "export", file, "-o", tmp_path / "people.jsonl")
    assert "say yes as no about 1 passage, whose labels do not count: r2med review serve" in capsys.readouterr().out
    with ReviewBook(reviews_file(file)) as book:
        desk = desk_of(book, pairs)
        desk.decide("Cy", desk.dispute("Cy")["item"]["token"], {"grade": "2"}, "", "", True)
    assert people_overlay(file, "people").unsettled("small") == []


def test_a_review_of_a_label_needs_a_word_of_the_scale_and_no_build(tmp_path: Path) -> None:
    fields: dict[str, Any] = {"question": "small q0", "chunk": "d0b", "annotator": "Ann", "kind": "relevance"}
    assert [Review(**fields, answers={"grade": word}).verdict for word in "0123"] == ["reject"] * 2 + ["accept"] * 2
    with pytest.raises(ValueError, match="grade='4' is wrong: an answer is 0, 1, 2 or 3"):
        Review(**fields, answers={"grade": "4"})
    with pytest.raises(ValueError, match="a review of kind relevance answers grade"):
        Review(**fields, verdict="accept")
    (tmp_path / "t.jsonl").write_text('{"question": "a", "passage": "b"}\n')
    with pytest.raises(UserError, match="has no candidate 'd0b'"):
        add_reviews(tmp_path / "t.jsonl", [Review(**fields, answers={"grade": "2"})])
