"""Agreement beyond chance: the textbooks' examples, plain loops over pairs, and what is not defined."""

import itertools

import numpy as np
import pytest

from r2med.evaluation.measure.coefficients import cohen_kappa, fleiss_kappa, gwet_ac1, krippendorff_alpha

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


# Verdicts of three reviewers (0 reject, 1 unsure, 2 accept), some missing. The expected values were computed once with
# irrCAC 0.4.4 (AC1), krippendorff 0.9.0 (α), statsmodels 0.15.0 (Fleiss' κ) and scikit-learn 1.9.1 (Cohen's κ).
VERDICTS = np.array(
    [[2, 2, 2], [2, 2, NONE], [2, 0, 2], [2, 2, 2], [0, 0, 1], [2, 2, 2], [NONE, 2, 2], [2, 1, 2], [2, 2, 2],
     [0, 0, 0], [2, NONE, NONE], [2, 2, 0]]
)  # fmt: skip
COMPLETE = VERDICTS[~np.isnan(VERDICTS).any(axis=1)]
SCORES = np.array([[5, 4, 0, 3, 5, 1, 0, 4, 2, 5], [4, 4, 1, 0, 5, 0, 0, 5, 3, 3]], dtype=float).T


def test_coefficients_are_those_of_other_libraries():
    assert gwet_ac1(VERDICTS).value == pytest.approx(0.69761133957477)
    assert gwet_ac1(OBSERVERS).value == pytest.approx(0.775444068127)
    assert gwet_ac1(OBSERVERS, categories=6).value == pytest.approx(0.785526781226)
    assert krippendorff_alpha(VERDICTS).value == pytest.approx(0.4339622641509434)
    assert krippendorff_alpha(VERDICTS, "ordinal").value == pytest.approx(0.5620133481646274)
    assert fleiss_kappa(COMPLETE).value == pytest.approx(0.3863636363636365)
    assert cohen_kappa(SCORES).value == pytest.approx(0.1358024691358024)
    assert cohen_kappa(SCORES, "quadratic").value == pytest.approx(0.7662337662337663)


@pytest.mark.parametrize(
    ("ratings", "values", "expected"),
    [  # by irrCAC 0.4.4 with quadratic weights
        (VERDICTS, [0, 1, 2], 0.7488956056731),
        (OBSERVERS, [1, 2, 3, 4, 5], 0.9140007235516),
        (SCORES, [0, 1, 2, 3, 4, 5], 0.7272727272727),
    ],
)
def test_ac2_is_that_of_irrcac_and_of_plain_loops(ratings, values, expected):
    places = ratings - values[0]
    assert gwet_ac1(places, len(values), "quadratic").value == pytest.approx(expected)
    assert gwet_ac1(ratings, weights="quadratic").value == pytest.approx(expected)  # every value occurs
    assert ac2_by_loops(ratings.tolist(), values) == pytest.approx(expected)


def ac2_by_loops(ratings, values):
    """Gwet's AC2 by its definition (Gwet 2014, chapter 5)."""
    units = [[v for v in row if not np.isnan(v)] for row in ratings]
    near = {(a, b): 1 - ((a - b) / (values[-1] - values[0])) ** 2 for a in values for b in values}
    paired = [list(itertools.permutations(unit, 2)) for unit in units if len(unit) > 1]
    observed = np.mean([np.mean([near[pair] for pair in pairs]) for pairs in paired])
    shares = [np.mean([unit.count(value) / len(unit) for unit in units if unit]) for value in values]
    size = len(values)
    chance = sum(near.values()) / (size * (size - 1)) * sum(share * (1 - share) for share in shares)
    return (observed - chance) / (1 - chance)


def test_ac2_of_two_values_is_ac1():
    ratings = np.where(COMPLETE > 1, 1.0, 0.0)
    many = np.tile(ratings, (5, 1))
    assert gwet_ac1(many, 2, "quadratic") == gwet_ac1(many, 2)
    assert gwet_ac1(ratings, 2, "quadratic").low is None  # too few units for an interval
    assert gwet_ac1(np.full((10, 2), 2.0), weights="quadratic").value == 1


def test_ac1_is_that_of_irrcac_where_it_is_installed():
    raw = pytest.importorskip("irrCAC.raw", reason="irrCAC is not installed: it needs SciPy 1.12")
    frame = pytest.importorskip("pandas", reason="pandas is not installed").DataFrame(VERDICTS)
    # With some versions of pandas, irrCAC counts a missing rating as one more value unless the values are given.
    found = raw.CAC(frame, categories=[0.0, 1.0, 2.0], digits=12).gwet()
    assert gwet_ac1(VERDICTS).value == pytest.approx(found["est"]["coefficient_value"])


@pytest.mark.parametrize("level", ["nominal", "ordinal", "interval"])
def test_alpha_is_that_of_krippendorff_where_it_is_installed(level):
    krippendorff = pytest.importorskip("krippendorff", reason="krippendorff is not installed")
    expected = krippendorff.alpha(reliability_data=VERDICTS.T, level_of_measurement=level)
    assert krippendorff_alpha(VERDICTS, level).value == pytest.approx(expected)


@pytest.mark.parametrize("weights", [None, "quadratic"])
def test_cohens_kappa_is_that_of_scikit_learn_where_it_is_installed(weights):
    metrics = pytest.importorskip("sklearn.metrics", reason="scikit-learn is not installed")
    expected = metrics.cohen_kappa_score(*SCORES.T, weights=weights, labels=range(6))
    assert cohen_kappa(SCORES, weights).value == pytest.approx(expected)


def test_fleiss_kappa_is_that_of_statsmodels_where_it_is_installed():
    inter_rater = pytest.importorskip("statsmodels.stats.inter_rater", reason="statsmodels is not installed")
    expected = inter_rater.fleiss_kappa(inter_rater.aggregate_raters(COMPLETE.astype(int))[0])
    assert fleiss_kappa(COMPLETE).value == pytest.approx(expected)


def test_the_interval_of_weighted_kappa_is_that_of_fishers_transformation():
    random = np.random.default_rng(0)
    ratings = np.clip(random.integers(0, 6, (30, 1)) + random.integers(-1, 2, (30, 2)), 0, 5).astype(float)
    without = [cohen_kappa(np.delete(ratings, unit, axis=0), "quadratic").value for unit in range(30)]
    error = np.sqrt(29 / 30 * ((np.arctanh(without) - np.arctanh(without).mean()) ** 2).sum())
    kappa = cohen_kappa(ratings, "quadratic")
    expected = np.tanh(np.arctanh(kappa.value) + np.array([-1, 1]) * 2.045230 * error)  # R: qt(.975, 29)
    assert kappa.bounds == pytest.approx(expected)
    assert cohen_kappa(ratings[:29], "quadratic").low is None
    assert cohen_kappa(ratings[:, [0, 0]], "quadratic").low is None  # perfect agreement shows no spread


def test_ac1_stays_high_where_one_value_prevails_and_kappa_falls():
    ratings = np.array([[2, 2]] * 46 + [[2, 0], [0, 2]] * 2, dtype=float)
    assert gwet_ac1(ratings).value > 0.9
    assert cohen_kappa(ratings).value < 0


def test_ac1_of_raters_who_always_agree_has_an_interval_from_ten_units_on():
    always = gwet_ac1(np.full((10, 2), 2.0), categories=3)
    assert (always.value, always.high) == pytest.approx((1, 1)) and 0.5 < always.bounds[0] < 0.8
    assert gwet_ac1(np.full((9, 2), 2.0), categories=3).low is None
    assert gwet_ac1(np.full((10, 2), 2.0)).value == 1  # κ and α are not defined
    assert np.isnan(gwet_ac1(np.full((0, 2), 2.0)).value)
    alone = gwet_ac1(np.array([[2.0, NONE], [NONE, 1.0]] * 8))
    assert np.isnan(alone.value) and alone.units == 0


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
