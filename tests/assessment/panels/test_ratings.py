"""Items × raters: their table and their agreement, which is weighted if words are ordered."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from r2med.assessment.panels.ratings import Ratings, agreement_table
from r2med.evaluation.measure.coefficients import cohen_kappa, fleiss_kappa, gwet_ac1, krippendorff_alpha
from r2med.evaluation.measure.scores import Floats

GRADES = ("0", "1", "2", "3")
YES_NO = ("no", "yes")


def drawn(words: tuple[str, ...], raters: str, items: int = 40, missing: float = 0.2) -> Ratings:
    """Return ratings of which some are missing."""
    random = np.random.default_rng([len(words), len(raters)])
    truth = random.integers(0, len(words), items)
    return Ratings.of(
        words,
        (
            (item, rater, words[truth[item] if random.random() < 0.7 else random.integers(0, len(words))])
            for item in range(items)
            for rater in raters
            if random.random() >= missing
        ),
    )


def both(ratings: Ratings, first: str, second: str) -> Floats:
    """Return the places of the words of two raters, over the items that both rated."""
    pairs = [(row[first], row[second]) for row in ratings.said.values() if first in row and second in row]
    return np.array([[ratings.words.index(word) for word in pair] for pair in pairs], dtype=float)


def test_a_table_has_the_place_of_each_word() -> None:
    given = [
        ("x", "b", "yes"),
        ("x", "a", "no"),
        ("y", "a", "no"),
        ("z", "b", "no"),
        ("z", "a", "yes"),
        ("z", "a", "no"),
    ]
    found = Ratings.of(YES_NO, given)
    assert found.raters == ("a", "b")
    np.testing.assert_array_equal(found.table(), [[0, 1], [0, np.nan], [0, 0]])
    np.testing.assert_array_equal(found.table("b"), [[1], [np.nan], [0]])


def test_the_number_beside_a_coefficient_is_that_of_the_items_it_rests_on() -> None:
    ratings = drawn(GRADES, "abc", missing=0.4)
    every, *pairs = ratings.agreements()
    assert every.items == sum(len(row) > 1 for row in ratings.said.values()) < len(ratings.said)
    for pair, names in zip(pairs, combinations("abc", 2), strict=True):
        assert pair.raters == names
        assert pair.items == len(both(ratings, *names)) < every.items
        assert pair.kappa is not None
        assert pair.items == pair.kappa.units == pair.alpha.units == pair.gwet.units == pair.observed.units


@pytest.mark.parametrize("words", [YES_NO, GRADES])
def test_ordered_words_have_weighted_coefficients_and_two_words_plain_ones(words: tuple[str, ...]) -> None:
    weights = "quadratic" if len(words) > 2 else None
    ratings = drawn(words, "ab")
    (pair,) = ratings.agreements()
    table = both(ratings, "a", "b")
    assert pair.kappa == cohen_kappa(table, weights)
    assert pair.alpha == krippendorff_alpha(table, "ordinal")
    assert pair.gwet == gwet_ac1(table, len(words), weights)
    assert pair.observed.value == pytest.approx(float((table[:, 0] == table[:, 1]).mean()))
    three = drawn(words, "abc").agreement()
    assert three.kappa == (None if weights else fleiss_kappa(three.table))


@pytest.mark.parametrize("words", [YES_NO, GRADES])
def test_kappa_and_alpha_are_those_of_other_libraries_where_they_are_installed(words: tuple[str, ...]) -> None:
    metrics = pytest.importorskip("sklearn.metrics", reason="scikit-learn is not installed")
    krippendorff = pytest.importorskip("krippendorff", reason="krippendorff is not installed")
    ratings = drawn(words, "ab")
    found, table = ratings.agreement(), both(ratings, "a", "b")
    expected = metrics.cohen_kappa_score(*table.T, weights="quadratic", labels=range(len(words)))
    assert found.kappa is not None
    assert found.kappa.value == pytest.approx(expected)  # the weights of two words change nothing
    expected = krippendorff.alpha(ratings.table().T, value_domain=range(len(words)), level_of_measurement="ordinal")
    assert found.alpha.value == pytest.approx(expected)


def test_raters_without_a_common_item_have_no_agreement() -> None:
    assert Ratings.of(YES_NO, [("x", "a", "yes"), ("y", "b", "no")]).agreements() == []
    assert Ratings.of(YES_NO, []).agreements() == []


def test_the_table_shows_every_coefficient_beside_its_number_of_items() -> None:
    ratings = drawn(GRADES, "abc")
    found = ratings.agreements()
    table = agreement_table(("raters", "number"), [((" ".join(each.raters), len(each.raters)), each) for each in found])
    assert table.heads == ("raters", "number", "items", "agree", "κ", "α", "AC")
    assert [row[:3] for row in table.rows] == [(" ".join(each.raters), len(each.raters), each.items) for each in found]
    assert "quadratic weights" in table.note


def test_the_last_word_of_a_rater_about_an_item_counts() -> None:
    ratings = Ratings.of(YES_NO, [("i", "A", "no"), ("i", "B", "yes"), ("i", "A", "yes")])
    assert ratings.table().tolist() == [[1.0, 1.0]]


def test_the_order_of_raters_and_of_items_changes_no_coefficient() -> None:
    ratings = drawn(GRADES, "ABC")
    turned = Ratings(GRADES, dict(reversed(list(ratings.said.items()))))
    one, other = ratings.agreement("A", "B"), turned.agreement("B", "A")
    assert one.items == other.items
    for name in ("observed", "kappa", "alpha", "gwet"):
        assert getattr(one, name).value == pytest.approx(getattr(other, name).value), name


def test_a_disagreement_by_two_steps_is_worse_than_two_by_one_step() -> None:
    truth = [("0", "0"), ("1", "1"), ("2", "2"), ("3", "3")] * 5

    def agreement(*pairs: tuple[str, str]) -> float:
        rows = [
            (n, rater, word) for n, pair in enumerate([*truth, *pairs]) for rater, word in zip("AB", pair, strict=True)
        ]
        return Ratings.of(GRADES, rows).agreement().alpha.value

    assert agreement(("0", "3"), ("1", "1")) < agreement(("0", "1"), ("2", "3"))


def test_raters_who_always_say_the_same_word_agree_but_show_nothing() -> None:
    rows = [(item, rater, "yes") for item in range(12) for rater in "AB"]
    agreement = Ratings.of(YES_NO, rows).agreement()
    assert agreement.observed.value == 1 and agreement.commonest == ("yes", 1.0)
    assert agreement.kappa is None or not agreement.kappa.value > 0, "chance alone would agree as often"
    assert agreement.gwet.value == 1


def test_a_rater_of_single_items_takes_part_in_no_coefficient() -> None:
    rows = [(item, rater, "yes") for item in range(4) for rater in "AB"] + [("alone", "C", "no")]
    ratings = Ratings.of(YES_NO, rows)
    assert ratings.agreement().items == 4
    assert [each.raters for each in ratings.agreements()] == [("A", "B", "C"), ("A", "B")]
