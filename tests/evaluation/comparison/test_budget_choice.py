"""The best system within a budget: which one, which do not differ from it, and what a better one costs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from r2med.evaluation.comparison.budget_choice import BudgetChoice, CostLimit, PricedSystem, budget_choice
from r2med.evaluation.comparison.comparing import ComparedWith, compared_records
from r2med.evaluation.comparison.gaps import Gap
from r2med.evaluation.records.query_costs import QueryCost, query_cost
from r2med.foundation.core.cost import Cost
from support.facts import each_states, error_states, some_states
from support.records import record, records, write_records

SYSTEMS = {"free": (30.0, 0.0), "cheap": (40.0, 0.01), "near": (39.5, 0.005), "dear": (41.0, 0.1), "best": (50.0, 0.3)}


def choose(most: float, lower_is_better: bool = False, **more: tuple[float, float | None]) -> BudgetChoice:
    known: dict[str, tuple[float, float | None]] = {**SYSTEMS, **more}

    def tests(leader: str, others: Sequence[str]) -> dict[str, Gap]:
        moved = {name: known[name][0] - known[leader][0] for name in others}
        return {name: Gap(gap, None, None, p := 0.01 if abs(gap) > 5 else 1.0, p) for name, gap in moved.items()}

    priced = [PricedSystem(name, *values) for name, values in known.items()]
    return budget_choice(CostLimit("dollars", most), priced, tests, lower_is_better)


def names(choice: BudgetChoice) -> tuple[str, list[str], str]:
    return (
        choice.best.system if choice.best else "",
        [each.system for each in choice.equal],
        choice.better.system if choice.better else "",
    )


def test_the_best_within_the_budget_with_its_equals_and_the_cheapest_that_is_significantly_better() -> None:
    assert names(choose(0.01)) == ("cheap", ["near"], "best")
    assert names(choose(0.0)) == ("free", [], "near")
    assert names(choose(1.0)) == ("best", [], "")
    choice = choose(0.01, lost=(90.0, None))
    assert choice.unpriced == ("lost",)
    each_states(
        choice.sentences("nDCG@10"),
        ("cheap", "$0.01", "40.0", "nDCG@10"),
        ("Not significantly different", "near", "$0.005"),
        ("Significantly better", "best", "$0.30", "+10.00 points"),
        ("lost", "not known"),
    )


def test_where_lower_is_better_the_lowest_is_the_best() -> None:
    assert names(choose(0.01, lower_is_better=True)) == ("free", [], "")


def test_with_nothing_in_the_budget_the_cheapest_is_named() -> None:
    choice = budget_choice(CostLimit("p95", 0.1), [PricedSystem("a", 1.0, 3.0), PricedSystem("b", 2.0, 2.0)], dict)  # type: ignore[arg-type]
    assert choice.best is None
    some_states(choice.sentences("MRR"), "b", "p95 2 s")


@pytest.mark.parametrize("typed", ["euros=1", "dollars", "dollars=much", "dollars=-1", "p95=inf"])
def test_a_budget_that_cannot_be_read_is_one_line(typed: str) -> None:
    with error_states("dollars=0.01"):
        CostLimit.parse(typed)


def test_compare_tests_the_records_and_takes_their_prices(tmp_path: Path) -> None:
    folder = write_records(records({"a": 0.3, "b": 0.31, "c": 0.6}, {"Biology": 60}), tmp_path)
    wanted = ComparedWith(at=CostLimit.parse("dollars=0.002"), resamples=500)
    choice = compared_records([], folder, [], [], wanted, 0.1).comparison.choice
    assert choice is not None
    assert names(choice) == ("a", ["b"], "c")
    assert choice.gain is not None and choice.gain.significant and choice.gain.difference > 20


def test_the_price_of_a_system_is_the_mean_of_its_repeats(tmp_path: Path) -> None:
    made = [record("a(x)", "Biology", [0.5] * 30, seconds=each, repeat=n) for n, each in enumerate((1.0, 2.0, 6.0))]
    folder = write_records([*made, *records({"b": 0.1}, {"Biology": 30})], tmp_path)
    wanted = ComparedWith(at=CostLimit.parse("p95=10"), resamples=99)
    choice = compared_records([], folder, [], [], wanted, 0.1).comparison.choice
    assert choice is not None and choice.best is not None and choice.best.price == pytest.approx(3.0)


def test_one_token_is_in_the_singular() -> None:
    limit = CostLimit.parse("tokens=1")
    assert (limit.shown(1), limit.shown(2)) == ("1 token per query", "2 tokens per query")


def test_the_cost_of_a_query_is_that_of_all_stages_and_unknown_if_a_record_knows_none() -> None:
    one, other = record("a", "Biology", [0.5] * 10, seconds=2.0), record("a", "PMC-Clinical", [0.5] * 30, seconds=1.0)
    cost = query_cost([one, other])
    assert (cost.dollars, cost.tokens, cost.seconds, cost.p95) == pytest.approx((0.3 / 40, 0, 1.25, 2.0))
    again = [record("a", "Biology", [0.5] * 10, seconds=each, repeat=n) for n, each in enumerate((2.0, 3.0, 4.0))]
    mean = query_cost([*again, other])
    assert (mean.dollars, mean.seconds, mean.p95) == pytest.approx((0.4 / 40, 1.5, 3.0)), "of the repeats"
    unpriced = again[2].stages[0].model_copy(update={"cost": Cost(unpriced=1)})
    assert query_cost([*again[:2], again[2].model_copy(update={"stages": (unpriced,)})]).dollars is None
    lost = one.model_copy(update={"settings": {"expand": {"stage": "hyde", "source": "recorded"}}})
    assert query_cost([lost, other]) == query_cost([]) == QueryCost()
