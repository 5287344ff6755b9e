"""From scores and verdicts to labels: thresholds, several judges, people before judges, controls apart."""

import numpy as np
import pytest

from r2med.assessment.review.reviews import Review, decision, is_disputed, ratings_of
from r2med.assessment.rubrics.rubric import RUBRICS
from r2med.construction.items import Judgement
from r2med.construction.labels import Labelling, labels, overrating


def judged(chunk, relevance, support, judge="a", control=""):
    return Judgement(question="q", chunk=chunk, judge=judge, relevance=relevance, support=support, control=control)


def said(chunk, annotator, verdict, adjudicated=False):
    return Review(question="q", chunk=chunk, annotator=annotator, verdict=verdict, adjudicated=adjudicated)


def words(*given, **more):
    return {label.chunk: (label.label, label.by) for label in labels(*given, **more)}


@pytest.mark.parametrize(
    ("scores", "word"),
    [((4, 4), "positive"), ((5, 3), "discarded"), ((5, 0), "discarded"), ((3, 3), "discarded"), ((2, 2), "negative")],
)
def test_both_scores_make_a_positive_and_the_middle_is_discarded(scores, word):
    assert words([judged("c", *scores)]) == {"c": (word, "judges")}


def test_thresholds_are_settings_that_must_be_in_order():
    assert words([judged("c", 3, 3)], labelling=Labelling(positive=3))["c"][0] == "positive"
    with pytest.raises(ValueError, match="above"):
        Labelling(positive=2, middle=3)


def test_the_mean_of_several_judges_counts():
    assert words([judged("c", 5, 5), judged("c", 3, 3, "b")])["c"][0] == "positive"
    assert words([judged("c", 5, 5), judged("c", 2, 3, "b")])["c"][0] == "discarded"


def test_people_go_before_judges_and_who_settles_before_people():
    scores = [judged(chunk, 5, 5) for chunk in "abcde"]
    reviews = [
        said("a", "Ann", "reject"),
        said("b", "Ann", "reject"),
        said("b", "Bo", "accept"),
        said("c", "Ann", "reject"),
        said("c", "Bo", "accept"),
        said("c", "Cy", "reject", adjudicated=True),
        said("d", "Ann", "unsure"),
        said("f", "Ann", "accept"),
    ]
    assert words(scores, reviews) == {
        "a": ("negative", "people"),
        "b": ("discarded", "unsettled"),
        "c": ("negative", "adjudication"),
        "d": ("discarded", "unsettled"),
        "e": ("positive", "judges"),
        "f": ("positive", "people"),
    }
    assert next(label for label in labels(scores, reviews) if label.chunk == "a").judged == "positive"


def test_controls_have_no_label_and_their_right_answers_are_counted():
    scores = [
        judged("real", 5, 5),
        judged("x", 5, 4, control="near miss"),
        judged("y", 0, 0, control="near miss"),
        judged("z", 1, 1, "b", "random"),
    ]
    assert set(words(scores)) == {"real"}
    found = overrating([*scores, judged("w", 5, 5, "b", "written as evidence")])
    assert [(each.kind, each.yes, each.asked, each.right) for each in found["a"].counts] == [("near miss", False, 2, 1)]
    assert (found["b"].asked, found["b"].right) == (2, 2)


def test_a_dispute_ends_with_an_adjudication_which_is_no_rating():
    reviews = [said("a", "Ann", "accept"), said("a", "Bo", "unsure")]
    assert is_disputed(reviews)
    assert decision(reviews) == ("accept", False)
    settled = [*reviews, said("a", "Cy", "reject", adjudicated=True)]
    assert not is_disputed(settled)
    assert decision(settled) == ("reject", True)
    found = ratings_of([*settled, said("b", "Bo", "reject")], RUBRICS["passage"])
    assert (list(found.said), found.raters) == ([("q", "a"), ("q", "b")], ("Ann", "Bo"))
    np.testing.assert_array_equal(found.table(), [[2, 1], [np.nan, 0]])
