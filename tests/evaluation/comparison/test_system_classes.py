"""Classes of systems by the paired test."""

from __future__ import annotations

import numpy as np

from r2med.evaluation.comparison.comparison import comparison
from r2med.evaluation.comparison.report_tables import EQUAL, score_table
from r2med.evaluation.comparison.system_classes import classes
from r2med.evaluation.comparison.verdicts import class_rule
from r2med.evaluation.measure.significance import SystemPairs, sign_flips
from support.records import collection, record

RANDOM = np.random.default_rng(7)
BASE = 20 + 60 * RANDOM.random(40)
NAMES = ["best", "steady", "wild", "poor"]
ROWS = np.array(
    [
        BASE + 4,
        BASE + 1 + RANDOM.normal(0, 0.5, 40),  # little below the best, on every query
        BASE + RANDOM.permutation(np.repeat([-15, 15], 20)),  # further below, but with a large spread
        BASE - 20,
    ]
)


def test_classes_follow_the_paired_test_and_need_not_be_contiguous() -> None:
    numbers = classes(NAMES, {"d": ROWS})
    assert numbers == {"best": 1, "steady": 2, "wild": 1, "poor": 3}
    assert list(numbers) == NAMES
    adjusted = sign_flips({"d": ROWS}, SystemPairs.against(0, 4)).p_adjusted
    assert [p > 0.05 for p in adjusted] == [False, True, False]


def test_systems_whose_own_intervals_overlap_are_told_apart_if_each_query_says_so() -> None:
    rows = np.array([BASE, BASE - 2 - RANDOM.random(40)])
    assert classes(["a", "b"], {"d": rows}) == {"a": 1, "b": 2}


def test_there_are_no_classes_below_twenty_queries_in_total() -> None:
    far = np.array([np.full(10, 90.0), np.full(10, 10.0)])
    assert classes(["a", "b"], {"x": far, "y": far[:, :9]}) == {}
    assert classes(["a", "b"], {"x": far, "y": far}) == {"a": 1, "b": 2}
    few = comparison(collection([record("a", "x", [0.9] * 6), record("b", "x", [0.1] * 6)]), resamples=99)
    assert few.classes() == {}
    assert "No classes: there are 6 queries" in class_rule(few)


def test_a_system_that_lacks_a_value_has_no_class_and_one_alone_leads() -> None:
    rows = np.array([np.full(30, np.nan), BASE[:30]])
    assert classes(["a", "b"], {"d": rows}) == {"b": 1}


def test_the_report_marks_the_systems_of_the_first_class() -> None:
    made = [record(name, "d", row / 100) for name, row in zip(NAMES, np.clip(ROWS, 0, 100), strict=True)]
    compared = comparison(collection(made), resamples=999)
    marked = [row[0] for row in score_table(compared).rows if row[1].mark == EQUAL]
    assert marked == [name for name, number in compared.classes().items() if number == 1][1:] == ["wild"]
