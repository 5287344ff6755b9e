"""`analyse reliability` says how many runs and queries a gap between varying systems needs."""

from __future__ import annotations

import numpy as np
import pytest

from r2med.analysis.repeats_needed import REPEATS, repeats_table
from r2med.evaluation.comparison.standings import points, single_runs
from r2med.evaluation.measure.repeat_plan import RepeatPlan
from r2med.evaluation.measure.run_variance import SingleRuns, run_spread
from r2med.evaluation.measure.significance import ALPHA, SystemPairs, paired_t
from support.records import collection, repeated

DATASETS = {"Biology": 40, "PMC-Clinical": 30}
PAIRS = SystemPairs.all(2)


def plan_of(systems: dict[str, tuple[float, int]], **spread: float) -> RepeatPlan | None:
    read = collection(repeated(systems, DATASETS, **spread))
    return RepeatPlan.of(points(read), PAIRS, run_spread(single_runs(read)))


def test_more_runs_and_more_queries_detect_smaller_gaps() -> None:
    plan = plan_of({"a(x)": (0.4, 5), "b(x)": (0.5, 5)}, noise=0.1, shift=0.03)
    assert plan is not None
    gaps = [plan.gap(repeats) for repeats in REPEATS]
    assert gaps == sorted(gaps, reverse=True)
    assert plan.gap(5, 700) < plan.gap(5, 70)
    needed = plan.needed(5, 5)
    assert needed is not None
    assert plan.gap(5, needed) <= 5 < plan.gap(5, needed - 1)
    runs = plan.runs_needed(4.5)
    assert runs is not None and plan.gap(runs) <= 4.5


def test_with_these_runs_and_queries_the_gap_is_that_of_the_comparison() -> None:
    read = collection(repeated({"a(x)": (0.4, 5), "b(x)": (0.5, 5)}, DATASETS, noise=0.05, shift=0.05))
    spread = run_spread(single_runs(read))
    plan = RepeatPlan.of(points(read), PAIRS, spread)
    assert plan is not None
    assert plan.gap(5) == pytest.approx(float(paired_t(points(read), PAIRS, spread).detectable[0]), rel=0.03)


@pytest.mark.parametrize("repeats", [5, 10])
def test_the_number_of_queries_detects_the_gap_in_four_of_five_simulated_comparisons(repeats: int) -> None:
    gap, by_queries, shift, noise, samples = 2.0, 54.0, 0.79, 20.0, 1000
    one = np.ones((2, 1))
    plan = RepeatPlan(64, np.array([by_queries / 64]), np.array([63.0]), shift * one, noise / 64 * one)
    queries = plan.needed(gap, repeats)
    assert queries is not None and queries > 64
    random = np.random.default_rng(repeats)
    effects = gap + np.sqrt(by_queries) * random.normal(size=(samples, 1, queries))
    shifts = np.sqrt(shift) * random.normal(size=(2, samples, repeats, 1))
    first, second = shifts + np.sqrt(noise) * random.normal(size=(2, samples, repeats, queries))
    tables = np.concatenate([first + effects, second])
    spread = run_spread(SingleRuns({"d": [*tables]}, [True] * 2 * samples))
    pairs = SystemPairs(np.arange(samples), samples + np.arange(samples))
    found = paired_t({"d": tables.mean(axis=1)}, pairs, spread).p <= ALPHA
    assert 0.76 <= np.mean(found) <= 0.84


def test_a_large_shift_is_not_outweighed_by_queries() -> None:
    plan = plan_of({"a(x)": (0.4, 5), "b(x)": (0.5, 5)}, noise=0.01, shift=0.1)
    assert plan is not None and plan.needed(1, 3) is None


def test_the_table_is_missing_if_no_varying_system_was_run_often_enough() -> None:
    assert plan_of({"a": (0.4, -1), "b": (0.5, -1)}) is None
    assert plan_of({"a(x)": (0.4, 2), "b": (0.5, -1)}) is None
    read = collection(repeated({"a(x)": (0.4, 4), "b": (0.5, -1)}, DATASETS))
    table = repeats_table(points(read), single_runs(read), PAIRS)
    assert table is not None
    assert [row[0] for row in table.rows][: len(REPEATS)] == list(map(str, REPEATS))
    assert np.isfinite([row[1] for row in table.rows[: len(REPEATS)]]).all()
