"""Shares from people's sample and the scores of all."""

from itertools import product

import numpy as np
import pytest

from r2med.assessment.review.prediction_powered import FEWEST_REVIEWS, share
from support.by_day import some_by_day


def simulated(random, truth, seen, informative):
    """Return whether the interval holds the true share, and its width: 400 items, some of them seen by people."""
    accepted = (random.random(400) < truth).astype(float)
    noise = random.normal(0, 0.25, 400)
    scores = np.clip(0.3 + 0.4 * accepted * informative + noise, 0, 1)
    reviewed = random.choice(400, seen, replace=False)
    result = share(scores, reviewed, accepted[reviewed])
    return result.low <= accepted.mean() <= result.high, result.high - result.low


@pytest.mark.parametrize(
    ("truth", "seen", "informative"), some_by_day(product([0.5, 0.8, 0.95], [20, 60, 200], [0, 1]), 5)
)
def test_the_interval_holds_the_true_share_about_as_often_as_it_says(truth, seen, informative):
    random = np.random.default_rng([int(100 * truth), seen, informative])
    covered = np.mean([simulated(random, truth, seen, informative)[0] for _ in range(1000)])
    assert covered > 0.92


def test_scores_that_tell_something_make_the_interval_narrower():
    widths = [np.mean([simulated(np.random.default_rng(i), 0.7, 60, told)[1] for i in range(200)]) for told in (0, 1)]
    assert widths[1] < 0.85 * widths[0]


def test_scores_that_say_nothing_leave_what_people_said():
    said = np.array([1.0, 1, 0, 1] * 3)
    result = share(np.ones(1000), np.arange(12), said)
    assert result.value == 0.75
    assert result.low < 0.5
    assert result.high > 0.9


def test_fewer_than_ten_reviews_have_no_interval():
    said = np.array([1.0, 0] * 5)
    few = share(np.ones(100), np.arange(FEWEST_REVIEWS - 1), said[1:])
    assert few.value == pytest.approx(4 / 9)
    assert few.low is None and few.high is None
    enough = share(np.ones(100), np.arange(FEWEST_REVIEWS), said)
    assert enough.low < 0.5 < enough.high


def test_where_people_saw_all_nothing_is_uncertain():
    said = np.array([1.0, 0, 1, 1])
    result = share(np.array([0.9, 0.2, 0.8, 0.7]), np.arange(4), said)
    assert (result.low, result.value, result.high) == pytest.approx((0.75, 0.75, 0.75))


def test_all_accepted_is_not_certainty():
    result = share(np.ones(200), np.arange(20), np.ones(20))
    assert result.value == 1
    assert 0.8 < result.low < 0.9


def test_one_opinion_is_no_sample():
    assert share(np.ones(10), np.arange(1), np.ones(1)) is None
