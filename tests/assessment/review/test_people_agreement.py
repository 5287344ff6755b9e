"""Agreement of reviewers by kind of item and by point."""

import numpy as np
import pytest

from r2med.assessment.review.people_agreement import agreement_by_point
from r2med.assessment.review.reviews import Review
from r2med.evaluation.measure.coefficients import cohen_kappa

POINTS = ("answerable", "self_contained", "needs_inference", "words_mislead")


def passages(verdicts: dict[str, str]) -> list[Review]:
    """Return reviews of passages by their annotators; each letter is a verdict on the next passage, - is none."""
    words = {"a": "accept", "r": "reject", "u": "unsure"}
    return [
        Review(question="q", chunk=f"c{number}", annotator=name, verdict=words[letter])
        for name, letters in verdicts.items()
        for number, letter in enumerate(letters)
        if letter != "-"
    ]


def test_two_reviewers_have_weighted_kappa_and_adjudications_do_not_count():
    reviews = passages({"ann": "aarrau", "bob": "aarar-"})
    reviews.append(Review(question="q", chunk="c3", annotator="ann", verdict="accept", adjudicated=True))
    [each] = agreement_by_point(reviews)
    assert (each.name, each.found.items, each.found.raters) == ("passage", 5, ("ann", "bob"))
    assert each.found.observed.value == 0.6
    expected = cohen_kappa(np.array([[2, 2], [2, 2], [0, 0], [0, 2], [2, 0]], dtype=float), "quadratic")
    assert each.found.kappa.value == pytest.approx(expected.value)


def test_every_point_of_a_question_has_its_own_agreement():
    replies = {"ann": "yyny", "bob": "yynn", "eve": "yyyn"}
    words = {"y": "yes", "n": "no"}
    reviews = [
        Review(
            question=f"q{number}",
            annotator=name,
            kind="question",
            answers=dict.fromkeys(POINTS, "yes") | {"needs_inference": words[letter]},
        )
        for name, letters in replies.items()
        for number, letter in enumerate(letters)
    ]
    found = {each.point.name: each for each in agreement_by_point(reviews)}
    assert list(found) == list(POINTS)
    assert found["needs_inference"].name == "question: needs_inference"
    assert found["needs_inference"].found.kappa is None  # three ordered answers of three people: α is weighted
    assert found["needs_inference"].found.observed.value == pytest.approx((1 + 1 + 1 / 3 + 1 / 3) / 4)
    assert found["answerable"].is_constant and not found["needs_inference"].is_constant
    assert found["answerable"].paradox == ""


def test_a_sentence_explains_a_low_alpha_of_reviewers_who_agree():
    [found] = agreement_by_point(passages({"ann": "a" * 19 + "r", "bob": "r" + "a" * 19}))
    assert found.found.gwet.value > 0.85 and found.found.alpha.value < 0
    assert "agree in 90% of pairs" in found.paradox and "95% of all answers are yes" in found.paradox
    [found] = agreement_by_point(passages({"ann": "ar" * 10, "bob": "ar" * 9 + "rr"}))
    assert found.paradox == ""


def test_one_reviewer_has_no_agreement():
    assert agreement_by_point(passages({"ann": "aar", "bob": "---a"})) == []
