"""Means by a judge's labels, corrected by people's labels for a sample of queries."""

from __future__ import annotations

import numpy as np
import pytest

from r2med.evaluation.comparison.corrected_means import FEWEST_QUERIES, ReviewedQueries, corrected_mean
from r2med.evaluation.measure.intervals import mean_intervals
from r2med.evaluation.measure.scores import Floats


def drawn(judge: Floats, people: Floats, count: int, seed: int = 0) -> ReviewedQueries:
    sample = np.random.default_rng(seed).permutation(len(judge))[:count]
    return ReviewedQueries(judge, sample, people[sample])


@pytest.fixture
def people() -> Floats:
    return 100 * np.random.default_rng(1).beta(1, 2, 200)


def test_the_estimate_is_the_formula_of_the_docs(people: Floats) -> None:
    judge = np.clip(people + np.random.default_rng(2).normal(5, 10, len(people)), 0, 100)
    values = drawn(judge, people, 40)
    found = corrected_mean([values])
    seen, said = values.people, judge[values.reviewed]
    weight = np.cov(seen, said, ddof=0)[0, 1] / np.var(said)
    assert found is not None
    assert found.weight == pytest.approx(min(1, weight))
    assert found.value == pytest.approx(found.weight * judge.mean() + (seen - found.weight * said).mean())
    assert found.low < found.value < found.high
    assert abs(found.value - people.mean()) < abs(judge.mean() - people.mean())


def test_with_all_queries_labelled_people_decide(people: Floats) -> None:
    found = corrected_mean([ReviewedQueries(np.zeros(len(people)), np.arange(len(people)), people)])
    low, high = mean_intervals({"d": people[None]})[:, 0]
    assert found is not None
    assert found.value == pytest.approx(people.mean())
    assert (found.low, found.high) == pytest.approx((low, high), abs=0.01)


@pytest.mark.parametrize("top", [100.0, None])
def test_a_poor_judge_never_widens_and_a_good_one_narrows(people: Floats, top: float | None) -> None:
    random = np.random.default_rng(3)
    for seed in range(40):
        alone = corrected_mean([drawn(np.zeros(len(people)), people, 30, seed)], top)
        for noise, narrower in ((1.0, True), (1000.0, False)):
            judge = people + random.normal(0, noise, len(people))
            found = corrected_mean([drawn(judge, people, 30, seed)], top)
            assert found is not None
            assert alone is not None
            width, width_alone = np.ptp(found.bounds), np.ptp(alone.bounds)
            # The bounded interval depends on the estimate itself, which moves a little.
            assert width <= width_alone * (1.02 if top else 1 + 1e-9)
            if narrower:
                assert width < 0.6 * width_alone


def test_several_datasets_count_equally(people: Floats) -> None:
    judge = people * 0.9
    small, large = drawn(judge[:50], people[:50], 20), drawn(judge, people, 100)
    parts = [corrected_mean([each]) for each in (small, large)]
    found = corrected_mean([small, large])
    assert found is not None
    assert found.value == pytest.approx(np.mean([part.value for part in parts if part]))
    assert (found.queries, found.reviewed) == (250, 120)


def test_few_reviews_have_no_interval_and_one_has_no_estimate(people: Floats) -> None:
    few = corrected_mean([drawn(people, people, FEWEST_QUERIES - 1)])
    assert few is not None
    assert few.low is None
    assert corrected_mean([drawn(people, people, 1)]) is None
    assert corrected_mean([]) is None


def test_equal_values_have_no_interval() -> None:
    same = np.full(50, 30.0)
    found = corrected_mean([drawn(same, same, 30)], None)
    assert found is not None
    assert (found.value, found.low) == (30.0, None)
    zeros = np.zeros(50)
    at_bound = corrected_mean([drawn(zeros, zeros, 30)])
    assert at_bound is not None
    assert at_bound.value == 0
