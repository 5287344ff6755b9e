"""Totals and shares over strata, from a random sample of items of each stratum that people reviewed.

Each stratum's total has the mid-p interval of the hypergeometric distribution, the exact one for a sample of a finite
number of items. Wilson's interval held the truth in only 82 % of samples where few of 4 to 30 reviewed items differ
(`benchmarks/coverage.py`). Intervals of sums and of shares of two sums are
recovered from these (MOVER; Zou and Donner 2008, Donner and Zou 2012). Unlike a normal interval, they keep their level
if a sample holds none of the items that are counted: none of 10 reviewed can still mean many of 1,000.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from r2med.evaluation.measure.significance import ALPHA
from r2med.foundation.pages.estimate import Estimate


@dataclass(frozen=True)
class Stratum:
    """Items of one kind, and what people said about a random sample of them."""

    items: int
    reviewed: int
    counted: int
    """Number of reviewed items that have the property in question, for example that people accepted."""

    def total(self) -> Estimate:
        """Return the number of items that have the property. Raises ValueError if none was reviewed."""
        if not self.reviewed:
            raise ValueError("a stratum without a review has no estimate")
        share = self.counted / self.reviewed
        if self.reviewed == self.items:
            return Estimate(self.counted, self.counted, self.counted)
        low, high = _mid_p(self.items, self.reviewed, self.counted)
        return Estimate(self.items * share, low, high)


@lru_cache(maxsize=4096)
def _mid_p(items: int, reviewed: int, counted: int) -> tuple[int, int]:
    """Return the smallest and the largest number of items with the property that the sample does not contradict.

    The probability of more extreme samples, with half of that of this sample, is at least 2.5 % for these numbers. What
    people reviewed is known, so only the other items are uncertain.
    """
    from scipy.stats import hypergeom

    least, most = counted, items - (reviewed - counted)

    def below(number: int) -> float:
        found = hypergeom(items, number, reviewed)
        return float(found.cdf(counted) - found.pmf(counted) / 2)

    # `below` falls with the number of items.
    numbers = range(least, most + 1)
    low = bisect_left(numbers, -(1 - ALPHA / 2), key=lambda number: -below(number))
    high = bisect_right(numbers, -ALPHA / 2, key=lambda number: -below(number)) - 1
    share = items * counted / reviewed
    return min(least + low, math.floor(share)), max(least + high, math.ceil(share))


def summed(totals: Iterable[Estimate]) -> Estimate:
    """Return the sum of independent estimates that have intervals."""
    rows = np.array([(each.value, *each.bounds) for each in totals]).reshape(-1, 3)
    value = float(rows[:, 0].sum())
    low, high = (float(np.sqrt(np.square(rows[:, end] - rows[:, 0]).sum())) for end in (1, 2))
    return Estimate(value, value - low, value + high)


def share_of(first: Estimate, second: Estimate) -> Estimate:
    """Return the share of the first of two independent totals in their sum; NaN if both are 0.

    Totals are whole numbers, so uncertain bounds are widened by half an item. Without this, a total that is exactly its
    own bound would be missed by a hair whenever the other total is a little off.
    """
    whole = first.value + second.value
    if not whole:
        return Estimate(np.nan)
    first, second = _widened(first), _widened(second)
    return Estimate(first.value / whole, _lowest_share(first, second), 1 - _lowest_share(second, first))


def _widened(total: Estimate) -> Estimate:
    low, high = total.bounds
    return Estimate(total.value, max(0.0, low - 0.5), high + 0.5) if low < high else total


def _lowest_share(first: Estimate, second: Estimate) -> float:
    """Return the lower bound of a share: odds at which the bounds of `first` - odds × `second` just include 0."""
    below, above = first.value - first.bounds[0], second.bounds[1] - second.value
    certain = first.value**2 - below**2
    if certain <= 0:
        return 0.0
    root = np.sqrt((first.value * second.value) ** 2 - (second.value**2 - above**2) * certain)
    odds_against = (first.value * second.value + root) / certain
    return float(1 / (1 + odds_against))
