"""Confidence and truth: the expected calibration error, and the coverage of the intervals."""

import numpy as np
import pytest

from r2med.assessment.answers.search_tables import FEWEST_DECIDED, brier_score, estimate_of, too_sure
from r2med.evaluation.measure.calibration import calibration_error
from r2med.evaluation.measure.intervals import difference_intervals, mean_intervals
from r2med.evaluation.measure.significance import SystemPairs

AGENTS = 4_000


def test_the_error_is_the_weighted_distance_of_bins():
    stated, right = [0.05, 0.15, 0.95, 0.95, 1.0], [0, 1, 1, 0, 1]
    bins = [[0], [1], [2, 3, 4]]
    plain = sum(len(b) / 5 * abs(np.mean([stated[i] - right[i] for i in b])) for b in bins)
    assert calibration_error(stated, right) == pytest.approx(plain)
    assert calibration_error([], []) is None and calibration_error([1.0, 0.0], [1, 0]) == 0


def test_confidence_minus_accuracy_may_be_below_zero():
    stated, right = [0.2, 0.3, 0.4, 0.3, 0.2, 0.4] * 5, [1, 1, 1, 0, 1, 1] * 5
    found = too_sure(stated, right)
    assert found.value == pytest.approx(0.3 - 5 / 6) and found.low < found.value < found.high < 0
    assert too_sure([], []) is None and brier_score([]) is None and estimate_of([]) is None


def test_below_30_decided_answers_there_is_no_interval():
    stated, right = np.linspace(0.2, 0.9, FEWEST_DECIDED).tolist(), [0, 1] * (FEWEST_DECIDED // 2)
    squares = np.square(np.subtract(stated, right)).tolist()
    assert FEWEST_DECIDED == 30 and too_sure(stated, right).low is not None and brier_score(squares).low is not None
    few, brier = too_sure(stated[:-1], right[:-1]), brier_score(squares[:-1])
    assert few.value == pytest.approx(np.mean(stated[:-1]) - 14 / 29) and (few.low, few.high) == (None, None)
    assert brier.value == pytest.approx(np.mean(squares[:-1])) and (brier.low, brier.high) == (None, None)


@pytest.mark.parametrize("questions", [30, 50, 200])
def test_intervals_cover_the_truth_in_93_of_100_agents(questions):
    """Agents that are honest, too sure and unsure; the mean over them is at least 93 % for both figures."""
    random = np.random.default_rng(questions)
    covered = []
    for shift in (-0.25, 0.0, 0.25):
        truth = random.beta(2, 2, (AGENTS, questions))
        stated = np.clip(truth + shift, 0, 1)
        many = random.beta(2, 2, 2_000_000)
        said = np.clip(many + shift, 0, 1)
        right = (random.random(truth.shape) < truth).astype(float)
        pairs = SystemPairs(np.arange(AGENTS), np.arange(AGENTS, 2 * AGENTS))
        low, high = difference_intervals({"": np.vstack([stated, right])}, pairs)
        covered.append(np.mean((low <= np.mean(said - many)) & (np.mean(said - many) <= high)))
        brier = np.mean(many * (said - 1) ** 2 + (1 - many) * said**2)
        low, high = mean_intervals({"": (stated - right) ** 2}, 1.0)
        covered.append(np.mean((low <= brier) & (brier <= high)))
    assert np.mean(covered) > 0.93 and min(covered) > 0.9
