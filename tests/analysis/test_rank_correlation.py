"""Correlations of rankings equal plain computations, with and without ties."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from scipy.stats import kendalltau, ttest_rel

from r2med.analysis.rank_correlation import kendall_tau, same_order, tau_interval


@pytest.mark.parametrize("systems", [2, 3, 6, 30])
@pytest.mark.parametrize("digits", [0, 1, 6])
def test_kendall_equals_that_of_scipy_with_and_without_ties(systems: int, digits: int) -> None:
    first, second = np.random.default_rng(systems).normal(size=(2, systems, 40)).round(digits)
    expected = [kendalltau(a, b).statistic for a, b in zip(first.T, second.T, strict=True)]
    assert kendall_tau(first, second) == pytest.approx(np.array(expected), nan_ok=True)


def test_sums_that_differ_by_a_rounding_error_are_tied() -> None:
    first = np.array([[0.1 + 0.2], [0.3], [0.0]])
    second = np.array([[2.0], [1.0], [0.0]])
    assert kendall_tau(first, second)[0] == pytest.approx(kendalltau([0.3, 0.3, 0.0], [2, 1, 0]).statistic)
    assert same_order(first, second)[0] == pytest.approx(2 / 3)


def test_the_interval_counts_pairs_whose_order_is_not_known_both_ways() -> None:
    random = np.random.default_rng(3)
    true = np.array([[40.0, 41, 60, 80], [30.0, 70, 80, 90]])
    values = true[:, :, None] + random.normal(0, 8, (2, 4, 25))
    low = high = 0
    for a, b in combinations(range(4), 2):
        tests = [ttest_rel(rows[a], rows[b]) for rows in values]
        if all(test.pvalue < 0.05 for test in tests):
            agree = 1 if tests[0].statistic * tests[1].statistic > 0 else -1
            low, high = low + agree, high + agree
        else:
            low, high = low - 1, high + 1
    assert tau_interval({"": values[0]}, {"": values[1]}) == pytest.approx((low / 6, high / 6))
    assert -6 < low < high


def test_equal_systems_are_in_no_known_order_and_few_queries_have_no_interval() -> None:
    rows = np.tile(np.arange(12.0), (3, 1))
    assert tau_interval({"": rows}, {"": rows}) == (-1.0, 1.0)
    assert tau_interval({"": rows[:, :9]}, {"": rows[:, :9]}) is None
