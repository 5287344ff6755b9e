"""People's reviews of the labels in an overlay, and the overlay that they become."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from r2med import Dataset, UserError, run
from r2med.assessment.judgements.drawing import DrawnPair, drawn_pairs
from r2med.assessment.review.label_reviews import draw, label_items, people_overlay
from r2med.assessment.review.review_book import ReviewBook, reviews_file
from r2med.assessment.review.review_desk import ReviewDesk
from r2med.assessment.review.reviews import Review
from r2med.construction.review_items import add_reviews
from r2med.data.dataset import Query
from r2med.data.overlays import Overlay, OverlayLabel
from r2med.evaluation.comparison.corrected_scores import (
    corrected_scores,
    estimates_table,
    reviewed_queries,
    without_pool,
)
from r2med.evaluation.records.collection import collect
from r2med.evaluation.records.stored_records import RecordCollection
from support.commands import typed

TOPICS = ["liver", "heart", "kidney", "lung"]


def small() -> Dataset:
    queries = [Query(f"q{n}", f"what ails the {topic}", f"{topic} disease") for n, topic in enumerate(TOPICS)]
    corpus = {f"d{n}{part}": f"The {topic} is ill, {part}." for n, topic in enumerate(TOPICS) for part in "abc"}
    return Dataset.of(queries, corpus, {f"q{n}": {f"d{n}a": 1} for n in range(4)}, name="small")


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> RecordCollection:
    folder = tmp_path_factory.mktemp("results")
    run(["bm25", "bm25(b=0)"], small(), out=folder)
    return collect(results=folder)


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


def desk_of(book: ReviewBook, pairs: list[DrawnPair]) -> ReviewDesk:
    return ReviewDesk(draw(book, label_items(pairs, {"small": small()})), book, in_order=True)


def say(desk: ReviewDesk, name: str, grade: str, comment: str = "") -> dict[str, Any]:
    """Review the next item of a person."""
    item: dict[str, Any] = desk.view(name)["item"]
    desk.decide(name, item["token"], {"grade": grade}, comment, item["revision"])
    return item


def test_reviewers_see_the_same_order_and_nothing_of_judges_and_systems(file: Path, results: RecordCollection) -> None:
    pairs = drawn_pairs(JUDGED, results, {"small": small()}, 2, 1)
    assert [pair.drawn for pair in pairs] == ["random"] * 4 + ["influence"] * (len(pairs) - 4)
    with ReviewBook(reviews_file(file)) as book:
        desk = desk_of(book, pairs)
        shown = [[say(desk, name, grade) for _ in pairs] for name, grade in (("Ann", "2"), ("Bo", "0"))]
        assert desk.view("Ann")["item"] is None
    assert [each["token"] for each in shown[0]] == [each["token"] for each in shown[1]]
    assert [each["beside"][0]["text"] for each in shown[0]][::2][:2] == [
        f"what ails the {TOPICS[int(pair.query[1])]}" for pair in pairs[:4:2]
    ]
    assert not any(word in str(shown) for word in ("SECRET", "bm25", "d0", "q0", "random", "influence"))


def test_reviews_become_an_overlay_with_the_reason_for_the_draw(file: Path, results: RecordCollection) -> None:
    pairs = drawn_pairs(JUDGED, results, {"small": small()}, 1, 0)
    with pytest.raises(UserError, match=r"nothing of .*judged.jsonl yet: r2med review serve"):
        people_overlay(file, "people")
    with ReviewBook(reviews_file(file)) as book:
        desk = desk_of(book, pairs)
        say(desk, "Ann", "3", "names the organ")
        say(desk, "Bo", "1")
    ann, bo = people_overlay(file, "people").labels
    assert (ann.query, ann.document, ann.drawn) == (pairs[0].query, pairs[0].document, "random")
    assert (ann.reviewer, ann.grade, ann.said, ann.why, bool(ann.at)) == ("reviewer 1", 1, "3", "names the organ", True)
    assert (bo.document, bo.grade, bo.said) == (ann.document, 0, "1")
    with ReviewBook(reviews_file(file)) as book:
        desk = desk_of(book, pairs)
        item = desk.dispute("Cy")["item"]
        desk.decide("Cy", item["token"], {"grade": "2"}, "", "", True)
    (settled,) = people_overlay(file, "people").labels
    assert (settled.reviewer, settled.grade) == ("reviewer 3", 1)


def test_an_item_of_the_random_part_stays_in_it(file: Path) -> None:
    def pair(drawn: str) -> list[DrawnPair]:
        return [DrawnPair("small", "q0", "d0b", drawn, 1)]  # type: ignore[arg-type]

    with ReviewBook(reviews_file(file)) as book:
        for drawn, kept in (("influence", "influence"), ("random", "random"), ("influence", "random")):
            desk_of(book, pair(drawn))
            assert [each["drawn"] for each in book.drawn().values()] == [kept]


def test_the_estimate_follows_from_the_reviews(
    file: Path, results: RecordCollection, tmp_path: Path, r2med: Callable[..., Any]
) -> None:
    with ReviewBook(reviews_file(file)) as book:
        pairs = drawn_pairs(JUDGED, results, {"small": small()}, 3, 0)
        desk = desk_of(book, pairs)
        for _ in pairs[:-1]:  # the last pool is not finished
            say(desk, "Ann", "3")
    ended = r2med("review", "export", file, "-o", tmp_path / "people.jsonl")
    assert ended.stdout == f"5 labels of 1 reviewer in {tmp_path / 'people.jsonl'}\n", ended.stderr
    overlays = [Overlay.read(file), Overlay.read(tmp_path / "people.jsonl")]
    assert reviewed_queries(overlays, "small") == {pair.query for pair in pairs[:4]}
    found = corrected_scores(results, overlays, {"small": small()})
    assert {each.reviewed for each in found.scores.values()} == {2}
    for wrong in (file, tmp_path / "people.csv"):
        assert r2med("review", "export", file, "-o", wrong).returncode == 2
    assert Overlay.read(file) == JUDGED


def test_a_passage_that_people_disagree_about_ends_the_sample_of_an_estimate(
    file: Path, results: RecordCollection, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pairs = drawn_pairs(JUDGED, results, {"small": small()}, 4, 0)
    with ReviewBook(reviews_file(file)) as book:
        desk = desk_of(book, pairs)
        for number in range(len(pairs)):
            say(desk, "Ann", "3")
            say(desk, "Bo", "0" if number == 5 else "3")
    typed("review", "export", file, "-o", tmp_path / "people.jsonl")
    assert "say yes as no about 1 passage, whose labels do not count: r2med review serve" in capsys.readouterr().out
    overlays = [JUDGED, Overlay.read(tmp_path / "people.jsonl")]
    found = corrected_scores(results, overlays, {"small": small()})
    assert {each.reviewed for each in found.scores.values()} == {2}
    assert found.unsettled == {"small": 1}
    assert "about 1 passage. The sample ends before the first of them" in estimates_table(found).note
    with ReviewBook(reviews_file(file)) as book:
        desk = desk_of(book, pairs)
        desk.decide("Cy", desk.dispute("Cy")["item"]["token"], {"grade": "2"}, "", "", True)
    overlays = [JUDGED, people_overlay(file, "people")]
    found = corrected_scores(results, overlays, {"small": small()})
    assert ({each.reviewed for each in found.scores.values()}, found.unsettled) == ({4}, {})


def test_queries_without_a_pool_are_in_the_sample_as_often_as_others() -> None:
    queries = [*(f"q{n}" for n in range(4)), *(f"x{n}" for n in range(10))]
    assert without_pool([JUDGED], "small", queries, set()) == set()
    some = without_pool([JUDGED], "small", queries, {"q0", "q1"})
    assert len(some) == 5
    assert some < {f"x{n}" for n in range(10)}
    assert len(without_pool([JUDGED], "small", queries, {"q0", "q1", "q2", "q3"})) == 10


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
