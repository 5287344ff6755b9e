"""How well a stated confidence fits the truth: the expected calibration error. All values are between 0 and 1."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

BINS = 10
"""Number of bins of equal width."""


def calibration_error(confidence: Sequence[float], right: Sequence[float]) -> float | None:
    """Return the expected calibration error: the mean of |mean confidence - share right| of bins, weighted by size.

    None without any value. It depends on the bins and is biased upwards for few answers, so it has no interval here.
    """
    if not confidence:
        return None
    stated, truth = np.asarray(confidence, float), np.asarray(right, float)
    place = np.minimum((stated * BINS).astype(int), BINS - 1)
    sizes = np.bincount(place, minlength=BINS)
    apart = np.abs(np.bincount(place, stated - truth, minlength=BINS))
    return float(apart.sum() / sizes.sum())
