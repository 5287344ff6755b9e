"""The chance of runs is estimated beside that of queries, and left out where nothing is known about it."""

from __future__ import annotations

import runpy
import warnings
from pathlib import Path

import numpy as np
import pytest

from r2med.evaluation.measure.intervals import difference_intervals, mean_intervals
from r2med.evaluation.measure.run_variance import SingleRuns, run_spread
from r2med.evaluation.measure.scores import Floats
from r2med.evaluation.measure.significance import Sample, SystemPairs, Values, paired_t, sign_flips
from r2med.evaluation.measure.slices import Slice

PAIRS = SystemPairs.all(2)


def table(runs: int, queries: int = 30, *, shift: float = 0.0, noise: float = 0.0, seed: int = 0) -> Floats:
    """Return runs × queries of one system, in points."""
    random = np.random.default_rng([seed, runs, queries])
    hardness = np.random.default_rng(queries).normal(0, 12, queries)
    found = 40 + hardness + shift * random.normal(size=(runs, 1)) + noise * random.normal(size=(runs, queries))
    return np.clip(found, 0, 100)


def averaged(single: SingleRuns) -> Values:
    return {name: np.array([each.mean(axis=0) for each in tables]) for name, tables in single.tables.items()}


def test_one_or_two_runs_and_deterministic_systems_keep_every_number() -> None:
    tables = [table(1), table(2, shift=5, noise=5), table(5, shift=5, noise=5)]
    single = SingleRuns({"x": tables, "y": [each[:, :9] for each in tables]}, (True, True, False))
    values, spread, pairs = averaged(single), run_spread(single), SystemPairs.all(3)
    np.testing.assert_array_equal(mean_intervals(values, spread=spread), mean_intervals(values))
    np.testing.assert_array_equal(difference_intervals(values, pairs, spread), difference_intervals(values, pairs))
    for known, plain in ((paired_t(values, pairs, spread), paired_t(values, pairs)),):
        np.testing.assert_array_equal([known.p, known.detectable], [plain.p, plain.detectable])
    np.testing.assert_array_equal(
        *(sign_flips([Sample.whole(values, each)], pairs, 99)[0].p_adjusted for each in (spread, None))
    )


def test_runs_that_are_all_equal_say_what_one_run_says() -> None:
    once, often = table(1), np.repeat(table(1), 4, axis=0)
    spread = run_spread(SingleRuns({"": [often]}, (True,)))
    np.testing.assert_allclose(
        mean_intervals({"": often.mean(axis=0)[None]}, spread=spread), mean_intervals({"": once})
    )
    assert (spread.between.tolist(), spread.within.tolist()) == ([0.0], [0.0])


def test_a_shift_of_runs_widens_intervals_and_weakens_tests() -> None:
    tables = [table(4, shift=6, noise=3) + 9, table(4, shift=6, noise=3, seed=1)]
    single = SingleRuns({"": tables}, (True, True))
    values, spread = averaged(single), run_spread(single)
    wider, plain = (np.diff(mean_intervals(values, spread=each), axis=0)[0] for each in (spread, None))
    assert (wider > plain).all()
    assert np.diff(difference_intervals(values, PAIRS, spread), axis=0) > np.diff(
        difference_intervals(values, PAIRS), axis=0
    )
    assert paired_t(values, PAIRS, spread).p > paired_t(values, PAIRS).p
    flips, plain_flips = (sign_flips([Sample.whole(values, each)], PAIRS, 9999)[0].p for each in (spread, None))
    assert flips > plain_flips
    assert flips == pytest.approx(paired_t(values, PAIRS, spread).p, rel=0.25)
    assert (spread.shift > 0).all()


def test_a_shift_that_datasets_share_counts_as_one() -> None:
    runs = 10 * np.array([-1.0, 0.0, 1.0])[:, None]
    plain = [np.random.default_rng(number).normal(50, 9, (1, 20)) for number in range(4)]
    spread = run_spread(SingleRuns({str(n): [each + runs] for n, each in enumerate(plain)}, (True,)))
    # The scores of the three runs are 10 points apart whatever the number of datasets: 10² / 3.
    assert spread.between[0] == pytest.approx(100 / 3)
    assert spread.within[0] == pytest.approx(0.0, abs=1e-9)


def test_datasets_with_different_numbers_of_runs_use_the_runs_that_all_have() -> None:
    whole = table(5, shift=4, noise=4)
    ragged = run_spread(SingleRuns({"x": [whole], "y": [whole[:3]]}, (True,)))
    cut = run_spread(SingleRuns({"x": [whole[:3]], "y": [whole[:3]]}, (True,)))
    assert (ragged.runs[0], ragged.between[0], ragged.within[0]) == (3, cut.between[0], cut.within[0])


def test_a_slice_has_the_runs_of_its_queries() -> None:
    single = SingleRuns({"x": [table(4, 6, noise=3)], "y": [table(3, 8, noise=3)]}, (True,))
    some = Slice("body-system", "heart", {"x": np.array([0, 2]), "y": np.array([1, 3, 5])})
    [cut] = some.cut_runs(single).tables["heart"]
    np.testing.assert_array_equal(cut[:, :2], single.tables["x"][0][:3][:, [0, 2]])
    assert cut.shape == (3, 5)


def test_both_parts_of_the_variance_are_those_of_a_mixed_model() -> None:
    """A balanced table has the same estimates by mean squares and by restricted maximum likelihood."""
    pytest.importorskip("statsmodels", reason="statsmodels is not installed")
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    from statsmodels.regression.mixed_linear_model import MixedLM

    runs, queries = 6, 40
    values = table(runs, queries, shift=4, noise=5)
    long = pandas.DataFrame(
        [(values[r, q], r, q, 0) for r in range(runs) for q in range(queries)], columns=["y", "run", "query", "all"]
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = MixedLM.from_formula(
            "y ~ 1", groups="all", re_formula="0", vc_formula={"run": "0 + C(run)", "query": "0 + C(query)"}, data=long
        ).fit(reml=True)
    variances = dict(zip(found.model.exog_vc.names, found.vcomp, strict=True))
    from_queries = variances["query"] / queries
    from_runs = variances["run"] / runs + found.scale / (runs * queries)
    single = SingleRuns({"": [values]}, (True,))
    spread, by_queries = run_spread(single), values.mean(axis=0).var(ddof=1) / queries
    assert by_queries - spread.within[0] == pytest.approx(from_queries, rel=1e-3)
    assert spread.within[0] + spread.shift[0] == pytest.approx(from_runs, rel=1e-3)


@pytest.mark.slow
def test_intervals_and_tests_with_runs_keep_their_level_on_a_part_of_the_grid() -> None:
    """`benchmarks/repeats.py` computes the whole grid."""
    script = runpy.run_path(str(Path(__file__).parents[3] / "benchmarks" / "repeats.py"))
    cells = [
        cell
        for form in ("normal", "bounded")
        for shift in script["SHIFTS"].values()
        for cell in script["grid"](form, shift)
        if cell.queries in (10, 100) and cell.repeats in (1, 3, 5) and cell.noise in (0.1, 1.0)
    ]
    covered = [script["mean_coverage"](cell)[0] for cell in cells]
    assert np.mean(covered) >= 0.93
    assert min(covered) >= 0.88
    false = [script["false_positives"](cell, cell)[0] for cell in cells]
    assert np.mean(false) <= 0.06
    assert max(false) <= 0.09
