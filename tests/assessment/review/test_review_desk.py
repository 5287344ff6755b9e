"""The desk: an order for each person, one step at a time, nothing that tells ids, opinions or numbers; the book."""

import json
import threading
from collections import Counter

import pytest

from r2med.assessment.review.review_book import ConflictError, ReviewBook
from r2med.assessment.review.review_desk import ReviewDesk
from r2med.assessment.review.reviews import Review
from r2med.assessment.rubrics.item import Item

ITEMS = [
    Item(
        (f"QID{n % 3}", f"CID{n}"),
        {"question": f"query {n % 3}", "answer": "answer", "reasoning": "", "passage": f"passage {n}"},
        "passage",
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
        passages.append(item["main"][0]["text"])
        desk.decide(name, item["token"], verdict, "", item["revision"])
    return passages


def test_everybody_sees_all_of_them_in_an_order_of_their_own_question_by_question(desk):
    orders = [go_through(desk, name) for name in ("Ann", "Bo", "Cy")]
    assert all(sorted(order) == sorted(item.texts["passage"] for item in ITEMS) for order in orders)
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
    assert ITEMS[0].texts["passage"] not in go_through(desk, "Dee")
    assert desk.dispute("Dee")["settled"] == desk.dispute("Ann")["settled"] == 1


def test_what_was_settled_is_not_shown_to_those_who_have_not_reviewed_it(desk):
    token = ITEMS[0].token
    desk.decide("Ann", token, "accept", "", "")
    desk.decide("Bo", token, "reject", "", "")
    desk.decide("Dee", token, "reject", "", "", adjudicated=True)
    shown = desk.dispute("Eve")
    assert (shown["item"], shown["settled"], shown["back"]) == (None, 0, False)
    assert ITEMS[0].texts["passage"] in go_through(desk, "Eve")


def test_who_was_shown_a_disagreement_is_not_asked_for_a_blind_verdict_on_it_even_after_a_restart(desk, tmp_path):
    for item in ITEMS[:2]:
        desk.decide("Ann", item.token, "accept", "", "")
        desk.decide("Bo", item.token, "reject", "", "")
    shown = desk.dispute("Dee")["item"]
    with ReviewBook(tmp_path / "reviews.sqlite") as reopened:
        again = ReviewDesk(ITEMS, reopened)
        passages = go_through(again, "Dee")
        assert shown["main"][0]["text"] not in passages
        assert len(passages) == len(ITEMS) - 1  # the other disagreement was not shown
        said = again.decide("Dee", shown["token"], "accept", "", None)
        assert said.review.adjudicated


def test_a_verdict_changed_after_seeing_the_others_is_an_adjudication_and_agreement_keeps_the_first(desk, book):
    for number, item in enumerate(ITEMS[:6]):
        desk.decide("Ann", item.token, "accept" if number % 2 else "reject", "", "")
        desk.decide("Bo", item.token, "accept", "", "")
    before = desk.dispute("Ann")
    seen = before["item"]["token"]
    own = desk.view("Ann", seen)["item"]
    assert (own["verdict"], own["frozen"]) == ("reject", True)
    desk.decide("Ann", seen, "accept", "as Bo says", own["revision"])
    after = desk.dispute("Ann")
    assert after["alpha"] == before["alpha"] is not None
    assert (after["open"], after["settled"]) == (2, 1)
    counted = {slot: kept.review.verdict for slot, kept in book.kept().items() if slot[:2] == (seen, "Ann")}
    assert counted == {(seen, "Ann", False): "reject", (seen, "Ann", True): "accept"}
    assert desk.view("Ann", seen)["item"]["verdict"] == "accept"


def test_all_disputed_verdicts_of_a_person_are_frozen_when_their_number_is_shown(desk):
    for number, item in enumerate(ITEMS[:6]):
        desk.decide("Ann", item.token, "accept", "", "")
        desk.decide("Bo", item.token, "accept" if number else "reject", "", "")
        desk.decide("Cy", item.token, "reject" if number % 2 else "accept", "", "")
    before = desk.dispute("Ann")
    for item in ITEMS[:6]:
        desk.decide("Ann", item.token, "reject", "", None)
    own = [review for review in desk._book.kept().values() if review.review.annotator == "Ann"]
    assert sum(each.review.adjudicated for each in own) == before["open"] == 4


def test_a_mind_changed_before_seeing_the_others_is_the_persons_own_verdict(desk, book):
    first = desk.decide("Ann", ITEMS[0].token, "accept", "", "")
    desk.decide("Bo", ITEMS[0].token, "reject", "", "")
    assert desk.view("Ann", ITEMS[0].token)["item"]["frozen"] is False
    desk.decide("Ann", ITEMS[0].token, "reject", "", first.revision)
    assert [(*slot[1:], kept.review.verdict) for slot, kept in book.kept().items()] == [
        ("Bo", False, "reject"),
        ("Ann", False, "reject"),
    ]


def test_a_comment_after_seeing_the_others_settles_nothing(desk, book):
    first = desk.decide("Ann", ITEMS[0].token, "accept", "", "")
    desk.decide("Bo", ITEMS[0].token, "reject", "", "")
    desk.dispute("Ann")
    desk.decide("Ann", ITEMS[0].token, "accept", "page 3 says so", first.revision)
    assert not any(adjudicated for _, _, adjudicated in book.kept())


def said(verdict, at, annotator="Ann"):
    return Review(question="QID0", chunk="CID0", annotator=annotator, verdict=verdict, at=at, item=ITEMS[0].token)


def verdicts(book):
    return [kept.review.verdict for kept in book.kept().values()]


def test_an_older_export_never_replaces_a_newer_verdict(book):
    book.add(said("accept", "2026-05-02T10:00:00+00:00"), "")
    for older in ("2026-05-02T09:59:59Z", "2026-05-02T11:30:00+02:00", "2026-05-01", "", "yesterday"):
        assert book.add_all([said("reject", older)]) == 0
    assert verdicts(book) == ["accept"]
    assert book.add_all([said("reject", "2026-05-02T10:00:01.5Z")]) == 1
    assert verdicts(book) == ["reject"]


@pytest.mark.parametrize("turn", [1, -1])
def test_of_two_rows_of_one_person_the_newest_counts_at_every_import(book, turn):
    rows = [said("accept", "2026-05-02T10:00:00Z"), said("reject", "2026-05-03T10:00:00Z")][::turn]
    assert [book.add_all(rows) for _ in range(3)] == [1, 0, 0]
    assert verdicts(book) == ["reject"]


def test_of_two_rows_without_a_date_the_last_counts_at_every_import(book):
    rows = [said("accept", ""), said("reject", "")]
    assert [book.add_all(rows) for _ in range(3)] == [1, 0, 0]
    assert verdicts(book) == ["reject"]


def test_an_imported_verdict_of_somebody_who_saw_the_others_is_an_adjudication(desk, book):
    book.add_all([said("accept", "2026-05-02"), said("reject", "2026-05-02", "Bo")])
    desk.dispute("Ann")
    assert book.add_all([said("accept", "2026-05-02"), said("reject", "2026-05-03")]) == 1
    assert [slot[1:] for slot in book.kept()] == [("Ann", False), ("Bo", False), ("Ann", True)]


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


def test_only_one_of_many_servers_stores_the_first_verdict_of_a_person(tmp_path):
    token, outcomes = ITEMS[0].token, []
    ready = threading.Barrier(6)

    def work(number):
        with ReviewBook(tmp_path / "reviews.sqlite") as book:
            desk = ReviewDesk(ITEMS, book)
            ready.wait()
            try:
                desk.decide("Ann", token, "accept", f"server {number}", "")
                outcomes.append("stored")
            except ConflictError:
                outcomes.append("conflict")

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == ["conflict"] * 5 + ["stored"]


def test_another_process_is_seen_at_once(tmp_path, book, desk):
    said = Review(question="QID0", chunk="CID0", annotator="Ann", verdict="accept", item=ITEMS[0].token)
    assert desk.view("Ann")["reviewed"] == 0
    with ReviewBook(tmp_path / "reviews.sqlite") as other:
        other.add_all([said])
    assert desk.view("Ann")["reviewed"] == 1
    assert desk.names() == ["Ann"]


def test_each_item_gets_the_wanted_number_of_reviews_also_if_people_ask_at_the_same_time(tmp_path):
    """Two processes share the file: each has a connection of its own."""

    def work(name):
        with ReviewBook(tmp_path / "reviews.sqlite") as book:
            go_through(ReviewDesk(ITEMS, book, reviews_per_item=2), name)

    threads = [threading.Thread(target=work, args=(name,)) for name in ("Ann", "Bo", "Cy", "Dee")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with ReviewBook(tmp_path / "reviews.sqlite") as book:
        reviewers = Counter(item for item, _, _ in book.kept())
        assert ReviewDesk(ITEMS, book, reviews_per_item=2).finished == len(ITEMS)
    assert all(reviewers[item.token] >= 2 for item in ITEMS)


def test_an_item_with_enough_reviews_is_shown_to_nobody_else_and_a_late_verdict_is_not_lost(book):
    desk = ReviewDesk(ITEMS[:1], book, reviews_per_item=1)
    assert (desk.view("Ann")["item"]["token"], desk.view("Bo")["finished"]) == (ITEMS[0].token, 0)
    desk.decide("Bo", ITEMS[0].token, "accept", "", "")
    desk.decide("Ann", ITEMS[0].token, "reject", "", "")
    assert desk.view("Cy") == {"item": None, "reviewed": 0, "back": False, "on": False, "finished": 1}
    assert len(book.kept()) == 2


def test_points_are_shown_answered_and_settled_one_by_one(book):
    fine = {"answerable": "yes", "self_contained": "yes", "needs_inference": "yes", "words_mislead": "no"}
    items = [Item(item.id, {**item.texts, "original": ""}, "question") for item in ITEMS[:3]]
    desk = ReviewDesk(items, book)
    for item in items:
        desk.decide("Ann", item.token, fine, "", "")
        desk.decide("Bo", item.token, {**fine, "needs_inference": "no"}, "", "")
    own = desk.view("Ann", items[0].token)["item"]
    assert (own["verdict"], own["answers"]) == ("accept", fine)
    dispute = desk.dispute("Dee")
    assert dispute["open"] == 3
    assert [each["answers"]["needs_inference"] for each in dispute["item"]["reviews"]].count("no") == 1
    assert set(dispute["alpha"]) == {"needs_inference"}  # of the others α is not defined, since all say the same
    desk.decide("Dee", dispute["item"]["token"], fine, "", "", adjudicated=True)
    assert desk.dispute("Dee")["open"] == 2
    with pytest.raises(ValueError, match="a review of kind question answers"):
        desk.decide("Ann", items[0].token, "accept", "", None)


ANSWERS = [
    Item((f"q{n}", ""), {"original": "o", "question": f"question {n}?", "answer": f"anser {n}"}, "answer")
    for n in range(2)
]


def test_a_correction_is_part_of_a_review_and_blind_like_a_verdict(book):
    desk = ReviewDesk(ANSWERS, book)
    first = desk.view("Ann")["item"]
    assert (first["correctable"]["label"], first["correction"]) == ("Answer", "")
    said = desk.decide("Ann", first["token"], "accept", "", "", correction=" an answer \n")
    assert said.review.correction == "an answer"
    assert "an answer" not in json.dumps([desk.view("Bo"), desk.view("Bo", first["token"])])
    assert desk.view("Ann", first["token"])["item"]["correction"] == "an answer"
    same = desk.decide("Bo", first["token"], "accept", "", "", correction=first["correctable"]["text"])
    assert same.review.correction == "", "the text as it is, is no correction"
    dispute = desk.dispute("Cy")["item"]
    assert sorted(each["correction"] for each in dispute["reviews"]) == ["", "an answer"]
    desk.decide("Cy", first["token"], "accept", "", "", True, "another answer")
    assert desk.dispute("Cy")["open"] == 0
    assert desk.dispute("Cy", first["token"])["item"]["correction"] == "another answer"


def test_a_changed_correction_conflicts_is_a_new_row_and_settles_once_the_others_were_seen(desk, book):
    desk = ReviewDesk(ANSWERS, book)
    token = ANSWERS[0].token
    first = desk.decide("Ann", token, "accept", "", "", correction="a")
    with pytest.raises(ConflictError):
        desk.decide("Ann", token, "accept", "", "", correction="b")
    second = desk.decide("Ann", token, "accept", "", first.revision, correction="b")
    assert not second.review.adjudicated
    desk.decide("Bo", token, "accept", "", "")
    desk.dispute("Ann")
    assert desk.decide("Ann", token, "accept", "", second.revision, correction="").review.adjudicated
    assert [json.loads(row)["correction"] for _, row in sorted(book._rows.items()) if b"correction" in row] == [
        *("a", "b", "", ""),
    ]


def test_a_passage_cannot_be_corrected(desk):
    with pytest.raises(ValueError, match="people cannot correct the text of a review of kind passage"):
        desk.decide("Ann", ITEMS[0].token, "accept", "", "", correction="other")
