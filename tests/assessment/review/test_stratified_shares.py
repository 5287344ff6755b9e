"""Totals and shares of strata: equal to other libraries where these compute them, exact where all is known."""

import numpy as np
import pytest

from r2med.assessment.review.stratified_shares import Stratum, share_of, summed
from r2med.foundation.pages.estimate import Estimate

MANY = 10**9


def test_the_interval_of_one_large_stratum_is_wilsons():
    """The bounds are those of statsmodels 0.15.0: proportion_confint(8, 10, method="wilson")."""
    total = Stratum(MANY, 10, 8).total()
    assert np.array([total.value, *total.bounds]) / MANY == pytest.approx([0.8, 0.4901624715, 0.9433178485])


def test_wilsons_interval_is_that_of_statsmodels_where_it_is_installed():
    proportion = pytest.importorskip("statsmodels.stats.proportion", reason="statsmodels is not installed")
    for counted, size in ((0, 10), (3, 7), (30, 30)):
        expected = proportion.proportion_confint(counted, size, method="wilson")
        assert np.array(Stratum(MANY, size, counted).total().bounds) / MANY == pytest.approx(expected, abs=1e-7)


def test_reviewed_items_are_certain():
    assert Stratum(12, 12, 5).total() == Estimate(5, 5, 5)
    total = Stratum(12, 10, 0).total()
    assert (total.value, total.low) == (0, 0) and 0 < total.bounds[1] <= 2
    with pytest.raises(ValueError, match="without a review"):
        Stratum(5, 0, 0).total()


def test_bounds_of_a_share_are_where_the_recovered_bounds_of_a_contrast_hold_zero():
    """The definition, by a fine grid: all shares r for which the bounds of (1 - r) × first - r × second include 0."""
    first, second = Estimate(60.0, 41.0, 85.0), Estimate(20.0, 4.0, 70.0)
    held = []
    for r in np.linspace(0, 1, 100_001):
        contrast = (1 - r) * 60 - r * 20
        low = contrast - np.hypot((1 - r) * (60 - 41), r * (70 - 20))
        high = contrast + np.hypot((1 - r) * (85 - 60), r * (20 - 4))
        held.append(low <= 0 <= high)
    expected = np.linspace(0, 1, 100_001)[held][[0, -1]]
    assert share_of(first, second).bounds == pytest.approx(expected, abs=2e-5)


def test_none_found_in_a_small_sample_of_many_leaves_the_share_open():
    found = share_of(Stratum(100, 10, 10).total(), Stratum(10_000, 10, 0).total())
    assert found.value == 1 and found.high == 1
    assert found.bounds[0] < 0.05


def test_shares_of_nothing_and_of_everything():
    assert np.isnan(share_of(Estimate(0, 0, 0), Estimate(0, 0, 0)).value)
    assert share_of(Estimate(5, 5, 5), Estimate(15, 15, 15)).bounds == pytest.approx((0.25, 0.25))
    assert share_of(summed([]), Estimate(3, 2, 4)) == Estimate(0, 0, 0)
