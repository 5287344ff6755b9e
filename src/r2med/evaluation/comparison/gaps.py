"""Differences of two systems with their tests: over all datasets, on each of them, and on slices of their queries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from r2med.evaluation.comparison.standings import interval_parts, known_number
from r2med.evaluation.measure import significance
from r2med.evaluation.measure.intervals import difference_intervals
from r2med.evaluation.measure.run_variance import RunSpread, SingleRuns, run_spread
from r2med.evaluation.measure.scores import Floats
from r2med.evaluation.measure.significance import ALPHA, RESAMPLES, SystemPairs, Values
from r2med.evaluation.measure.slices import Slice
from r2med.foundation.engine.threads import map_threads
from r2med.foundation.pages.estimate import Estimate


@dataclass(frozen=True)
class Gap:
    """The difference of two systems on some queries: the score of the first minus the score of the second."""

    difference: float
    low: float | None
    high: float | None
    """None if there are too few queries for an interval, or if the systems are equal on all queries."""
    p: float
    p_adjusted: float
    """The p-value adjusted for many tests. Over all datasets, it is adjusted for all pairs, by Holm with a baseline and
    by max-T without one. On single datasets it is adjusted by Benjamini and Hochberg for all pairs and datasets, and on
    slices for all pairs and slices."""

    @property
    def significant(self) -> bool:
        """True if the difference is significant after the adjustment for many tests."""
        return self.p_adjusted <= ALPHA

    def turned(self) -> Self:
        """Return the same difference as that of the second system from the first."""
        low = None if self.high is None else -self.high
        return replace(self, difference=-self.difference, low=low, high=None if self.low is None else -self.low)


@dataclass(frozen=True)
class Pair(Gap):
    """The difference of two systems over all datasets."""

    a: str
    b: str
    p_t: float | None
    """The p-value of the stratified paired t-test; None if a dataset has only one query."""
    effect: float | None
    """Cohen's d_z."""
    wins: int
    ties: int
    losses: int
    carried: float | None
    """The share of the difference that comes from five queries. Above 1, the other queries point the other way."""
    datasets: Mapping[str, Gap]
    from_queries: float | None = None
    """Half of the length of the interval, if only the queries vary. None without an interval."""
    from_runs: float | None = None
    """The same if only the runs vary. None if it is not known: interval and test are then of the queries only."""
    turns_on_same_queries: float | None = None
    """Probability that one more run of each on the same queries gives the other order. None if it is not known."""
    turns_on_new_queries: float | None = None
    """The same on as many new queries."""

    @property
    def disputed(self) -> bool:
        """True if the t-test and the sign flips disagree about significance."""
        return self.p_t is not None and (self.p <= ALPHA) != (self.p_t <= ALPHA)

    def turned(self) -> Self:
        """Return the pair with the second system first."""
        return replace(
            super().turned(),
            a=self.b,
            b=self.a,
            effect=None if self.effect is None else -self.effect,
            wins=self.losses,
            losses=self.wins,
            datasets={dataset: gap.turned() for dataset, gap in self.datasets.items()},
        )


@dataclass(frozen=True)
class SlicePair(Gap):
    """The difference of two systems on one slice of the queries."""

    kind: str
    label: str
    queries: int
    a: str
    b: str

    def turned(self) -> Self:
        """Return the pair with the second system first."""
        return replace(super().turned(), a=self.b, b=self.a)


def tested_gaps(
    sample: tuple[Values, RunSpread | None], pairs: SystemPairs, holm: bool, resamples: int, seed: int
) -> list[Gap]:
    """Return the tested difference of each pair, adjusted for all of them: by Holm, or else by max-T."""
    values, spread = sample
    difference = pairs.differences(significance.means(values))
    low, high = np.clip(difference_intervals(values, pairs, spread), -100.0, 100.0)
    flips = significance.sign_flips(values, pairs, resamples, seed, spread)
    adjusted = significance.holm(flips.p) if holm else flips.p_adjusted
    rows = np.array([difference, low, high, flips.p, adjusted]).T.tolist()
    return [Gap(moved, known_number(least), known_number(most), p, p_all) for moved, least, most, p, p_all in rows]


def gaps_from_first(
    values: Values, resamples: int = RESAMPLES, seed: int = 0, spread: RunSpread | None = None
) -> list[Gap]:
    """Return the difference of each other row from the first, adjusted by max-T for the number of these tests."""
    systems = len(next(iter(values.values())))
    return tested_gaps((values, spread), SystemPairs.against(0, systems), False, resamples, seed)


def adjusted_together(tested: Sequence[Sequence[Gap]]) -> list[list[Gap]]:
    """Return the gaps of each dataset with p-values adjusted for all of them together."""
    adjusted = significance.benjamini_hochberg(np.array([[gap.p for gap in gaps] for gaps in tested]).ravel())
    rows = zip(tested, adjusted.reshape(len(tested), -1).tolist(), strict=True)
    return [[replace(gap, p_adjusted=p) for gap, p in zip(gaps, row, strict=True)] for gaps, row in rows]


def slice_pairs(
    cut: Sequence[Slice],
    values: Values,
    single: SingleRuns,
    names: Sequence[str],
    pairs: SystemPairs,
    resamples: int,
    seed: int,
) -> list[SlicePair]:
    """Return the tested differences on each slice, adjusted for all pairs and slices."""

    def test(each: Slice) -> list[Gap]:
        return tested_gaps((each.cut(values), run_spread(each.cut_runs(single))), pairs, False, resamples, seed)

    tested = [
        SlicePair(**vars(gap), kind=each.kind, label=each.label, queries=len(each), a=names[a], b=names[b])
        for each, gaps in zip(cut, map_threads(test, cut), strict=True)
        for a, b, gap in zip(pairs.first, pairs.second, gaps, strict=True)
    ]
    adjusted = significance.benjamini_hochberg(np.array([each.p for each in tested])).tolist()
    return [replace(each, p_adjusted=p) for each, p in zip(tested, adjusted, strict=True)]


def chance_of_pair(gap: Gap, share: float, same: float, new: float) -> dict[str, Any]:
    """Return the fields of a pair that tell the chance of the queries from that of the runs."""
    from_queries, from_runs = interval_parts(Estimate(gap.difference, gap.low, gap.high), share)
    return {
        "from_queries": from_queries,
        "from_runs": from_runs,
        "turns_on_same_queries": known_number(same),
        "turns_on_new_queries": known_number(new),
    }


def middle_pair(detectable: Floats) -> int | None:
    """Return the position of the median of the positive gaps, the lower of two; None if no gap is positive."""
    known = np.flatnonzero(detectable > 0)
    return int(known[np.argsort(detectable[known], kind="stable")[(len(known) - 1) // 2]]) if len(known) else None
