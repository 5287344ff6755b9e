"""How far figures can be trusted: gaps, numbers of queries, halves, other measures."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.stats import kendalltau

from r2med.analysis.material import Material
from r2med.analysis.reliability import (
    ALL,
    SPLITS,
    compared_pairs,
    finding,
    gap_table,
    halves_table,
    measures_table,
    reliability,
    without_settings,
)
from r2med.evaluation.measure.scores import Floats
from r2med.evaluation.measure.significance import SystemPairs
from r2med.evaluation.records.record import Record
from r2med.foundation.core.errors import UserError
from r2med.foundation.pages.cells import Estimate
from r2med.foundation.pages.page import Table
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.store import Store
from support.records import record, records, write_records


def drawn(systems: int, queries: int, seed: int = 0) -> Floats:
    random = np.random.default_rng(seed)
    return np.linspace(30, 50, systems)[:, None] + random.normal(0, 15, (systems, queries))


def material(made: list[Record], tmp_path: Path, store: Store) -> Material:
    return Material(Runtime(store=store), results=write_records(made, tmp_path / "results"))


def test_two_halves_agree_as_a_plain_computation_says() -> None:
    rows = drawn(5, 20)
    table = halves_table({"": rows})
    assert table is not None
    expected, alike = [], []
    for number in range(SPLITS):
        order = np.random.default_rng(number).permutation(20)
        first, second = rows[:, order[:10]].mean(axis=1), rows[:, order[10:]].mean(axis=1)
        expected.append(kendalltau(first, second).statistic)
        alike.append((expected[-1] + 1) / 2)  # without ties
    assert table.rows[-1][1:4] == [10, pytest.approx(np.mean(alike)), pytest.approx(np.mean(expected))]


def test_thirty_systems_on_two_datasets_are_shown_apart_and_together() -> None:
    values = {"a": drawn(30, 24, 1), "b": drawn(30, 12, 2)}
    pairs = SystemPairs.all(30)
    for table in (gap_table(values, pairs), halves_table(values)):
        assert table is not None
        assert list(dict.fromkeys(row[0] for row in table.rows)) == ["a", "b", ALL]
    assert gap_table(values, pairs) == gap_table(values, pairs)
    assert halves_table(values) == halves_table(values)


def test_a_plain_sentence_says_what_the_queries_can_show(tmp_path: Path, store: Store) -> None:
    made = records({"near": 0.4, "nearer": 0.42, "far": 0.8}, {"Biology": 40})
    said = finding(material(made, tmp_path, store))
    assert said.startswith("With 40 queries, differences below ")
    assert "points of nDCG@10 cannot be detected reliably." in said
    assert "Two halves of the queries order " in said


def test_a_gap_above_all_scores_is_not_given_as_a_number(tmp_path: Path, store: Store) -> None:
    made = [record("a", "Biology", [1.0, 0.0, 0.0]), record("b", "Biology", [0.0, 1.0, 1.0])]
    said = finding(material(made, tmp_path, store))
    assert said.startswith(
        "With 3 queries, differences of any size cannot be detected reliably. To detect 5 points between a and b"
    )


def test_systems_that_are_equal_on_all_queries_have_no_gap(tmp_path: Path, store: Store) -> None:
    values = np.random.default_rng(0).random(20).tolist()
    made = [record(name, "Biology", values) for name in "ab"]
    section = reliability(material(made, tmp_path, store))
    tables = {table.name: table for table in section.tables}
    assert tables["reliability-gap"].rows[0][2:] == [None, None, None, None]
    assert [row[3:] for row in tables["reliability-splits"].rows][-1] == [None]
    assert section.lead.startswith("Two halves of the queries order 100 % of the pairs of systems alike.")


def test_few_queries_have_no_halves_and_a_single_query_no_gap() -> None:
    assert halves_table({"": drawn(3, 4)}) is None
    assert gap_table({"": drawn(3, 1)}, SystemPairs.all(3)).rows[0][2:] == [None, None, None, None]


def test_a_half_run_system_removes_no_dataset_for_the_others(tmp_path: Path, store: Store) -> None:
    made = records({"a": 0.4, "b": 0.5, "c": 0.6}, {"Biology": 20, "PMC-Clinical": 20})[:-1]
    section = reliability(material(made, tmp_path, store))
    assert "c is left out: it was not run on PMC-Clinical." in section.notes
    assert {row[0] for row in section.tables[0].rows} >= {"Biology", "PMC-Clinical"}


def test_a_dataset_that_a_system_lacks_is_left_out(tmp_path: Path, store: Store) -> None:
    made = records({"a": 0.4, "b": 0.5}, {"Biology": 20, "PMC-Clinical": 20})[:-1]
    section = reliability(material(made, tmp_path, store))
    assert "PMC-Clinical is left out: b was not run on it." in section.notes
    assert {row[0] for row in section.tables[0].rows} == {"Biology"}


def test_the_number_of_queries_names_its_pair_and_its_range_and_leaves_variants_out(
    tmp_path: Path, store: Store
) -> None:
    random = np.random.default_rng(0)
    base = random.random(40)
    near = [base + 0.01 * random.random(40) for _ in range(4)]
    systems = {f"bm25(k1={number})": values for number, values in enumerate(near, 1)} | {"e5": random.random(40)}
    made = [record(name, "Biology", values.tolist()) for name, values in systems.items()]
    said = finding(material(made, tmp_path, store))
    assert "points between bm25(k1=" in said and " and e5, about " in said
    needed = int(
        said.partition(" and e5, about ")[2].partition(" queries are needed; over all 4 pairs")[0].replace(",", "")
    )
    assert needed > 100, "pairs of variants, which are nearly equal, would need a handful"
    assert SystemPairs.all(2).first.tolist() == compared_pairs(["bm25(k1=1)", "bm25(k1=2)"]).first.tolist()


@pytest.mark.parametrize(
    ("system", "plain"),
    [
        ("bm25(k1=2, scorer=lucene)", "bm25()"),
        ("e5:512", "e5()"),
        (
            "hyde(gpt4, n=3) → bm25+e5:512 → groupwise(o3-mini, size=10)@20",
            "hyde(gpt4) → bm25()+e5() → groupwise(o3-mini)",
        ),
        ("our best run!", "our best run!"),
    ],
)
def test_a_system_without_its_settings(system: str, plain: str) -> None:
    assert without_settings(system) == plain


def measured(system: str, values: dict[str, Floats], dataset: str = "Biology") -> Record:
    """Return a record with these values of each measure."""
    made = record(system, dataset, values["nDCG@10"].tolist())
    queries = {
        query: {measure: float(of[number]) for measure, of in values.items()}
        for number, query in enumerate(made.per_query)
    }
    means = {measure: float(np.mean(of)) for measure, of in values.items()}
    return made.model_copy(update={"per_query": queries, "mean": means})


def agreement(made: list[Record], tmp_path: Path, store: Store, measure: str = "nDCG@10") -> Table:
    results = write_records(made, tmp_path / "results")
    table = measures_table(Material(Runtime(store=store), results=results, measure=measure))
    assert table is not None
    return table


TRUE = {
    "early": {"nDCG@10": 0.5, "MRR": 0.8, "R@100": 0.3},
    "late": {"nDCG@10": 0.4, "MRR": 0.4, "R@100": 0.7},
    "poor": {"nDCG@10": 0.1, "MRR": 0.1, "R@100": 0.1},
}


def with_means(true: dict[str, dict[str, float]], queries: int, spread: float, digits: int = 3) -> list[Record]:
    """Return records of systems with about these means: system -> measure -> mean."""
    random = np.random.default_rng(0)
    made = []
    for system, each in true.items():
        noise = random.normal(0, spread, queries)
        made.append(measured(system, {m: np.clip(mean + noise, 0, 1).round(digits) for m, mean in each.items()}))
    return made


def test_the_rankings_by_two_measures_agree_as_far_as_their_pairs_of_systems(tmp_path: Path, store: Store) -> None:
    table = agreement(with_means(TRUE, 40, 0.05), tmp_path, store)
    assert [row[:2] for row in table.rows] == [["nDCG@10", "MRR"], ["nDCG@10", "R@100"], ["MRR", "R@100"]]
    assert [row[2].value for row in table.rows] == pytest.approx([1, 1 / 3, 1 / 3])


def test_tau_equals_that_of_scipy_for_thirty_systems_with_ties(tmp_path: Path, store: Store) -> None:
    random = np.random.default_rng(2)
    tables = {f"s{number}": random.random((2, 12)).round(0) for number in range(30)}
    made = [measured(name, {"nDCG@10": a, "P@1": b}) for name, (a, b) in tables.items()]
    tau = agreement(made, tmp_path, store).rows[0][2]
    first, second = (np.array([each[side].sum() for each in tables.values()]) for side in (0, 1))
    assert isinstance(tau, Estimate)
    assert tau.value == pytest.approx(kendalltau(first, second).statistic)
    assert tau.bounds[0] <= tau.value <= tau.bounds[1]


def test_the_chosen_measure_is_compared_with_all_others(tmp_path: Path, store: Store) -> None:
    rows = agreement(with_means(TRUE, 12, 0.05), tmp_path, store, "MRR").rows
    assert [row[:2] for row in rows][:2] == [["MRR", "nDCG@10"], ["MRR", "R@100"]]


def test_two_systems_and_few_queries_have_no_interval(tmp_path: Path, store: Store) -> None:
    made = with_means({name: TRUE[name] for name in ("early", "late")}, 6, 0.05)
    assert [row[2] for row in agreement(made, tmp_path, store).rows] == [Estimate(1.0), Estimate(-1.0), Estimate(-1.0)]
    notes = reliability(material(made, tmp_path, store)).notes
    assert "τ has no interval, because it needs 10 queries, and two of each dataset." in notes


def test_systems_that_are_all_tied_have_no_tau(tmp_path: Path, store: Store) -> None:
    made = with_means({name: {"nDCG@10": 0.5, "MRR": 0.5} for name in "ab"}, 12, 0.0)
    assert agreement(made, tmp_path, store).rows == [["nDCG@10", "MRR", None]]


def test_one_system_has_no_ranking(tmp_path: Path, store: Store) -> None:
    with pytest.raises(UserError, match="two systems"):
        reliability(material(records({"alone": 0.5}, {"Biology": 5}), tmp_path, store))
