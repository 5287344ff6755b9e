"""Prediction-powered estimates: a share of many items, from reviews of some of them and scores of all of them.

The method is that of Angelopoulos et al. (2023), with a tuned weight of the scores, for a finite set of items. The mean
score of all items is known exactly, so only the part that scores do not explain is uncertain.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from r2med.evaluation.measure.intervals import tuned_weight, wilson
from r2med.evaluation.measure.scores import Floats
from r2med.evaluation.measure.significance import Integers
from r2med.foundation.pages.estimate import Estimate

FEWEST_REVIEWS = 10
"""Number of reviews below which no interval is given: it would hold the truth in less than 93 % of samples
(`benchmarks/coverage.py`)."""


@dataclass(frozen=True)
class Share(Estimate):
    """A share of items that people would accept, with its interval."""

    reviewed: int = 0
    """Number of items that people reviewed."""
    items: int = 0
    open: int = 0
    """Number of reviewed items that people did not decide. The share is a range because of them."""


def bounded_share(scores: Floats, reviewed: Integers, said: Floats) -> Share | None:
    """Return the share as `share` does, where people did not decide some reviewed items (NaN in `said`).

    The share is then a range, from all of these rejected to all accepted, and its interval holds every way to decide
    them. To leave them out would bias the share: disputed items are not like the others.
    """
    undecided = np.isnan(said)
    least, most = (share(scores, reviewed, np.where(undecided, value, said)) for value in (0.0, 1.0))
    if least is None or most is None or not undecided.any():
        return least
    return replace(least, high=most.high, most=most.value, open=int(undecided.sum()))


def share(scores: Floats, reviewed: Integers, said: Floats) -> Share | None:
    """Return the share of items that people would accept; None if they reviewed fewer than two.

    `scores` are the scores of all items. `reviewed` are the positions of a random sample that people reviewed, and
    `said` are their verdicts: 1 accepted, 0 rejected. The interval is Wilson's for the sample size that would give the
    same certainty without scores. Near 0 and 1 it keeps its level, unlike a normal interval. Fewer than
    `FEWEST_REVIEWS` reviews have no interval, unless people reviewed every item and nothing is uncertain.
    """
    seen, items = len(said), len(scores)
    if seen < 2:
        return None
    known = scores[reviewed]
    weight = tuned_weight(known, said)
    value = float(np.clip(weight * scores.mean() + (said - weight * known).mean(), 0, 1))
    alone = float(np.var(said))
    # The variance that scores leave unexplained, against the variance of reviews alone. Reviewed items are certain.
    left = (float(np.var(said - weight * known)) / alone if alone else 1.0) * (1 - seen / items)
    if not left:
        return Share(value, value, value, seen, items)
    if seen < FEWEST_REVIEWS:
        return Share(value, reviewed=seen, items=items)
    low, high = wilson(np.array(value), np.array(seen / left)).tolist()
    return Share(value, low, high, seen, items)
