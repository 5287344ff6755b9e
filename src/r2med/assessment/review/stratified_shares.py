"""Totals and shares over strata, from a random sample of items of each stratum that people reviewed.

Each stratum's share has Wilson's interval for a finite number of items. Intervals of sums and of shares of two sums are
recovered from these (MOVER; Zou and Donner 2008, Donner and Zou 2012). Unlike a normal interval, they keep their level
if a sample holds none of the items that are counted: none of 10 reviewed can still mean many of 1,000.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from r2med.evaluation.measure.intervals import wilson
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
        size = self.reviewed / (1 - self.reviewed / self.items)
        low, high = (self.items * wilson(np.array(share), np.array(size))).tolist()
        # What people reviewed is known. Only the other items are uncertain.
        most = self.items - (self.reviewed - self.counted)
        return Estimate(self.items * share, max(low, self.counted), min(high, most))


def summed(totals: Iterable[Estimate]) -> Estimate:
    """Return the sum of independent estimates that have intervals."""
    rows = np.array([(each.value, *each.bounds) for each in totals]).reshape(-1, 3)
    value = float(rows[:, 0].sum())
    low, high = (float(np.sqrt(np.square(rows[:, end] - rows[:, 0]).sum())) for end in (1, 2))
    return Estimate(value, value - low, value + high)


def share_of(first: Estimate, second: Estimate) -> Estimate:
    """Return the share of the first of two independent totals in their sum; NaN if both are 0."""
    whole = first.value + second.value
    if not whole:
        return Estimate(np.nan)
    return Estimate(first.value / whole, _lowest_share(first, second), 1 - _lowest_share(second, first))


def _lowest_share(first: Estimate, second: Estimate) -> float:
    """Return the lower bound of a share: odds at which the bounds of `first` - odds × `second` just include 0."""
    below, above = first.value - first.bounds[0], second.bounds[1] - second.value
    certain = first.value**2 - below**2
    if certain <= 0:
        return 0.0
    root = np.sqrt((first.value * second.value) ** 2 - (second.value**2 - above**2) * certain)
    odds_against = (first.value * second.value + root) / certain
    return float(1 / (1 + odds_against))
