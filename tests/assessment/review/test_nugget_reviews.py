"""People check nuggets on the review page, and what they keep is a file of nuggets again."""

from __future__ import annotations

from pathlib import Path

import pytest

from r2med import Dataset, UserError
from r2med.assessment.review.nugget_reviews import nugget_items, reviewed_nuggets
from r2med.assessment.review.review_book import ReviewBook, reviews_file
from r2med.assessment.review.review_desk import ReviewDesk
from r2med.data.dataset import Query
from r2med.data.nuggets_file import Nugget, Nuggets

DATASET = Dataset.of([Query("q", "what is it?", "gout")], {"d": "text"}, name="small")
NUGGETS = Nuggets.of([*(Nugget("q", f"n{n}", f"fact {n}", by="llm") for n in range(4)), Nugget("other", "n0", "fact")])


@pytest.fixture
def file(tmp_path: Path) -> Path:
    NUGGETS.write(tmp_path / "n.jsonl")
    return tmp_path / "n.jsonl"


def review(file: Path, **words: list[str]) -> None:
    """Let people say one word about each nugget in turn."""
    items = [item for _, item in nugget_items(NUGGETS, DATASET)]
    with ReviewBook(reviews_file(file)) as book:
        desk = ReviewDesk(items, book, in_order=True)
        for name, said in words.items():
            for word in said:
                item = desk.view(name)["item"]
                assert item["beside"][1]["text"] == "gout"
                desk.decide(name, item["token"], {"importance": word}, "", item["revision"])


def test_votes_decide_which_nuggets_stay_and_which_are_vital(file: Path) -> None:
    review(file, Ann=["drop", "okay", "vital", "vital"], Bo=["drop", "okay", "okay"], Cy=["vital"])
    kept, dropped = reviewed_nuggets(file, DATASET)
    assert [(each.id, each.vital, each.reviewed) for each in kept] == [
        ("n1", False, True),
        ("n2", False, True),
        ("n3", True, True),
    ], "of vital and useful, the lower word counts"
    assert dropped == 1


def test_nothing_is_written_before_people_decided(file: Path) -> None:
    with pytest.raises(UserError, match="reviewed nothing"):
        reviewed_nuggets(file, DATASET)
    review(file, Ann=["drop"], Bo=["vital"])
    with pytest.raises(UserError, match="decided nothing"):
        reviewed_nuggets(file, DATASET)


def test_a_corrected_nugget_is_written_and_the_file_keeps_the_original(file: Path) -> None:
    item = nugget_items(NUGGETS, DATASET)[0][1]
    with ReviewBook(reviews_file(file)) as book:
        ReviewDesk([item], book).decide("Ann", item.token, {"importance": "vital"}, "", "", correction="a better fact")
    kept, _ = reviewed_nuggets(file, DATASET)
    assert [each.text for each in kept][:2] == ["a better fact", "fact 1"]
    assert "fact 0" in file.read_text()
