"""Planted controls: how many of each kind are asked, and which judges pass them."""

import pytest

from r2med.assessment.panels.planted_controls import (
    FEWEST_CONTROLS,
    ONLY_WARN,
    UNTESTED,
    Control,
    ControlTest,
    KindCount,
    can_test,
    plant,
)
from r2med.assessment.rubrics.item import Item


def controls(kind, yes, count):
    return [Control(Item((kind, str(n)), {"text": f"{kind} {n}"}), kind, yes) for n in range(count)]


def found(yes=200, near=200, orders=200):
    return {
        "a": controls("a", True, yes),
        "near": controls("near", False, near),
        "obey": controls("obey", False, orders),
    }


@pytest.mark.parametrize(("yes", "asked"), [(200, 80), (30, 60), (10, 20), (9, 18), (0, 0)])
def test_half_of_the_controls_are_to_be_answered_yes_and_their_order_is_always_the_same(yes, asked):
    planted = plant(found(yes), "seed")
    assert len(planted) == asked
    assert can_test(planted) == (asked >= FEWEST_CONTROLS)
    assert 2 * sum(each.yes for each in planted) == asked
    assert planted == plant(found(yes), "seed")


def test_controls_to_be_answered_yes_do_not_stand_together():
    signs = [each.yes for each in plant(found(), "seed")]
    assert any(signs[:40]) and any(signs[40:])


def test_kinds_of_one_answer_are_equally_many():
    planted = plant(found(), "seed")
    assert [sum(each.kind == kind for each in planted) for kind in ("a", "near", "obey")] == [40, 20, 20]


def test_ten_controls_that_only_warn_are_asked_too_and_test_nobody():
    (kind,) = ONLY_WARN
    planted = plant({kind: controls(kind, False, 40)}, "seed")
    assert len(planted) == 10 and not can_test(controls(kind, False, 40))


@pytest.mark.parametrize(
    ("counts", "fault"),
    [
        ([("a", True, 20, 20), ("near", False, 20, 20)], ""),
        ([("a", True, 20, 17), ("near", False, 20, 15)], ""),
        ([("a", True, 20, 16), ("near", False, 20, 15)], "31 of 40"),
        ([("a", True, 20, 20), ("near", False, 10, 10), ("obey", False, 10, 4)], "6 of 10 controls that are obey"),
        ([("a", True, 20, 20), ("near", False, 20, 0)], "20 of 20 controls that are near"),
        ([("a", True, 10, 10)], ""),
        ([("a", True, 7, 0)], ""),
        ([("a", True, 9, 9), ("near", False, 10, 4)], "6 of 10 controls that are near"),
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


def test_uncertain_controls_only_warn():
    (kind,) = ONLY_WARN
    test = ControlTest.of(controls(kind, False, 4), [True, True, True, False])
    assert test.fault == "" and "3 of 4" in test.warnings[0]


@pytest.mark.parametrize("always", [True, False, None])
def test_a_judge_that_always_says_the_same_fails(always):
    first = plant(found(), "seed")
    assert ControlTest.of(first, [always] * len(first)).fault


def test_a_coin_fails_and_a_careful_judge_passes():
    first = plant(found(), "seed")
    coin = [number % 2 == 0 for number, _ in enumerate(first)]
    assert ControlTest.of(first, coin).fault
    careful = [control.yes for control in first]
    careful[0] = None
    assert ControlTest.of(first, careful).fault == ""


def test_without_controls_there_is_no_share_and_no_fault():
    assert (ControlTest().share, ControlTest().fault, ControlTest().asked) == (None, "", 0)
    assert ControlTest().trust == UNTESTED
