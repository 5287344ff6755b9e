"""The smallest gap that a set of queries can detect."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import t as student

from r2med.evaluation.comparison.comparison import comparison
from r2med.evaluation.measure.gap_curve import GapCurve
from support.records import collection, records


def test_the_gap_of_the_whole_set_is_that_of_a_comparison() -> None:
    made = records({"a": 0.4, "b": 0.5, "c": 0.6}, {"Biology": 30, "PMC-Clinical": 20})
    known = comparison(collection(made))
    values = {name: 100 * rows for name, (_, rows) in collection(made).values().items()}
    assert GapCurve.of(values).gap() == pytest.approx(known.detectable_gap)


def test_the_number_of_queries_is_the_smallest_that_detects_the_gap() -> None:
    random = np.random.default_rng(0)
    rows = np.array([[30], [50]]) + random.normal(0, 15, (2, 40))
    spread = np.std(rows[0] - rows[1], ddof=1)

    def gap(queries: int) -> float:
        return float((student.ppf(0.975, queries - 1) + student.ppf(0.8, queries - 1)) * spread / np.sqrt(queries))

    needed = GapCurve.of({"": rows}).needed(5)
    assert needed is not None
    assert gap(needed) <= 5 < gap(needed - 1)
    assert GapCurve.of({"": rows}).gap(2.0) == pytest.approx(gap(80))
