"""The gate: a limit below, inside or above the interval of new minus old."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from r2med.evaluation.comparison.comparing import ComparedWith, compared_records
from r2med.evaluation.comparison.comparison import comparison
from r2med.evaluation.comparison.gate import GateVerdict, gate_verdicts
from r2med.evaluation.measure.significance import Sample, SystemPairs
from r2med.evaluation.records.record import Record
from support.facts import error_states, states
from support.records import collection, record, records, write_records


def verdict(low: float | None, high: float | None) -> GateVerdict:
    return GateVerdict("new", "old", 1, 0.0 if low is None or high is None else (low + high) / 2, low, high)


@pytest.mark.parametrize(
    ("low", "high", "outcome"),
    [
        (-3.0, -1.5, "worse"),
        (-3.0, -1.0, "not decided"),
        (-1.5, 2.0, "not decided"),
        (-1.0, 2.0, "not decided"),
        (-0.9, 2.0, "passed"),
        (None, None, "not decided"),
    ],
)
def test_the_interval_decides_and_not_the_difference(low: float | None, high: float | None, outcome: str) -> None:
    made = verdict(low, high)
    assert made.outcome == outcome
    states(made, "new", "old", outcome, "1 point", "no interval" if low is None else "95 % interval")


def test_the_intervals_of_several_systems_hold_together() -> None:
    made = collection(records({"old": 0.5, "new": 0.3, "best": 0.7}, {"Biology": 60}))
    compared = comparison(made, baseline="old", worse_than=1)
    gate = {each.system: each for each in compared.gate}
    assert {name: each.outcome for name, each in gate.items()} == {"new": "worse", "best": "passed"}
    for pair in compared.pairs:
        each = gate[pair.a]
        assert None not in (each.low, each.high, pair.low, pair.high)
        assert each.low < pair.low < pair.high < each.high  # type: ignore[operator]
        states(each, "95 % interval for 2 systems together")
    [one] = comparison(
        collection(records({"old": 0.5, "new": 0.3}, {"Biology": 60})), baseline="old", worse_than=1
    ).gate
    assert "together" not in str(one)


def test_a_false_worse_among_many_equal_systems_is_rare() -> None:
    """Twenty equal systems, whose true loss is the limit: any of them is called worse in at most 5 % of samples."""
    random = np.random.default_rng(5)
    pairs, samples, false = SystemPairs.against(0, 21), 600, 0
    for _ in range(samples):
        rows = random.normal(50, 20, (21, 50))
        rows[1:] -= 1
        sample = Sample.whole({"": rows})
        verdicts = gate_verdicts([f"s{n}" for n in range(20)], "old", 1, sample, pairs)
        false += any(each.outcome == "worse" for each in verdicts)
    assert false / samples <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / samples)


def constant(queries: int, loss: float) -> list[str]:
    """Return the outcome for a system that loses the same on every query."""
    values = np.linspace(0.3, 0.9, queries)
    made = collection([record("old", "Biology", values.tolist()), record("new", "Biology", (values - loss).tolist())])
    return [each.outcome for each in comparison(made, baseline="old", resamples=50, worse_than=1).gate]


def test_an_equal_loss_on_every_query_decides_unless_the_queries_are_too_few() -> None:
    assert constant(20, 0.0) == ["passed"]
    assert constant(20, 0.02) == ["worse"]
    assert constant(4, 0.02) == ["not decided"]


def test_an_error_that_rises_is_a_loss() -> None:
    def gated(measure: str) -> GateVerdict:
        made = collection([errors(each) for each in records({"old": 0.2, "new": 0.6}, {"Biology": 60})])
        [verdict] = comparison(made, measure, baseline="old", worse_than=1).gate
        return verdict

    better, worse = gated("nDCG@10"), gated("brier")
    assert (better.outcome, worse.outcome) == ("passed", "worse")
    assert worse.difference == pytest.approx(-better.difference)


def errors(made: Record) -> Record:
    """Return a record whose Brier scores are its nDCG@10."""
    per_query = {query: {**each, "brier": each["nDCG@10"]} for query, each in made.per_query.items()}
    return made.model_copy(update={"mean": {**made.mean, "brier": made.mean["nDCG@10"]}, "per_query": per_query})


def test_a_gate_without_a_baseline_is_refused(tmp_path: Path) -> None:
    folder = write_records(records({"old": 0.5, "new": 0.3}, {"Biology": 10}), tmp_path)
    with error_states("worse_than", "baseline"):
        compared_records([], folder, [], [], ComparedWith(worse_than=1.0), 0.1)


def test_points_without_an_end_are_refused(tmp_path: Path) -> None:
    folder = write_records(records({"old": 0.5, "new": 0.3}, {"Biology": 10}), tmp_path)
    with error_states("worse_than", "points"):
        compared_records([], folder, [], [], ComparedWith(baseline="old", worse_than=float("inf")), 0.1)


def test_who_names_a_system_and_a_baseline_means_both(tmp_path: Path) -> None:
    folder = write_records(records({"old": 0.5, "new": 0.3, "other": 0.2}, {"Biology": 10}), tmp_path)
    made = compared_records(["new"], folder, [], [], ComparedWith(baseline="old"), 0.1)
    assert sorted(each.system for each in made.comparison.systems) == ["new", "old"]
