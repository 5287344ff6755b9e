"""The statistics are those of plain loops and of scipy, and hold their level where nothing differs."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import stats

from r2med.evaluation.measure import significance
from r2med.evaluation.measure.intervals import difference_intervals
from r2med.evaluation.measure.significance import FlipTest, Sample, SystemPairs, Values, sign_flips

PAIR = SystemPairs.all(2)


def flipped(values: Values, pairs: SystemPairs, resamples: int = 10_000, seed: int = 0) -> FlipTest:
    [test] = sign_flips([Sample.whole(values)], pairs, resamples, seed)
    return test


def drawn(seed: int, systems: int, sizes: tuple[int, ...], shift: float = 0.0, decimals: int = 2) -> Values:
    """Return values as measures have them: rounded, so that queries tie; the last system is better by `shift`."""
    random = np.random.default_rng(seed)
    shifts = np.linspace(0, shift, systems)[:, None]
    return {f"d{n}": np.round(random.random((systems, size)) + shifts, decimals) for n, size in enumerate(sizes)}


def statistic(values: Values, first: int, second: int, signs: list[tuple[int, ...]]) -> float:
    """Return the difference of two systems with the signs of queries, as plain as it can be said."""
    total = 0.0
    for rows, flips in zip(values.values(), signs, strict=True):
        total += sum(s * (a - b) for s, a, b in zip(flips, rows[first], rows[second], strict=True)) / rows.shape[1]
    return total / len(values)


def every_sign(values: Values) -> list[list[tuple[int, ...]]]:
    every = [list(itertools.product((1, -1), repeat=rows.shape[1])) for rows in values.values()]
    return [list(signs) for signs in itertools.product(*every)]


def test_few_queries_are_tested_by_all_their_flips() -> None:
    for seed in range(5):
        values = drawn(seed, 3, (4, 3), shift=0.5, decimals=1)
        pairs = SystemPairs.all(3)
        flips = every_sign(values)
        for p, a, b in zip(flipped(values, pairs).p, pairs.first, pairs.second, strict=True):
            observed = abs(statistic(values, a, b, flips[0]))
            extreme = sum(abs(statistic(values, a, b, signs)) >= observed - 1e-12 for signs in flips)
            assert p == pytest.approx(extreme / len(flips), abs=1e-15)


def test_one_dataset_is_tested_as_scipy_does() -> None:
    rows = np.random.default_rng(3).random((2, 12))
    reference = stats.permutation_test(
        (rows[0], rows[1]), lambda a, b, axis: np.mean(a - b, axis=axis), permutation_type="samples", vectorized=True
    )
    assert flipped({"d": rows}, PAIR).p[0] == pytest.approx(reference.pvalue, abs=1e-15)


def test_random_flips_come_near_the_exact_p_and_are_seeded() -> None:
    values = drawn(1, 2, (8, 5), shift=0.2)
    exact = flipped(values, PAIR).p[0]
    sampled = flipped(values, PAIR, resamples=4000).p[0]
    assert 0.01 < exact < 0.6
    assert sampled != exact
    assert sampled == pytest.approx(exact, abs=4 * np.sqrt(exact / 4000))
    assert sampled == flipped(values, PAIR, resamples=4000).p[0]
    assert sampled != flipped(values, PAIR, resamples=4000, seed=1).p[0]


def test_a_sampled_p_is_never_zero_and_counts_the_observed_flip() -> None:
    values = {"d": np.array([np.full(40, 0.9), np.full(40, 0.1)])}
    assert flipped(values, PAIR, resamples=999).p[0] == 1 / 1000


def test_equal_systems_have_p_1_everywhere() -> None:
    values = {"d": np.full((2, 30), 0.25), "e": np.full((2, 3), 1.0)}
    assert flipped(values, PAIR).p.tolist() == [1.0]
    assert flipped(values, PAIR).p_adjusted.tolist() == [1.0]
    assert significance.paired_t(values, PAIR).p.tolist() == [1.0]


def test_a_pair_keeps_its_p_when_other_systems_join() -> None:
    values = drawn(5, 3, (40, 30), shift=0.1)
    two = {name: rows[:2] for name, rows in values.items()}
    assert flipped(values, SystemPairs.all(3)).p[0] == flipped(two, PAIR).p[0]


def test_datasets_weigh_the_same_however_many_queries_they_have() -> None:
    values = {"small": np.array([[1.0, 1.0], [0.0, 0.0]]), "large": np.array([np.zeros(100), np.full(100, 0.5)])}
    assert significance.means(values) == pytest.approx([0.5, 0.25])
    assert significance.contributions(values).sum(axis=1) == pytest.approx([0.5, 0.25])


def test_max_t_is_the_step_down_of_plain_loops() -> None:
    values = drawn(2, 4, (4, 4), shift=0.6)
    pairs = SystemPairs.all(4)
    named = list(zip(pairs.first.tolist(), pairs.second.tolist(), strict=True))
    flips = every_sign(values)
    scale = {}
    for a, b in named:
        terms = [(x - y) / rows.shape[1] / 2 for rows in values.values() for x, y in zip(rows[a], rows[b], strict=True)]
        scale[a, b] = np.sqrt(sum(term**2 for term in terms))
    table = [{pair: abs(statistic(values, *pair, signs)) / scale[pair] for pair in named} for signs in flips]
    remaining = sorted(named, key=lambda pair: -table[0][pair])
    expected: dict[tuple[int, int], float] = {}
    lowest = 0.0
    while remaining:
        pair = remaining[0]
        hits = sum(max(row[other] for other in remaining) >= table[0][pair] - 1e-12 for row in table)
        lowest = max(lowest, hits / len(table))
        expected[pair] = lowest
        remaining = remaining[1:]
    assert flipped(values, pairs).p_adjusted == pytest.approx([expected[pair] for pair in named], abs=1e-15)


def test_adjusting_by_max_t_never_lowers_p() -> None:
    values = drawn(8, 6, (30, 20), shift=0.2)
    pairs = SystemPairs.all(6)
    test = flipped(values, pairs)
    assert (test.p_adjusted >= test.p).all()


def test_t_is_scipys_for_one_dataset_and_welchs_for_several() -> None:
    values = drawn(4, 2, (25, 14), shift=0.2)
    one = values["d0"]
    test = significance.paired_t({"d0": one}, PAIR)
    assert test.p[0] == pytest.approx(stats.ttest_rel(one[0], one[1]).pvalue)
    # Half the sum of two means is tested as Welch's test does it for the second with its sign turned.
    moved = [rows[0] - rows[1] for rows in values.values()]
    reference = stats.ttest_ind(moved[0], -moved[1], equal_var=False)
    assert significance.paired_t(values, PAIR).p[0] == pytest.approx(reference.pvalue)


def test_one_query_says_nothing_of_its_spread() -> None:
    assert np.isnan(significance.paired_t({"d": np.array([[0.4], [0.2]])}, PAIR).p).all()


def test_intervals_of_differences_are_those_of_the_t_test() -> None:
    rows = drawn(6, 3, (30,), shift=0.3)["d0"]
    pairs = SystemPairs.all(3)
    low, high = difference_intervals({"d0": rows}, pairs)
    for i, (a, b) in enumerate(zip(pairs.first, pairs.second, strict=True)):
        expected = stats.ttest_rel(rows[a], rows[b]).confidence_interval(0.95)
        assert [low[i], high[i]] == pytest.approx([expected.low, expected.high])


def test_under_the_null_the_tests_reject_as_often_as_they_say() -> None:
    random = np.random.default_rng(7)
    trials = 400
    p, adjusted, t = [], [], []
    pairs = SystemPairs.all(4)
    for _ in range(trials):
        # Skewed and tied, as nDCG is; no system is better than another.
        values = {f"d{n}": np.round(random.random((4, size)) ** 3, 1) for n, size in enumerate((20, 35, 12))}
        test = flipped(values, pairs, resamples=499)
        p.append(test.p[0])
        adjusted.append(test.p_adjusted.min())
        t.append(significance.paired_t(values, pairs).p[0])
    for each in (p, adjusted, t):  # four standard errors
        assert np.mean(np.array(each) <= 0.05) == pytest.approx(0.05, abs=4 * np.sqrt(0.05 * 0.95 / trials))


def test_intervals_cover_the_true_difference_as_often_as_they_say() -> None:
    random = np.random.default_rng(8)
    covered = 0
    for _ in range(300):
        values = {f"d{n}": random.random((2, size)) ** [[1], [3]] for n, size in enumerate((60, 40))}
        low, high = difference_intervals(values, PAIR)
        covered += bool(low[0] <= 0.25 <= high[0])
    assert covered / 300 == pytest.approx(0.95, abs=0.045)


def test_the_detectable_gap_is_seen_four_times_in_five() -> None:
    random = np.random.default_rng(9)
    sizes = (50, 80)
    gap = 2.8 * 0.2 * np.sqrt(sum(1 / size for size in sizes)) / 2  # from the true spread
    seen, told = 0, []
    for _ in range(300):
        values = {f"d{n}": np.array([random.normal(gap, 0.2, size), np.zeros(size)]) for n, size in enumerate(sizes)}
        told.append(significance.paired_t(values, PAIR).detectable[0])
        seen += bool(flipped(values, PAIR, resamples=499).p[0] <= 0.05)
    assert np.mean(told) == pytest.approx(gap, rel=0.05)
    assert seen / 300 == pytest.approx(0.8, abs=0.1)


def test_queries_are_won_tied_and_lost() -> None:
    first = np.array([0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.1, 0.3])
    second = np.array([0.1, 0.1, 0.1, 0.1, 0.1, 0.4, 0.2, 0.3])
    moved = significance.movements({"d": np.array([first, second])}, PAIR)
    assert (moved.wins[0], moved.ties[0], moved.losses[0]) == (5, 2, 1)


def datasets_as_samples(values: Values) -> list[Sample]:
    ends = np.cumsum([rows.shape[1] for rows in values.values()])
    return [
        Sample({name: rows}, np.arange(end - rows.shape[1], end))
        for (name, rows), end in zip(values.items(), ends, strict=True)
    ]


def test_samples_are_one_family_by_the_step_down_of_plain_loops() -> None:
    values = drawn(12, 3, (5, 4), shift=0.6)
    pairs = SystemPairs.all(3)
    flips = every_sign(values)
    named = [(name, a, b) for name in values for a, b in zip(pairs.first.tolist(), pairs.second.tolist(), strict=True)]
    moved = {(name, a, b): values[name][a] - values[name][b] for name, a, b in named}
    table = [
        {
            (name, a, b): abs(moved[name, a, b] @ signs[int(name[1:])]) / np.sqrt((moved[name, a, b] ** 2).sum())
            for name, a, b in named
        }
        for signs in flips
    ]
    expected, lowest = {}, 0.0
    remaining = sorted(named, key=lambda each: -table[0][each])
    while remaining:
        each = remaining[0]
        hits = sum(max(row[other] for other in remaining) >= table[0][each] - 1e-12 for row in table)
        lowest = expected[each] = max(lowest, hits / len(table))
        remaining = remaining[1:]
    tests = sign_flips(datasets_as_samples(values), pairs)
    assert [p for test in tests for p in test.p_adjusted] == pytest.approx([expected[each] for each in named], abs=1e-9)


def test_fewer_pairs_never_give_a_larger_p() -> None:
    values = drawn(9, 6, (30, 20), shift=0.1)
    every, some = SystemPairs.all(6), SystemPairs.against(2, 6)
    of_all = {
        frozenset(pair): p
        for *pair, p in zip(every.first.tolist(), every.second.tolist(), flipped(values, every).p_adjusted, strict=True)
    }
    for first, second, p in zip(some.first, some.second, flipped(values, some).p_adjusted, strict=True):
        assert p <= of_all[frozenset({int(first), int(second)})]


def test_queries_that_samples_share_are_flipped_together() -> None:
    """The same sample twice is one test: its largest statistic is its own."""
    values = drawn(13, 4, (40,), shift=0.1)
    pairs, once = SystemPairs.all(4), Sample.whole(values)
    alone, twice = sign_flips([once], pairs, 500), sign_flips([once, once], pairs, 500)
    for test in twice:
        np.testing.assert_array_equal(test.p_adjusted, alone[0].p_adjusted)


def test_no_sample_is_no_test() -> None:
    assert sign_flips([], PAIR) == []


def test_other_pairs_follow_those_that_were_asked_for() -> None:
    pairs = SystemPairs.against(1, 4).with_all_others(4)
    found = list(zip(pairs.first.tolist(), pairs.second.tolist(), strict=True))
    assert found == [(0, 1), (2, 1), (3, 1), (0, 2), (0, 3), (2, 3)]


def test_blocks_do_not_change_what_is_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    values = drawn(10, 7, (30, 20), shift=0.2)
    pairs = SystemPairs.all(7)

    def everything() -> list[np.ndarray]:
        test, moved = significance.paired_t(values, pairs), significance.movements(values, pairs)
        return [
            flipped(values, pairs, 300).p,
            flipped(values, pairs, 300).p_adjusted,
            difference_intervals(values, pairs),
            test.p,
            moved.wins,
        ]

    whole = everything()
    monkeypatch.setattr(significance, "DIFFERENCES_AT_ONCE", 64)
    monkeypatch.setattr(significance, "FLIPS_AT_ONCE", 7)
    for one, other in zip(whole, everything(), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)
