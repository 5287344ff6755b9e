"""The share of a gap that is closed, and the correlation across systems, against plain computations."""

import numpy as np
import pytest

from r2med.evaluation.comparison.retrieval_worth import closed_share, observed_correlation
from r2med.evaluation.measure.scores import Floats


def answers(count: int, seed: int = 0) -> Floats:
    """Return right answers without passages, with those of a system and with relevant ones."""
    random = np.random.default_rng(seed)
    return (random.random((3, count)) < np.array([[0.2], [0.5], [0.8]])).astype(np.float64)


def test_the_share_is_a_ratio_of_means_and_its_interval_is_fiellers() -> None:
    rows = answers(60)
    found = closed_share({"one": rows})
    gain, gap = rows[1] - rows[0], rows[2] - rows[0]
    assert found is not None and found.low is not None and found.high is not None
    assert found.value == pytest.approx(gain.mean() / gap.mean())
    from scipy.stats import ttest_1samp

    for bound in (found.low, found.high):  # a share is on the edge if its difference is just significant
        assert ttest_1samp(gain - bound * gap, 0).pvalue == pytest.approx(0.05, abs=0.005)


def test_datasets_count_the_same_however_many_questions_they_have() -> None:
    large, small = answers(80), answers(20, seed=1)
    gains = [np.mean([rows[n].mean() - rows[0].mean() for rows in (large, small)]) for n in (1, 2)]
    found = closed_share({"large": large, "small": small})
    assert found is not None
    assert found.value == pytest.approx(gains[0] / gains[1])


def test_there_is_no_interval_if_the_gap_may_be_nothing_and_no_share_without_a_gap() -> None:
    closed = np.array([0.0, 1.0] * 10)
    system = np.roll(closed, 1)
    assert closed_share({"one": np.array([closed, system, closed])}) is None
    slightly_better = np.where(np.arange(20) == 0, 1.0, closed)
    found = closed_share({"one": np.array([closed, system, slightly_better])})
    assert found is not None
    assert (found.low, found.high) == (None, None)


def table(count: int, seed: int = 0) -> tuple[Floats, Floats]:
    """Return two measures of five systems whose true scores go together exactly."""
    random = np.random.default_rng(seed)
    quality = np.linspace(0.3, 0.7, 5)[:, None]
    first = np.clip(quality + random.normal(0, 0.3, (5, count)), 0, 1)
    return first, (random.random((5, count)) < quality).astype(np.float64)


def test_the_correlation_is_pearsons_of_the_means() -> None:
    first, second = table(40)
    found = observed_correlation({"one": first}, {"one": second})
    assert found == pytest.approx(np.corrcoef(first.mean(axis=1), second.mean(axis=1))[0, 1])


def test_a_correlation_needs_three_systems_that_differ() -> None:
    first, second = table(40)
    two = [{"one": rows[:2]} for rows in (first, second)]
    assert observed_correlation(two[0], two[1]) is None
    flat = {"one": np.full((5, 40), 0.5)}
    assert observed_correlation({"one": first}, flat) is None
