"""The sentences of a comparison say what its figures say, and warn where they mislead."""

from __future__ import annotations

from dataclasses import replace

from r2med.evaluation.comparison import verdicts
from r2med.evaluation.comparison.comparison import comparison
from support.records import collection, record, records

COMPARED = comparison(collection(records({"weak": 0.3, "strong": 0.5}, {"Biology": 40})), resamples=500)
PAIR = COMPARED.pairs[0]


def test_the_better_system_is_named_first_whatever_the_order_of_the_pair() -> None:
    turned = replace(PAIR, a="strong", b="weak", difference=-PAIR.difference, low=-PAIR.high, high=-PAIR.low)
    assert verdicts.verdict(PAIR).startswith("strong is better than weak: +")
    assert verdicts.verdict(turned) == verdicts.verdict(PAIR)
    assert verdicts.wins_and_losses(PAIR) == f"Wins {PAIR.losses}, ties {PAIR.ties}, losses {PAIR.wins}."


def test_what_is_not_significant_cannot_be_told_apart_and_many_pairs_are_in_view() -> None:
    text = verdicts.verdict(replace(PAIR, p=0.04, p_adjusted=0.12), pairs=3)
    assert "strong cannot be distinguished from weak" in text
    assert text.endswith("p = 0.040 (adjusted for 3 pairs = 0.120).")
    assert "95 % interval of this pair alone" in text


def test_one_pair_has_the_interval_of_its_test() -> None:
    text = verdicts.verdict(PAIR)
    assert "(95 % interval +" in text and "adjusted" not in text
    assert verdicts.pairs_tested(COMPARED) == ""


def test_tests_that_disagree_and_too_few_queries_are_warned_of() -> None:
    assert not list(verdicts.warnings(COMPARED))
    disputed = replace(COMPARED, pairs=(replace(PAIR, p=0.04, p_t=0.06),))
    assert "the tests disagree. Sign flips give p = 0.040, the t-test gives p = 0.060" in next(
        verdicts.warnings(disputed)
    )
    few = comparison(collection([record("a", "d", [1, 1, 1]), record("b", "d", [0, 0, 0])]))
    assert few.pairs[0].p == 0.25
    assert "3 queries are too few: with them, p cannot be below 0.25" in next(verdicts.warnings(few))


def test_points_have_signs_but_zero_has_none() -> None:
    assert [verdicts.signed(points) for points in (1.234, -0.5, -0.001)] == ["+1.23", "−0.50", "0.00"]
