"""Compute means over queries, with their intervals."""

from __future__ import annotations

import numpy as np

from r2med.evaluation.comparison.standings import with_intervals
from r2med.evaluation.measure.scores import Floats
from r2med.foundation.pages.cells import Estimate


def mean_interval(values: Floats, top: float | None = 1.0) -> Estimate | None:
    """Return the mean over queries with its interval. Queries without a value (NaN) do not count.

    `top` is the largest possible value, and 0 the smallest. `top` is None if there are no such bounds.
    """
    known = values[~np.isnan(values)]
    return with_intervals({"": known[None]}, top)[0] if len(known) else None
