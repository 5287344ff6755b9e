"""Rankings of systems by different measures."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.stats import kendalltau

from r2med.analysis.material import Material
from r2med.analysis.measure_rankings import measures
from r2med.evaluation.measure.scores import Floats
from r2med.evaluation.records.record import Record
from r2med.foundation.core.errors import UserError
from r2med.foundation.pages.estimate import Estimate
from r2med.foundation.pages.page import Section
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.store import Store
from support.records import record, write_records


def measured(system: str, values: dict[str, Floats], dataset: str = "Biology") -> Record:
    """Return a record with these values of each measure."""
    made = record(system, dataset, values["nDCG@10"].tolist())
    queries = {
        query: {measure: float(of[number]) for measure, of in values.items()}
        for number, query in enumerate(made.per_query)
    }
    means = {measure: float(np.mean(of)) for measure, of in values.items()}
    return made.model_copy(update={"per_query": queries, "mean": means})


def drawn(true: dict[str, dict[str, float]], queries: int, spread: float, digits: int = 3) -> list[Record]:
    """Return records of systems with about these means: system -> measure -> mean."""
    random = np.random.default_rng(0)
    made = []
    for system, each in true.items():
        noise = random.normal(0, spread, queries)
        made.append(measured(system, {m: np.clip(mean + noise, 0, 1).round(digits) for m, mean in each.items()}))
    return made


def analysed(made: list[Record], tmp_path: Path, store: Store) -> Section:
    return measures(Material(Runtime(store=store), results=write_records(made, tmp_path / "results")))


TRUE = {
    "early": {"nDCG@10": 0.5, "MRR": 0.8, "R@100": 0.3},
    "late": {"nDCG@10": 0.4, "MRR": 0.4, "R@100": 0.7},
    "poor": {"nDCG@10": 0.1, "MRR": 0.1, "R@100": 0.1},
}


def test_a_pair_that_changes_places_is_named_with_the_measures(tmp_path: Path, store: Store) -> None:
    section = analysed(drawn(TRUE, 40, 0.05), tmp_path, store)
    agreement, changes = section.tables
    assert [row[:2] for row in agreement.rows] == [["nDCG@10", "MRR"], ["nDCG@10", "R@100"], ["MRR", "R@100"]]
    assert [row[4:] for row in agreement.rows] == [[0, 0], [1, 1], [1, 1]]
    (row,) = changes.rows
    assert [*row[:2], *row[3:]] == ["early", "late", "nDCG@10, MRR", "R@100", "nDCG@10, MRR", "R@100"]
    assert row[2] == pytest.approx(10, abs=3)
    assert section.lead == (
        "With another measure than nDCG@10, 1 of 3 pairs of systems change places. Changes with significant "
        "differences by both measures: 1. The ranking by nDCG@10 differs most from that by R@100, with a "
        "Kendall τ of 0.33."
    )


def test_a_change_within_the_noise_is_not_significant(tmp_path: Path, store: Store) -> None:
    random = np.random.default_rng(1)
    near = {name: {"nDCG@10": random.random(15), "MRR": random.random(15)} for name in "abcde"}
    section = analysed([measured(name, each) for name, each in near.items()], tmp_path, store)
    assert {row[5:] == ["–", "–"] for row in map(list, section.tables[1].rows)} == {True}
    assert "Changes with significant differences by both measures: none." in section.lead


def test_tau_equals_that_of_scipy_for_thirty_systems_with_ties(tmp_path: Path, store: Store) -> None:
    random = np.random.default_rng(2)
    tables = {f"s{number}": random.random((2, 12)).round(0) for number in range(30)}
    made = [measured(name, {"nDCG@10": a, "P@1": b}) for name, (a, b) in tables.items()]
    tau = analysed(made, tmp_path, store).tables[0].rows[0][2]
    first, second = (np.array([each[side].sum() for each in tables.values()]) for side in (0, 1))
    assert isinstance(tau, Estimate)
    assert tau.value == pytest.approx(kendalltau(first, second).statistic)
    assert tau.bounds[0] <= tau.value <= tau.bounds[1]


def test_the_chosen_measure_is_compared_with_all_others(tmp_path: Path, store: Store) -> None:
    results = write_records(drawn(TRUE, 12, 0.05), tmp_path / "results")
    section = measures(Material(Runtime(store=store), results=results, measure="MRR"))
    assert [row[:2] for row in section.tables[0].rows][:2] == [["MRR", "nDCG@10"], ["MRR", "R@100"]]


def test_two_systems_and_few_queries_have_no_interval(tmp_path: Path, store: Store) -> None:
    two = {name: TRUE[name] for name in ("early", "late")}
    section = analysed(drawn(two, 6, 0.05), tmp_path, store)
    assert [row[2] for row in section.tables[0].rows] == [Estimate(1.0), Estimate(-1.0), Estimate(-1.0)]
    assert section.lead.startswith("With another measure than nDCG@10, the two systems change places.")
    assert section.notes == ["τ has no interval, because it needs 10 queries, and two of each dataset."]


def test_systems_that_are_all_tied_have_no_ranking(tmp_path: Path, store: Store) -> None:
    flat = {name: {"nDCG@10": 0.5, "MRR": 0.5} for name in "ab"}
    section = analysed(drawn(flat, 12, 0.0), tmp_path, store)
    assert section.tables[0].rows == [["nDCG@10", "MRR", None, None, 0, 0]]
    assert section.lead == "All systems are tied by nDCG@10 or by each of the other measures."


def test_a_dataset_that_a_system_lacks_is_left_out(tmp_path: Path, store: Store) -> None:
    extra = measured("early", {measure: np.full(5, 0.5) for measure in TRUE["early"]}, "PMC-Clinical")
    section = analysed([*drawn(TRUE, 12, 0.05), extra], tmp_path, store)
    assert section.notes == [f"PMC-Clinical is left out: {list(TRUE)[1]} was not run on it."]


def test_one_system_has_no_ranking(tmp_path: Path, store: Store) -> None:
    with pytest.raises(UserError, match="two systems"):
        analysed(drawn({"early": TRUE["early"]}, 12, 0.05), tmp_path, store)
