"""Kinds of review items: what a review of each kind holds, how its points are decided, and which texts have items."""

import json

import numpy as np
import pytest
from pydantic import ValidationError

from r2med.assessment.review.kinds import KINDS
from r2med.assessment.review.review_files import export_reviews, import_reviews
from r2med.assessment.review.review_outcomes import Correction, corrections, rejection_reasons
from r2med.assessment.review.reviews import Review, decided_reply, is_disputed, is_unsettled, ratings_of
from r2med.assessment.rubrics.rubric import RUBRICS
from r2med.construction.review_items import add_reviews, read_reviews, review_items
from r2med.foundation.core.errors import UserError

FINE = {"answerable": "yes", "self_contained": "yes", "needs_inference": "yes", "words_mislead": "unsure"}


def about_question(annotator="Ann", question="q1", **answers):
    return Review(question=question, annotator=annotator, kind="question", answers={**FINE, **answers})


def test_one_no_does_not_leave_a_question_out_while_two_reviews_are_planned():
    one = [about_question("Ann", answerable="no")]
    assert rejection_reasons(one, planned=1) == {"q1": ("not answerable",)}
    assert rejection_reasons(one, planned=2) == {}
    assert rejection_reasons([*one, about_question("Bo")], planned=2) == {}, "a tie"
    assert rejection_reasons([*one, about_question("Bo", answerable="no")], planned=2) == {"q1": ("not answerable",)}
    assert rejection_reasons([one[0].model_copy(update={"adjudicated": True})], planned=2)


def test_the_verdict_on_a_question_follows_from_the_points_that_reject():
    assert about_question().verdict == "accept"
    assert about_question(needs_inference="no", words_mislead="no").verdict == "accept"
    assert about_question(self_contained="unsure").verdict == "unsure"
    assert about_question(self_contained="unsure", answerable="no").verdict == "reject"


@pytest.mark.parametrize(
    "fields",
    [
        {"kind": "question", "verdict": "accept"},
        {"kind": "question", "answers": {"answerable": "yes"}},
        {"kind": "question", "answers": {**FINE, "answerable": "perhaps"}},
        {"kind": "reasoning", "answers": FINE},
        {"kind": "picture", "verdict": "accept"},
    ],
)
def test_a_review_that_does_not_fit_its_kind_is_refused(fields):
    with pytest.raises(ValidationError):
        Review(question="q1", annotator="Ann", **fields)


def test_each_point_is_decided_by_its_own_majority():
    said = [about_question("Ann", answerable="no"), about_question("Bo", self_contained="no"), about_question("Cy")]
    assert [review.verdict for review in said] == ["reject", "reject", "accept"]
    assert decided_reply(said, "answerable") == decided_reply(said, "self_contained") == ("yes", False)
    assert decided_reply(said, "words_mislead") == (None, False)
    assert is_disputed(said)
    settled = about_question("Dee", answerable="no").model_copy(update={"adjudicated": True})
    assert decided_reply([*said, settled], "answerable") == ("no", True)


def test_ratings_hold_one_point_of_one_kind():
    sound = Review(question="q1", annotator="Ann", kind="reasoning", verdict="reject")
    said = [about_question("Ann"), about_question("Bo", needs_inference="no"), sound]
    found = ratings_of(said, RUBRICS["question"], "needs_inference")
    assert found.said == {("q1", ""): {"Ann": "yes", "Bo": "no"}}
    np.testing.assert_array_equal(found.table(), [[2.0, 0.0]])
    np.testing.assert_array_equal(ratings_of(said, RUBRICS["reasoning"]).table(), [[0.0]])
    assert ratings_of(said, RUBRICS["passage"]).said == {}


@pytest.fixture
def table(tmp_path):
    rows = [
        {"question_id": "q1", "question": "Which?", "answer": "This", "original": "Which of these?"},
        {"question_id": "q2", "question": "Why?", "answer": "So", "reasoning": "Because."},
        {"question_id": "q2", "question": "Why?", "answer": "So", "passage": "A second row of one question."},
    ]
    path = tmp_path / "questions.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_a_question_has_an_item_of_each_kind_whose_texts_it_has(table):
    asked = {kind: [item.id[0] for item in review_items(table, kind=kind)] for kind in ("question", "answer")}
    assert asked == {"question": ["q1", "q2"], "answer": ["q1"]}
    assert [item.id[0] for item in review_items(table, kind="reasoning")] == ["q2"]
    with pytest.raises(
        UserError, match="no column 'source_text': the rubric translation needs the columns source_text, question"
    ):
        review_items(table, kind="translation")
    tokens = {item.token for kind in ("question", "answer", "reasoning") for item in review_items(table, kind=kind)}
    assert len(tokens) == 4


def test_reviews_of_every_kind_survive_an_export_and_an_import(table, tmp_path):
    said = [
        about_question(words_mislead="no", answerable="unsure").model_copy(update={"comment": "'=1+1"}),
        about_question("Bo", question="q2").model_copy(update={"adjudicated": True}),
        Review(question="q1", annotator="Ann", kind="answer", verdict="reject"),
        Review(question="q2", annotator="Ann", kind="reasoning", verdict="unsure", correction="=So, and\nhence."),
    ]
    assert add_reviews(table, said) == 4
    stored = read_reviews(table)
    export_reviews(tmp_path / "reviews.csv", stored)
    again = import_reviews(tmp_path / "reviews.csv")
    bare = {review.model_copy(update={"item": ""}).model_dump_json() for review in stored}
    assert {review.model_dump_json() for review in again} == bare
    assert add_reviews(table, again) == 0


def test_an_import_says_which_answer_is_wrong(table, tmp_path):
    file = tmp_path / "in.csv"
    head = "kind,question,annotator,answerable,self_contained,needs_inference,words_mislead\n"
    file.write_text(f"{head}question,q1,Ann,yes,yes,maybe,no\n")
    with pytest.raises(UserError, match=r"line 2: needs_inference='maybe' is wrong: an answer is no, unsure or yes"):
        import_reviews(file)
    file.write_text(f"{head}question,q1,Ann,yes,yes,,no\n")
    with pytest.raises(UserError, match="a review of kind question answers answerable, needs_inference"):
        import_reviews(file)
    file.write_text(f"{head}question,q9,Ann,yes,yes,no,no\n")
    with pytest.raises(UserError, match="has no question for 'q9'"):
        add_reviews(table, import_reviews(file))


def test_points_that_are_columns_have_one_meaning():
    kinds = [RUBRICS[name] for name in KINDS]
    names = [point.name for kind in kinds if not kind.has_verdict for point in kind.points]
    assert len(names) == len(set(names))


def test_a_review_of_something_that_the_source_does_not_have_is_refused(table):
    for fields in ({"kind": "question", "answers": FINE, "chunk": "c1"}, {"kind": "passage", "verdict": "accept"}):
        with pytest.raises(UserError, match="has no"):
            add_reviews(table, [Review(question="q1", annotator="Ann", **fields)])


def graded(annotator, grade):
    return Review(question="q1", chunk="c1", annotator=annotator, kind="relevance", answers={"grade": grade})


def test_two_people_who_agree_on_a_word_in_the_middle_have_decided():
    same_field = [graded("Ann", "1"), graded("Bo", "1")]
    assert decided_reply(same_field, "grade") == ("1", False)
    assert not is_unsettled(same_field)
    assert is_unsettled([graded("Ann", "1"), graded("Bo", "2")])


def test_people_of_whom_nobody_is_sure_have_not_decided_whatever_the_kind():
    for kind, answers in (("question", {**FINE, "answerable": "unsure"}), ("reasoning", {"verdict": "unsure"})):
        said = [Review(question="q1", annotator=name, kind=kind, answers=answers) for name in ("Ann", "Bo")]
        assert is_unsettled(said)
        assert rejection_reasons(said) == {}


def answered(annotator, correction="", verdict="accept", **more):
    fields = {"kind": "answer", "verdict": verdict, "correction": correction}
    return Review(question="q1", annotator=annotator, **fields, **more)


def test_the_majority_or_a_settlement_decides_about_corrections():
    accepted = [Correction("q1", "answer", "answer", "right")]
    ann, bo, cy = (answered(name, "right") for name in ("Ann", "Bo", "Cy"))
    assert corrections([ann]) == (accepted, 0)
    assert corrections([ann], planned=2) == ([], 0)
    assert corrections([ann, answered("Bo")]) == ([], 1), "a tie is undecided"
    assert corrections([ann, answered("Bo", "other"), answered("Cy")]) == ([], 1)
    assert corrections([ann, bo, answered("Cy", "other")]) == (accepted, 0)
    assert corrections([ann, answered("Bo"), answered("Cy")]) == ([], 0), "most keep the original"
    assert corrections([ann, answered("Bo", verdict="unsure")]) == (accepted, 0), "only those who are sure vote"
    assert corrections([ann, bo, cy, answered("Dee", adjudicated=True)]) == ([], 0)
    assert corrections([answered("Ann"), answered("Dee", "right", adjudicated=True)], 9) == (accepted, 0)
    assert is_disputed([ann, answered("Bo")])
