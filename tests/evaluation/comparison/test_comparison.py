"""`compare`: figures with intervals, pairs with verdicts, slices."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import r2med
from r2med.evaluation.comparison import verdicts
from r2med.evaluation.comparison.comparison import Comparison, comparison
from r2med.evaluation.comparison.standings import intervals
from r2med.evaluation.comparison.verdicts import detectable
from r2med.evaluation.records.stored_records import RecordCollection
from r2med.foundation.core.errors import UserError
from support.facts import states
from support.records import collection, record, records, write_records

DATASETS = {"Biology": 40, "PMC-Clinical": 25}
MADE = records({"weak": 0.3, "twin": 0.3, "strong": 0.5}, DATASETS)


def test_a_real_difference_is_told_from_noise() -> None:
    compared = comparison(collection(MADE), resamples=1000)
    assert [standing.system for standing in compared.systems] == ["weak", "twin", "strong"]
    found = {(pair.a, pair.b): pair.significant for pair in compared.pairs}
    assert found == {("weak", "twin"): False, ("weak", "strong"): True, ("twin", "strong"): True}
    pair = compared.pairs[1]
    assert pair.low is not None and pair.high is not None
    assert pair.low < pair.difference < pair.high < 0
    assert pair.wins + pair.ties + pair.losses == 65
    assert pair.difference == pytest.approx(np.mean([gap.difference for gap in pair.datasets.values()]))
    means = {(each.system, each.dataset.name): 100 * each.mean["nDCG@10"] for each in MADE}
    assert pair.datasets["Biology"].difference == pytest.approx(means["weak", "Biology"] - means["strong", "Biology"])
    assert compared.detectable_gap is not None and 1 < compared.detectable_gap < 10


def test_a_system_is_found_however_its_arrow_is_typed(tmp_path: Path) -> None:
    made = records({"bm25": 0.3, "rm3 → bm25": 0.5}, DATASETS)
    results = write_records(made, tmp_path / "results")
    compared = r2med.compare("bm25", "rm3->bm25", results=results, baseline="rm3 -> bm25", resamples=10)
    assert compared.baseline == "rm3 → bm25"
    assert [standing.system for standing in compared.systems] == ["bm25", "rm3 → bm25"]


def test_json_has_the_promised_shape_in_points() -> None:
    compared = comparison(collection(MADE), resamples=200)
    content = json.loads(json.dumps(compared.as_json(), allow_nan=False))
    assert content["systems"] == ["weak", "twin", "strong"]
    assert isinstance(content["detectable_gap"], float)
    for pair in content["pairs"]:
        assert {"a", "b", "difference", "low", "high", "p", "p_adjusted", "wins", "ties", "losses"} <= set(pair)
        assert set(pair["datasets"]) == set(DATASETS)
        for gap in pair["datasets"].values():
            assert {"difference", "low", "high", "p"} <= set(gap)
    assert content["pairs"][1]["difference"] < -10


def test_a_baseline_is_compared_with_each_other_system() -> None:
    compared = comparison(collection(MADE), baseline="weak", resamples=999)
    assert [(pair.a, pair.b) for pair in compared.pairs] == [("twin", "weak"), ("strong", "weak")]
    assert (compared.tested, compared.pairs[1].p, compared.pairs[1].p_adjusted) == (2, 0.001, 0.001)
    with pytest.raises(UserError, match="did you mean weak"):
        comparison(collection(MADE), baseline="weka")


def close(seed: int) -> RecordCollection:
    """Return ten systems whose differences are near the limit of what the queries can show."""
    random = np.random.default_rng(seed)
    hard = random.normal(0.5, 0.1, 40)
    rows = hard + random.normal(0, 0.08, (10, 40)) + 0.012 * np.arange(10)[:, None]
    return collection([record(f"s{n}", "x", row.tolist()) for n, row in enumerate(np.clip(rows, 0, 1))])


def p_of(compared: Comparison) -> dict[frozenset[str], float]:
    return {frozenset({pair.a, pair.b}): pair.p_adjusted for pair in compared.pairs}


@pytest.mark.parametrize("seed", [36, 51, 1, 2])
def test_a_pair_that_differs_among_all_pairs_differs_among_those_with_the_baseline(seed: int) -> None:
    """With the seeds 36 and 51, a pair differed among all pairs by max-T, and not with a baseline by Holm."""
    made = close(seed)
    of_all = p_of(comparison(made, resamples=999))
    for baseline in made.systems:
        compared = comparison(made, baseline=baseline, resamples=999)
        assert all(p <= of_all[pair] for pair, p in p_of(compared).items())


@pytest.mark.parametrize("seed", [36, 1])
def test_a_baseline_that_is_the_best_system_is_tested_among_all_pairs(seed: int) -> None:
    made = close(seed)
    of_all = comparison(made, resamples=999)
    for standing in of_all.ranked:
        compared = comparison(made, baseline=standing.system, resamples=999)
        if standing == of_all.ranked[0]:
            assert compared.tested == 45
            assert p_of(compared) == {pair: p for pair, p in p_of(of_all).items() if standing.system in pair}
        else:
            assert compared.tested == 9


def test_a_best_baseline_that_a_lock_names_is_tested_with_its_own_pairs() -> None:
    made = close(1)
    best = comparison(made, resamples=99).ranked[0].system
    late, early = (comparison(made, baseline=best, resamples=2000, is_locked=locked) for locked in (False, True))
    assert (late.tested, early.tested) == (45, 9)
    states(verdicts.pairs_tested(late), best, "no lock", "all 45 pairs")
    states(verdicts.pairs_tested(early), "9 pairs")
    assert sum(p_of(early).values()) < sum(p_of(late).values())


def test_the_same_inputs_give_the_same_bytes() -> None:
    once, again = (comparison(collection(MADE), slice_by=["length"], resamples=300).as_json() for _ in range(2))
    assert json.dumps(once) == json.dumps(again)
    assert once != comparison(collection(MADE), slice_by=["length"], resamples=300, seed=1).as_json()


def test_slices_are_adjusted_together() -> None:
    compared = comparison(collection(MADE), baseline="weak", slice_by=["task", "body-system"], resamples=999)
    labels = list(dict.fromkeys(each.label for each in compared.slices))
    assert labels == ["Q&A reference", "clinical case", "Cardiovascular", "Digestive", "Nervous"]
    strong = [each for each in compared.slices if each.a == "strong"]
    assert all(each.significant and each.difference > 10 for each in strong)
    assert not any(each.significant for each in compared.slices if each.a == "twin")
    assert strong[0].difference == pytest.approx(compared.pairs[1].datasets["Biology"].difference)


def test_a_half_run_system_is_left_out_and_removes_no_dataset_for_the_others() -> None:
    compared = comparison(collection(MADE[:-1]), resamples=50)
    assert compared.datasets == ["Biology", "PMC-Clinical"]
    assert [each.system for each in compared.systems] == ["weak", "twin"]
    assert compared.notices == ("strong is left out: it was not run on PMC-Clinical",)
    with pytest.raises(UserError, match="no dataset has records of both"):
        comparison(collection([record("a", "x", [1, 0]), record("b", "y", [1, 0])]))


def test_named_systems_are_all_compared_on_the_datasets_that_they_share() -> None:
    compared = comparison(collection(MADE[:-1]), resamples=50, keep_systems=True)
    assert compared.datasets == ["Biology"]
    assert len(compared.systems) == 3
    assert compared.notices == ("PMC-Clinical is left out: strong was not run on it",)


@pytest.mark.parametrize("keep_systems", [True, False])
def test_datasets_that_one_system_lacks_are_one_notice(keep_systems: bool) -> None:
    made = [record("a", name, [1, 0]) for name in ("x", "y", "z")]
    made += [record("b", name, [0, 1]) for name in ("x", "y", "z")] + [record("c", "x", [1, 1])]
    compared = comparison(collection(made), baseline="c", resamples=10, keep_systems=keep_systems)
    assert compared.datasets == ["x"]
    assert [notice for notice in compared.notices if "left out" in notice] == [
        "y, z are left out: c was not run on them"
    ]


def test_the_baseline_is_in_the_group_that_is_compared() -> None:
    compared = comparison(collection(MADE[:-1]), baseline="strong", resamples=50)
    assert compared.datasets == ["Biology"]
    assert len(compared.systems) == 3


def test_systems_on_different_sets_never_stop_a_comparison() -> None:
    """Two systems share each pair of neighbouring sets, and one was run on a set of its own."""
    few, many = [1, 0], [1, 0, 1, 0]
    made = [
        *(record(system, "x", few) for system in ("a", "b")),
        *(record(system, "y", many) for system in ("b", "c")),
        record("d", "z", few),
    ]
    compared = comparison(collection(made), resamples=10)
    assert compared.datasets == ["y"]
    assert [each.system for each in compared.systems] == ["b", "c"]
    assert compared.notices == (
        "a, d are left out: they were not run on y",
        "x is left out: c was not run on it",
        "z is left out: b was not run on it",
    )


def test_a_group_of_datasets_with_more_systems_is_preferred_and_the_demo_is_not() -> None:
    made = [record(system, "demo/Biology", [1, 0]) for system in "abc"]
    made += [record(system, "Biology", [1, 0]) for system in "ab"]
    compared = comparison(collection(made), resamples=10)
    assert compared.datasets == ["Biology"]
    assert compared.notices[0] == "c is left out: it was not run on Biology"
    made += [record(system, "mine", [1, 0]) for system in "abc"]
    assert comparison(collection(made), resamples=10).datasets == ["mine"]


def test_one_system_is_too_few_and_equal_ones_have_nothing_to_detect() -> None:
    with pytest.raises(UserError, match="a comparison needs two systems"):
        comparison(collection([record("a", "x", [1, 0])]))
    equal = comparison(collection([record("a", "x", [1, 0]), record("b", "x", [1, 0])]), resamples=10)
    assert equal.detectable_gap is None
    assert equal.pairs[0].p == 1


def test_a_dataset_of_one_query_has_no_t_test() -> None:
    compared = comparison(collection([record("a", "x", [1]), record("b", "x", [0])]), resamples=10)
    assert compared.pairs[0].p_t is None
    assert compared.detectable_gap is None


def test_intervals_hold_the_means_and_a_system_that_lacks_a_dataset_has_no_average() -> None:
    standings = intervals(collection(MADE[:-1]))
    assert standings["strong"].mean is None
    assert list(standings["strong"].datasets) == ["Biology"]
    mean = standings["weak"].mean
    assert mean is not None and mean.bounds[0] < mean.value < mean.bounds[1]
    assert mean.value == pytest.approx(50 * sum(e.mean["nDCG@10"] for e in MADE if e.system == "weak"))


def test_the_sentence_on_the_detectable_gap_names_its_pair() -> None:
    compared = comparison(collection(MADE), resamples=99)
    assert compared.detectable_pair is not None
    line = detectable(compared)
    assert " and ".join(compared.detectable_pair) in line and "3 pairs" in line
    two = comparison(collection([each for each in MADE if each.system != "twin"]), resamples=99)
    assert two.detectable_pair == ("weak", "strong")
    assert f"{two.detectable_gap:.1f} points between weak and strong cannot" in detectable(two)


def test_groups_of_datasets_are_never_averaged_together() -> None:
    sizes = {"Biology": 40, "SciFact": 30, "NFCorpus": 20, "mine": 10}
    made = records({"weak": 0.3, "strong": 0.5}, sizes)
    compared = comparison(collection(made), resamples=50)
    assert compared.datasets == ["Biology"]
    assert compared.notices == (
        "medical is left out, because groups are not averaged together: choose it by data (--data medical)",
        "own data is left out, because groups are not averaged together: choose it by data (--data mine)",
    )
    medical = comparison(collection(made), resamples=50, data=["medical"])
    assert (medical.datasets, medical.notices) == (["NFCorpus", "SciFact"], ())
    with pytest.raises(UserError, match=r"together \(R2MED: Biology; medical: SciFact\): compare one at a time"):
        comparison(collection(made), data=["Biology", "SciFact"])


def test_a_dataset_may_be_named_by_its_folder(tmp_path: Path) -> None:
    made = records({"weak": 0.3, "strong": 0.5}, {"mine": 10, "own/SciFact": 10})
    for name, known in (("mine", "mine"), ("SciFact", "own/SciFact")):
        (tmp_path / name).mkdir()
        assert comparison(collection(made), resamples=50, data=[str(tmp_path / name)]).datasets == [known]


def test_the_demo_is_never_mixed_with_other_data() -> None:
    made = records({"weak": 0.3, "strong": 0.5}, {"demo/Biology": 8, "Biology": 40})
    compared = comparison(collection(made), resamples=50)
    assert compared.datasets == ["Biology"]
    assert "the demo is left out" in compared.notices[0] and "data (--data demo)" in compared.notices[0]
    assert comparison(collection(made), resamples=50, data=["demo"]).datasets == ["demo/Biology"]
    with pytest.raises(UserError, match="not averaged together"):
        comparison(collection(made), resamples=50, data=["demo", "Biology"])
    with pytest.raises(UserError, match="did you mean Biology"):
        comparison(collection(made), data=["Biolgy"])


def test_p_values_on_single_datasets_are_one_family_and_those_on_slices_another() -> None:
    compared = comparison(collection(MADE), slice_by=["task"], resamples=999)
    # A slice by task is a dataset here, and the queries are flipped in the same way.
    by_label = {"Q&A reference": "Biology", "clinical case": "PMC-Clinical"}
    on_datasets = {(pair.a, pair.b, name): gap for pair in compared.pairs for name, gap in pair.datasets.items()}
    assert [each.p_adjusted for each in compared.slices] == [
        on_datasets[each.a, each.b, by_label[each.label]].p_adjusted for each in compared.slices
    ]
    for pair in compared.pairs:
        alone = comparison(collection(MADE), data=["Biology"], resamples=999)
        [same] = [each for each in alone.pairs if (each.a, each.b) == (pair.a, pair.b)]
        assert same.p_adjusted <= pair.datasets["Biology"].p_adjusted, "fewer tests never give a larger p"


def test_python_compares_names_of_systems_in_a_folder(tmp_path: Path) -> None:
    out = write_records(MADE, tmp_path / "results")
    compared = r2med.compare("strong", "weak", results=out, measure="ndcg@10", resamples=99)
    assert [(pair.a, pair.b) for pair in compared.pairs] == [("strong", "weak")]
    assert compared.pairs[0].difference > 10
