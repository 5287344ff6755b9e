"""The cost of a query: that of all stages, means over repeats, and unknown where a record knows none."""

from __future__ import annotations

import pytest

from r2med.evaluation.records.query_costs import QueryCost, query_cost
from r2med.foundation.core.cost import Cost
from support.records import record


def test_the_cost_of_a_query_is_that_of_all_stages_and_unknown_if_a_record_knows_none() -> None:
    one, other = record("a", "Biology", [0.5] * 10, seconds=2.0), record("a", "PMC-Clinical", [0.5] * 30, seconds=1.0)
    cost = query_cost([one, other])
    assert (cost.dollars, cost.tokens, cost.seconds) == pytest.approx((0.3 / 40, 0, 1.25))
    again = [record("a", "Biology", [0.5] * 10, seconds=each, repeat=n) for n, each in enumerate((2.0, 3.0, 4.0))]
    mean = query_cost([*again, other])
    assert (mean.dollars, mean.seconds) == pytest.approx((0.4 / 40, 1.5)), "of the repeats"
    unpriced = again[2].stages[0].model_copy(update={"cost": Cost(unpriced=1)})
    assert query_cost([*again[:2], again[2].model_copy(update={"stages": (unpriced,)})]).dollars is None
    lost = one.model_copy(update={"settings": {"expand": {"stage": "hyde", "source": "recorded"}}})
    assert query_cost([lost, other]) == query_cost([]) == QueryCost()
