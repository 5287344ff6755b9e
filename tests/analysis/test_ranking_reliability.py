"""The reliability of scores equals plain computations, and its interval holds the truth."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import ncf

from r2med.analysis.ranking_reliability import MIN_RELIABILITY_QUERIES, reliability_of_scores
from r2med.evaluation.measure.scores import Floats


def drawn(random: np.random.Generator, true: Floats, queries: int) -> Floats:
    """Return points of systems with these true means. Queries are hard for all systems or for one of them."""
    return true[:, None] + random.normal(0, 20, queries) + random.normal(0, 15, (len(true), queries))


def cronbach_alpha(rows: Floats) -> float:
    """Return α as textbooks have it: queries are items, systems are persons."""
    items = rows.shape[1]
    return items / (items - 1) * (1 - rows.var(axis=0, ddof=1).sum() / rows.sum(axis=1).var(ddof=1))


@pytest.mark.parametrize("systems", [2, 7, 30])
def test_on_one_dataset_it_is_cronbachs_alpha(systems: int) -> None:
    rows = drawn(np.random.default_rng(systems), np.linspace(30, 60, systems), 40)
    found = reliability_of_scores({"": rows})
    assert found is not None
    assert found.at()[0] == pytest.approx(cronbach_alpha(rows))


def test_other_lengths_follow_spearman_and_brown() -> None:
    found = reliability_of_scores({"": drawn(np.random.default_rng(0), np.linspace(30, 45, 6), 40)})
    assert found is not None
    whole, double = np.array(found.at()), np.array(found.at(2.0))
    assert double == pytest.approx(2 * whole / (1 + whole))


def test_two_equal_parts_of_a_dataset_have_about_the_reliability_of_the_whole() -> None:
    rows = drawn(np.random.default_rng(1), np.linspace(30, 45, 6), 200)
    whole, parts = reliability_of_scores({"": rows}), reliability_of_scores({"a": rows[:, :100], "b": rows[:, 100:]})
    assert whole is not None and parts is not None
    assert parts.at() == pytest.approx(whole.at(), abs=0.01)


def test_two_systems_have_the_interval_of_the_noncentral_f_distribution() -> None:
    rows = drawn(np.random.default_rng(2), np.array([40.0, 60.0]), 30)
    found = reliability_of_scores({"": rows})
    assert found is not None and found.low is not None and found.high is not None
    difference = rows[0] - rows[1]
    statistic = 30 * difference.mean() ** 2 / difference.var(ddof=1)  # the square of Student's t
    assert ncf.cdf(statistic, 1, 29, found.low) == pytest.approx(0.975, abs=1e-4)
    assert ncf.cdf(statistic, 1, 29, found.high) == pytest.approx(0.025, abs=1e-4)


@pytest.mark.parametrize("queries", [10, 30])
def test_the_interval_holds_the_truth_in_at_least_93_of_100_samples(queries: int) -> None:
    covered = []
    for case, width in enumerate((0.0, 5.0, 20.0)):
        random = np.random.default_rng([queries, case])
        true = np.linspace(40, 40 + width, 6)
        ratio = true.var(ddof=1) / (15**2 / queries)
        for _ in range(80):
            found = reliability_of_scores({"": drawn(random, true, queries)})
            assert found is not None and found.low is not None and found.high is not None
            covered.append(found.low <= ratio <= found.high)
    assert np.mean(covered) >= 0.93


def test_few_queries_have_no_interval_and_equal_systems_no_reliability() -> None:
    rows = drawn(np.random.default_rng(3), np.linspace(30, 60, 4), MIN_RELIABILITY_QUERIES - 1)
    found = reliability_of_scores({"": rows})
    assert found is not None and (found.low, found.high) == (None, None)
    assert reliability_of_scores({"": rows[[0, 0]]}) is None
    assert reliability_of_scores({"": rows[:, :1]}) is None
    assert reliability_of_scores({"": rows[:1]}) is None


@pytest.mark.parametrize("noise", [1e-1, 1e-3, 1e-5])
def test_systems_that_differ_by_the_same_on_every_query_are_reliable(noise: float) -> None:
    random = np.random.default_rng(4)
    rows = np.array([[20.0], [80.0]]) + random.normal(0, 20, 1000) + noise * random.normal(size=(2, 1000))
    found = reliability_of_scores({"": rows})
    assert found is not None
    assert found.at() == pytest.approx((1, 1, 1), abs=1e-4)
