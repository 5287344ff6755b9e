"""Prediction-powered estimates: a share among many items, from what people said of some and a score that all have.

After Angelopoulos et al. (2023), with the weight of the scores tuned, for the items at hand: the mean score of all of
them is known exactly, so only the part that scores do not explain is uncertain.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from r2med.measure.intervals import wilson
from r2med.measure.scores import Floats
from r2med.measure.significance import Integers
from r2med.pages.estimate import Estimate

FEWEST_REVIEWS = 10
"""Reviewed items below which no interval is given: it would hold the truth in less than 93 % of samples
(`benchmarks/coverage.py`)."""


@dataclass(frozen=True)
class Share(Estimate):
    """A share of items that people would accept, with its interval."""

    reviewed: int = 0
    """Items that people saw."""
    items: int = 0


def share(scores: Floats, reviewed: Integers, said: Floats) -> Share | None:
    """Return the share of items that people would accept; None if they saw fewer than two.

    `scores` of all items; `reviewed` are the positions of those that people saw, drawn at random, and `said` what they
    said: 1 accepted, 0 rejected. The interval is Wilson's, at the size of a sample of people alone that would be as
    sure: near 0 and 1 it keeps its level where a normal interval does not. Fewer than `FEWEST_REVIEWS` reviews have no
    interval, unless people saw every item: then nothing is uncertain.
    """
    seen, items = len(said), len(scores)
    if seen < 2:
        return None
    known = scores[reviewed]
    spread = float(np.var(known))
    weight = float(np.clip(np.mean((known - known.mean()) * (said - said.mean())) / spread, 0, 1)) if spread else 0.0
    value = float(np.clip(weight * scores.mean() + (said - weight * known).mean(), 0, 1))
    alone = float(np.var(said))
    # What scores leave unexplained, against what people alone would leave; what people saw is no longer open.
    left = (float(np.var(said - weight * known)) / alone if alone else 1.0) * (1 - seen / items)
    if not left:
        return Share(value, value, value, seen, items)
    if seen < FEWEST_REVIEWS:
        return Share(value, reviewed=seen, items=items)
    low, high = wilson(np.array(value), np.array(seen / left)).tolist()
    return Share(value, low, high, seen, items)
