"""The desk: an order for each person, one step at a time, nothing that tells ids, opinions or numbers; the book."""

import json

import pytest

from r2med.build.items import Chunk, Question
from r2med.build.review_book import ConflictError, ReviewBook
from r2med.build.review_desk import ReviewDesk
from r2med.build.review_items import ReviewItem
from r2med.build.reviews import Review

ITEMS = [
    ReviewItem(
        Question(id=f"QID{n % 3}", text=f"query {n % 3}", answer="answer"),
        Chunk(id=f"CID{n}", text=f"passage {n}", page=""),
        stratum="positive",
    )
    for n in range(12)
]


@pytest.fixture
def book(tmp_path):
    with ReviewBook(tmp_path / "reviews.sqlite") as opened:
        yield opened


@pytest.fixture
def desk(book):
    return ReviewDesk(ITEMS, book)


def go_through(desk, name, verdict="accept"):
    passages = []
    while (item := desk.view(name)["item"]) is not None:
        passages.append(item["passage"])
        desk.decide(name, item["token"], verdict, "", item["revision"])
    return passages


def test_everybody_sees_all_of_them_in_an_order_of_their_own_question_by_question(desk):
    orders = [go_through(desk, name) for name in ("Ann", "Bo", "Cy")]
    assert all(sorted(order) == sorted(item.chunk.text for item in ITEMS) for order in orders)
    assert len({tuple(order) for order in orders}) == 3
    queries = [int(passage.split()[1]) % 3 for passage in orders[0]]
    assert queries == sorted(queries, key=queries.index)  # each question is read once


def test_a_view_tells_no_id_no_opinion_and_no_number_of_all(desk):
    go_through(desk, "Ann", "reject")
    view = desk.view("Bo")
    assert set(view) == {"item", "reviewed", "back", "on"}
    shown = json.dumps(view)
    assert not any(hidden in shown for hidden in ("QID", "CID", "positive", "reject", "Ann", "12"))


def test_one_goes_back_through_what_one_said_and_on_to_the_first_without_a_verdict(desk):
    first = desk.view("Ann")["item"]["token"]
    assert desk.view("Ann", first, 1)["item"]["token"] == first
    desk.decide("Ann", first, "accept", "so", "")
    second = desk.view("Ann")
    assert (second["reviewed"], second["back"], second["on"]) == (1, True, False)
    back = desk.view("Ann", second["item"]["token"], -1)
    assert (back["item"]["verdict"], back["item"]["comment"], back["on"]) == ("accept", "so", True)
    unseen = next(item.token for item in ITEMS if item.token not in (first, second["item"]["token"]))
    assert desk.view("Ann", unseen)["item"]["token"] == second["item"]["token"]


def test_who_settles_a_dispute_is_not_asked_for_a_verdict_of_their_own(desk):
    token = ITEMS[0].token
    desk.decide("Ann", token, "accept", "", "")
    desk.decide("Bo", token, "reject", "", "")
    assert desk.dispute("Dee")["item"]["token"] == token
    assert desk.dispute("Ann")["open"] == 1
    other = ITEMS[1].token
    desk.decide("Cy", other, "accept", "", "")
    assert desk.dispute("Cy")["item"] is None  # Cy reviews, and has not said anything of it yet
    desk.decide("Dee", token, "reject", "", "", adjudicated=True)
    assert ITEMS[0].chunk.text not in go_through(desk, "Dee")
    assert (desk.dispute("Eve")["open"], desk.dispute("Eve")["settled"]) == (0, 1)


def test_a_verdict_given_without_having_seen_the_last_is_a_conflict_and_nothing_is_deleted(desk, book):
    token = ITEMS[0].token
    first = desk.decide("Ann", token, "accept", "", "")
    with pytest.raises(ConflictError) as conflict:
        desk.decide("Ann", token, "reject", "", "")
    assert conflict.value.current == first
    assert desk.decide("Ann", token, "accept", "", "").revision == first.revision  # sent twice, as after a crash
    desk.decide("Ann", token, "reject", "", first.revision)
    assert [kept.review.verdict for kept in book.kept().values()] == ["reject"]
    rows = book._rows.items()
    assert [json.loads(value)["verdict"] for _, value in sorted(rows)] == ["accept", "reject"]


def test_another_process_is_seen_at_once(tmp_path, book, desk):
    said = Review(question="QID0", chunk="CID0", annotator="Ann", verdict="accept", item=ITEMS[0].token)
    assert desk.view("Ann")["reviewed"] == 0
    with ReviewBook(tmp_path / "reviews.sqlite") as other:
        other.add_all([said])
    assert desk.view("Ann")["reviewed"] == 1
    assert desk.names() == ["Ann"]
