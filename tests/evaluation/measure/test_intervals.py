"""Intervals keep their level on few queries, or none is given."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from r2med.evaluation.measure.intervals import difference_intervals, group_difference_intervals, mean_intervals, wilson
from r2med.evaluation.measure.scores import Floats
from r2med.evaluation.measure.significance import SystemPairs

SIZES = (5, 10, 30)
SAMPLES = 2000
GAINS = np.array([0.63, 0.5, 0.43, 0.39, 0.36, 0.33, 0.31, 0.3, 0.29])
"""nDCG@10 of one relevant document at ranks 2 to 10."""

Draw = Callable[[np.random.Generator, tuple[int, int]], Floats]


def proportion(share: float) -> tuple[float, Draw]:
    return share, lambda random, shape: (random.random(shape) < share).astype(np.float64)


def beta(mean: float, size: float) -> tuple[float, Draw]:
    return mean, lambda random, shape: random.beta(mean * size, (1 - mean) * size, shape)


def ndcg(zeros: float, ones: float) -> tuple[float, Draw]:
    """Return scores of one relevant document that is often not found, or found first."""

    def draw(random: np.random.Generator, shape: tuple[int, int]) -> Floats:
        place = random.random(shape)
        return np.select([place < zeros, place < zeros + ones], [0.0, 1.0], random.choice(GAINS, shape))

    return float(ones + (1 - zeros - ones) * GAINS.mean()), draw


PROPORTIONS = [proportion(share) for share in (0.05, 0.1, 0.3, 0.5, 0.7, 0.9, 0.95)]
MEANS = [beta(mean, size) for mean in (0.1, 0.3, 0.5, 0.7, 0.9) for size in (2, 8)]
SCORES = [ndcg(*shares) for shares in ((0.6, 0.1), (0.3, 0.3), (0.1, 0.6), (0.05, 0.85))]


def coverage(truth: float, draw: Draw, size: int) -> float:
    values = 100 * draw(np.random.default_rng([size, int(1000 * truth)]), (SAMPLES, size))
    low, high = mean_intervals({"": values})
    return float(np.mean((low <= 100 * truth + 1e-9) & (100 * truth - 1e-9 <= high)))


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("grid", [PROPORTIONS, MEANS, SCORES], ids=["proportions", "means", "scores"])
def test_intervals_of_means_hold_the_truth_in_at_least_93_of_100_samples(grid, size) -> None:
    covered = [coverage(truth, draw, size) for truth, draw in grid]
    assert np.mean(covered) >= 0.93
    assert min(covered) >= 0.8


def mixture(zeros: float, ones: float, a: float, b: float) -> tuple[float, Draw]:
    """Return values of which some are 0, some are 1, and the others follow a beta distribution."""

    def draw(random: np.random.Generator, shape: tuple[int, int]) -> Floats:
        place = random.random(shape)
        return np.select([place < zeros, place < zeros + ones], [0.0, 1.0], random.beta(a, b, shape))

    return ones + (1 - zeros - ones) * a / (a + b), draw


# Other true values and distributions than those above, on which the constant of `intervals` was chosen.
OTHER_SHARES = [proportion(share) for share in (0.02, 0.08, 0.15, 0.25, 0.4, 0.6, 0.75, 0.85, 0.92, 0.98)]
MIXTURES = [
    mixture(*each)
    for each in (
        (0.7, 0.05, 2, 3), (0.5, 0.2, 2, 2), (0.4, 0.4, 1, 1), (0.2, 0.5, 3, 2),
        (0.8, 0.0, 1, 2), (0.1, 0.1, 1, 3), (0.0, 0.75, 2, 2), (0.45, 0.0, 1, 4),
    )
]  # fmt: skip


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("grid", [OTHER_SHARES, MIXTURES], ids=["shares", "mixtures"])
def test_intervals_keep_their_level_on_a_grid_that_had_no_part_in_choosing_them(grid, size) -> None:
    assert np.mean([coverage(truth, draw, size) for truth, draw in grid]) >= 0.93


@pytest.mark.parametrize("size", SIZES)
def test_intervals_of_differences_hold_the_truth_in_at_least_93_of_100_samples(size) -> None:
    covered = []
    for first, second in ((MEANS[2], MEANS[4]), (MEANS[5], MEANS[5]), (SCORES[0], SCORES[1]), (SCORES[1], SCORES[2])):
        random = np.random.default_rng(size)
        a, b = (100 * each[1](random, (SAMPLES, size)) for each in (first, second))
        pairs = SystemPairs(np.arange(SAMPLES), np.arange(SAMPLES, 2 * SAMPLES))
        low, high = difference_intervals({"": np.vstack([a, b])}, pairs)
        truth = 100 * (first[0] - second[0])
        given = ~np.isnan(low)  # a missing interval does not count as covered
        covered.append(np.mean(((low <= truth) & (truth <= high))[given]))
    assert np.mean(covered) >= 0.93


def test_means_over_several_datasets_hold_the_truth() -> None:
    random = np.random.default_rng(0)
    grid = [MEANS[2], SCORES[1], SCORES[3]]
    values = {str(n): 100 * draw(random, (SAMPLES, 8)) for n, (_, draw) in enumerate(grid)}
    low, high = mean_intervals(values)
    truth = 100 * np.mean([each[0] for each in grid])
    assert np.mean((low <= truth) & (truth <= high)) >= 0.93


def test_values_that_are_all_or_nothing_have_wilsons_interval() -> None:
    rows = np.array([[100.0] * 9 + [0.0], [100.0] * 10])
    low, high = mean_intervals({"": rows})
    assert [low[0], high[0]] == pytest.approx([59.585, 98.212], abs=0.001)  # R: prop.test(9, 10, correct = FALSE)
    assert [low[1], high[1]] == pytest.approx([72.247, 100.0], abs=0.001)
    assert mean_intervals({"": rows / 100}, top=1.0) == pytest.approx(mean_intervals({"": rows}) / 100)
    assert wilson(np.array(0.5), np.array(10.0)) == pytest.approx([0.2366, 0.7634], abs=1e-4)


def test_fewer_than_five_values_and_values_without_spread_or_bounds_have_no_interval() -> None:
    assert np.isnan(mean_intervals({"": np.array([[100.0, 100.0, 0.0, 50.0]])})).all()
    assert np.isnan(mean_intervals({"": np.full((1, 8), 63.0)}, top=None)).all()
    assert np.isnan(mean_intervals({"x": np.ones((1, 8)), "y": np.ones((1, 1))})).all()
    assert np.isnan(difference_intervals({"": np.ones((2, 4))}, SystemPairs.all(2))).all()


def test_a_rounding_error_at_the_bound_has_the_interval_of_the_bound() -> None:
    below = np.nextafter(100.0, 0)
    with np.errstate(all="raise"):
        near = mean_intervals({"": np.array([[100.0] * 9 + [below]])})
    np.testing.assert_allclose(near, mean_intervals({"": np.full((1, 10), 100.0)}))


def test_the_difference_of_two_groups_keeps_its_level_near_a_bound() -> None:
    random = np.random.default_rng(0)
    held = []
    for first, second in ((0.1, 0.1), (0.1, 0.5), (0.9, 0.4)):
        groups = [100.0 * (random.random((400, size)) < share) for share, size in ((first, 5), (second, 25))]
        low, high = group_difference_intervals(*groups)
        held.append(np.mean((low <= 100 * (first - second)) & (100 * (first - second) <= high)))
    assert np.mean(held) >= 0.93


def test_wilsons_interval_is_that_of_statsmodels_where_it_is_installed() -> None:
    proportion = pytest.importorskip("statsmodels.stats.proportion", reason="statsmodels is not installed")
    for counted, size in ((0, 10), (3, 7), (30, 30)):
        expected = proportion.proportion_confint(counted, size, method="wilson")
        found = wilson(np.array(counted / size), np.array(float(size)))
        np.testing.assert_allclose(found, expected, atol=1e-12)
