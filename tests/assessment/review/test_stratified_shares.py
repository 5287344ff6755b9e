"""Totals and shares of strata: equal to other libraries where these compute them, exact where all is known."""

from math import comb

import numpy as np
import pytest

from r2med.assessment.review.stratified_shares import Stratum, share_of, summed
from r2med.foundation.pages.estimate import Estimate


@pytest.mark.parametrize(("items", "reviewed", "counted"), [(60, 33, 32), (200, 4, 4), (200, 4, 3), (30, 10, 0)])
def test_the_interval_of_a_stratum_holds_every_number_that_the_sample_does_not_contradict(items, reviewed, counted):
    """The mid-p interval by its definition, with binomial coefficients."""

    def chance(relevant, seen):
        return comb(relevant, seen) * comb(items - relevant, reviewed - seen) / comb(items, reviewed)

    held = []
    for relevant in range(counted, items - (reviewed - counted) + 1):
        below = sum(chance(relevant, seen) for seen in range(counted)) + chance(relevant, counted) / 2
        if 0.025 <= below <= 0.975:
            held.append(relevant)
    total = Stratum(items, reviewed, counted).total()
    assert total.bounds == (held[0], held[-1])
    assert total.value == pytest.approx(items * counted / reviewed)


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
        low = contrast - np.hypot((1 - r) * (60 - 40.5), r * (70.5 - 20))  # half an item wider
        high = contrast + np.hypot((1 - r) * (85.5 - 60), r * (20 - 3.5))
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
