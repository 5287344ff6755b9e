"""Agreement beyond chance: the textbooks' examples, plain loops over pairs, and what is not defined."""

import itertools

import numpy as np
import pytest

from r2med.measure.agreement import cohen_kappa, fleiss_kappa, krippendorff_alpha

NONE = np.nan

# Krippendorff, "Computing Krippendorff's Alpha-Reliability" (2011), example D: four observers, twelve units.
OBSERVERS = np.array(
    [
        [1, 2, 3, 3, 2, 1, 4, 1, 2, NONE, NONE, NONE],
        [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, NONE, 3],
        [NONE, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, NONE],
        [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, NONE],
    ]
).T

# Fleiss (1971) as it is taught: fourteen raters, ten subjects, five categories.
SUBJECTS = [
    [0, 0, 0, 0, 14], [0, 2, 6, 4, 2], [0, 0, 3, 5, 6], [0, 3, 9, 2, 0], [2, 2, 8, 1, 1],
    [7, 7, 0, 0, 0], [3, 2, 6, 3, 0], [2, 5, 3, 2, 2], [6, 5, 2, 1, 0], [0, 2, 2, 3, 7],
]  # fmt: skip


def spread(rows):
    return np.array([[value for value, count in enumerate(row) for _ in range(count)] for row in rows], dtype=float)


@pytest.mark.parametrize(("level", "expected"), [("nominal", 0.743), ("ordinal", 0.815), ("interval", 0.849)])
def test_alpha_is_that_of_its_author(level, expected):
    alpha = krippendorff_alpha(OBSERVERS, level)
    assert round(alpha.value, 3) == expected
    assert alpha.units == 11  # the unit that one observer rated says nothing
    assert (alpha.low, alpha.high) == (None, None)  # too few units for an interval


def test_fleiss_kappa_is_that_of_the_textbook():
    assert round(fleiss_kappa(spread(SUBJECTS)).value, 3) == 0.210


def test_cohens_kappa_is_that_of_the_textbook():
    ratings = np.array([[1, 1]] * 20 + [[1, 0]] * 5 + [[0, 1]] * 10 + [[0, 0]] * 15, dtype=float)
    assert cohen_kappa(ratings).value == pytest.approx(0.4)
    assert cohen_kappa(np.vstack([ratings, [[1, NONE]]])).value == pytest.approx(0.4)


def alpha_by_loops(ratings, distance):
    """Krippendorff's α by its definition: pairs within units against all pairs."""
    units = [[v for v in row if not np.isnan(v)] for row in ratings]
    units = [unit for unit in units if len(unit) > 1]
    every = [value for unit in units for value in unit]
    observed = sum(
        sum(distance(a, b, every) for a, b in itertools.permutations(unit, 2)) / (len(unit) - 1) for unit in units
    )
    expected = sum(distance(a, b, every) for a, b in itertools.permutations(every, 2)) / (len(every) - 1)
    return 1 - observed / expected


def ordinal(a, b, every):
    low, high = sorted((a, b))
    between = sum(low <= value <= high for value in every)
    return (between - (every.count(low) + every.count(high)) / 2) ** 2 if a != b else 0.0


DISTANCES = {"nominal": lambda a, b, _: float(a != b), "ordinal": ordinal, "interval": lambda a, b, _: (a - b) ** 2}


@pytest.mark.parametrize("level", DISTANCES)
@pytest.mark.parametrize("seed", range(5))
def test_alpha_is_that_of_plain_loops(level, seed):
    random = np.random.default_rng(seed)
    ratings = random.integers(0, 6, (15, 4)).astype(float)
    ratings[random.random(ratings.shape) < 0.3] = NONE
    expected = alpha_by_loops(ratings.tolist(), DISTANCES[level])
    assert krippendorff_alpha(ratings, level).value == pytest.approx(expected)


@pytest.mark.parametrize("seed", range(3))
def test_the_interval_is_students_with_the_error_of_the_jackknife(seed):
    random = np.random.default_rng(seed)
    truth = random.integers(0, 3, 40)
    ratings = np.where(random.random((40, 2)) < 0.75, truth[:, None], random.integers(0, 3, (40, 2))).astype(float)
    without = np.array([cohen_kappa(np.delete(ratings, unit, axis=0)).value for unit in range(40)])
    error = np.sqrt(39 / 40 * ((without - without.mean()) ** 2).sum())
    kappa = cohen_kappa(ratings)
    assert [kappa.low, kappa.high] == pytest.approx(
        kappa.value + np.array([-1, 1]) * 2.022691 * error
    )  # R: qt(.975, 39)


@pytest.mark.parametrize("coefficient", [cohen_kappa, fleiss_kappa, krippendorff_alpha])
def test_what_is_not_defined_is_nan_and_perfect_agreement_is_one(coefficient):
    assert np.isnan(coefficient(np.ones((4, 2))).value)
    assert coefficient(np.array([[1.0, NONE], [NONE, 2.0]])).units == 0
    assert coefficient(np.zeros((0, 2))).high is None
    assert coefficient(np.array([[1.0, 1], [2, 2], [1, 1]])).value == pytest.approx(1)


def test_units_that_are_all_alike_give_no_interval():
    result = krippendorff_alpha(np.array([[0.0, 1.0], [1.0, 0.0]] * 20))
    assert result.value < 0
    assert (result.low, result.high) == (None, None)
