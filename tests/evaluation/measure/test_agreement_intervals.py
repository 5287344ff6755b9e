"""Intervals of agreement hold the true coefficient, also on few units. A missing interval does not count as covered."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from r2med.evaluation.measure.coefficients import (
    FEWEST_BOUNDED_UNITS,
    FEWEST_UNITS,
    Agreement,
    cohen_kappa,
    fleiss_kappa,
    gwet_ac1,
    krippendorff_alpha,
)
from r2med.evaluation.measure.scores import Floats
from support.by_day import some_by_day

SAMPLES = 150
COEFFICIENTS: dict[str, tuple[int, Callable[[Floats], Agreement]]] = {
    "Cohen's κ": (2, cohen_kappa),
    "Fleiss' κ": (3, fleiss_kappa),
    "ordinal α": (3, lambda ratings: krippendorff_alpha(ratings, "ordinal")),
}
# How often each value is given, and how often a rater sees the true value instead of guessing.
GRID = [
    (np.array(weights) / sum(weights), seen)
    for weights in ((1, 1), (4, 1), (1, 1, 1), (1, 2, 3))
    for seen in (0.4, 0.7, 0.9)
]


def rate(random: np.random.Generator, units: int, raters: int, shares: Floats, seen: float) -> Floats:
    truth = random.choice(len(shares), (units, 1), p=shares)
    guess = random.choice(len(shares), (units, raters), p=shares)
    return np.where(random.random((units, raters)) < seen, truth, guess).astype(float)


def coverage(raters: int, coefficient: Callable[[Floats], Agreement], units: int, case: int) -> float:
    random = np.random.default_rng([units, case])
    truth = coefficient(rate(random, 20_000, raters, *GRID[case])).value
    found = [coefficient(rate(random, units, raters, *GRID[case])) for _ in range(SAMPLES)]
    return float(np.mean([each.bounds[0] <= truth <= each.bounds[1] for each in found if each.low is not None]))


@pytest.mark.parametrize("name", some_by_day(COEFFICIENTS, len(COEFFICIENTS)))
def test_the_interval_holds_the_truth_in_at_least_93_of_100_samples(name: str) -> None:
    covered = [coverage(*COEFFICIENTS[name], FEWEST_UNITS, case) for case in range(len(GRID))]
    assert np.mean(covered) >= 0.93


@pytest.mark.parametrize("name", COEFFICIENTS)
def test_fewer_units_have_no_interval(name: str) -> None:
    """With 5 or 10 units the mean coverage of this grid is 90 % to 98 %, by coefficient."""
    raters, coefficient = COEFFICIENTS[name]
    found = coefficient(rate(np.random.default_rng(0), FEWEST_UNITS - 1, raters, *GRID[1]))
    assert np.isfinite(found.value) and (found.low, found.high) == (None, None)


@pytest.mark.slow
def test_the_interval_of_ac1_holds_the_truth_in_at_least_93_of_100_samples_of_ten_units() -> None:
    covered = [coverage(2, gwet_ac1, FEWEST_BOUNDED_UNITS, case) for case in range(len(GRID))]
    assert np.mean(covered) >= 0.93
