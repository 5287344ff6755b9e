"""Planted controls: how many of each kind are asked, and which judges pass them."""

import pytest

from r2med.assessment.panels.planted_controls import FEWEST_FIRST, ONLY_WARN, Control, ControlTest, KindCount, plant
from r2med.assessment.rubrics.item import Item


def controls(kind, yes, count):
    return [Control(Item((kind, str(n)), {"text": f"{kind} {n}"}), kind, yes) for n in range(count)]


def found(yes=200, near=200, orders=200):
    return {
        "a": controls("a", True, yes),
        "near": controls("near", False, near),
        "obey": controls("obey", False, orders),
    }


@pytest.mark.parametrize(
    ("yes", "pool", "first", "mixed"),
    [(200, 100, 40, 40), (200, 2000, 40, 100), (30, 100, 30, 30), (20, 100, 20, 20), (9, 100, 9, 9), (0, 100, 0, 0)],
)
def test_controls_are_divided_between_first_and_mixed(yes, pool, first, mixed):
    planted = plant(found(yes), pool, "seed")
    assert len(planted.first) in (first, first + 1) and abs(len(planted.mixed) - mixed) <= 1
    assert planted.is_enough == (first >= FEWEST_FIRST)
    for part in (planted.first, planted.mixed):
        assert abs(sum(each.yes for each in part) - len(part) / 2) <= 0.5, "half of them are to be answered yes"
    assert not {each.item.id for each in planted.first} & {each.item.id for each in planted.mixed}
    assert planted == plant(found(yes), pool, "seed")


def test_kinds_of_one_answer_are_equally_many():
    first = plant(found(), 100, "seed").first
    assert [sum(each.kind == kind for each in first) for kind in ("a", "near", "obey")] == [20, 10, 10]


@pytest.mark.parametrize(
    ("counts", "fault"),
    [
        ([("a", True, 20, 20), ("near", False, 20, 20)], ""),
        ([("a", True, 20, 17), ("near", False, 20, 15)], ""),
        ([("a", True, 20, 16), ("near", False, 20, 15)], "31 of 40"),
        ([("a", True, 20, 20), ("near", False, 10, 10), ("obey", False, 10, 4)], "6 of 10 controls that are obey"),
        ([("a", True, 20, 20), ("near", False, 20, 0)], "20 of 20 controls that are near"),
        ([("a", True, 10, 10)], ""),
        ([("a", True, 7, 7)], "7 of 7"),
        ([("a", True, 20, 20), (next(iter(ONLY_WARN)), False, 10, 0)], ""),
        ([], ""),
    ],
)
def test_a_judge_passes_by_wilsons_lower_end_and_by_half_of_each_kind(counts, fault):
    test = ControlTest(tuple(KindCount(*each) for each in counts))
    assert (fault in test.fault) if fault else test.fault == ""


def test_no_usable_answer_is_a_wrong_answer():
    test = ControlTest.of(controls("a", True, 3), [True, False, None])
    assert (test.asked, test.right) == (3, 1)
    assert ControlTest.of(controls("n", False, 2), [None, False]).right == 1
    assert (test + test).counts == (KindCount("a", True, 6, 2),)


def test_uncertain_controls_only_warn():
    (kind,) = ONLY_WARN
    test = ControlTest.of(controls(kind, False, 4), [True, True, True, False])
    assert test.fault == "" and "3 of 4" in test.warnings[0]


@pytest.mark.parametrize("always", [True, False, None])
def test_a_judge_that_always_says_the_same_fails(always):
    first = plant(found(), 100, "seed").first
    assert ControlTest.of(first, [always] * len(first)).fault


def test_a_coin_fails_and_a_careful_judge_passes():
    first = plant(found(), 100, "seed").first
    coin = [number % 2 == 0 for number, _ in enumerate(first)]
    assert ControlTest.of(first, coin).fault
    careful = [control.yes for control in first]
    careful[0] = None
    assert ControlTest.of(first, careful).fault == ""


def test_counts_of_two_rounds_are_added_by_kind_and_answer():
    one = ControlTest.counted([("a", True, True), ("near", False, True)])
    other = ControlTest.counted([("a", True, None), ("obey", False, False)])
    both = one + other
    assert {(each.kind, each.asked, each.right) for each in both.counts} == {
        ("a", 2, 1),
        ("near", 1, 0),
        ("obey", 1, 1),
    }
    assert (both.asked, both.right) == (4, 2)


def test_without_controls_there_is_no_share_and_no_fault():
    assert (ControlTest().share, ControlTest().fault, ControlTest().asked) == (None, "", 0)
