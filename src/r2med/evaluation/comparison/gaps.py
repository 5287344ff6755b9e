"""Differences of two systems with their tests: over all datasets, on each of them, and on slices of their queries."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from r2med.evaluation.comparison.standings import known_number
from r2med.evaluation.measure.intervals import difference_intervals
from r2med.evaluation.measure.run_variance import SingleRuns, run_spread
from r2med.evaluation.measure.scores import Floats
from r2med.evaluation.measure.significance import (
    ALPHA,
    FlipTest,
    Integers,
    Sample,
    SystemPairs,
    Values,
    means,
    sign_flips,
)
from r2med.evaluation.measure.slices import Slice


@dataclass(frozen=True)
class Gap:
    """The difference of two systems on some queries: the score of the first minus the score of the second."""

    difference: float
    low: float | None
    high: float | None
    """Ends of the 95 % interval of this pair alone. None if there are too few queries for an interval, or if the
    systems are equal on all queries."""
    p: float
    p_adjusted: float
    """The p-value adjusted by max-T: over all datasets for all pairs that were tested, on single datasets for all pairs
    and datasets, and on slices for all pairs and slices."""

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
    wins: int
    ties: int
    losses: int
    datasets: Mapping[str, Gap]

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


def dataset_samples(values: Values, single: SingleRuns) -> list[Sample]:
    """Return each dataset as a sample of its own."""
    columns = _columns(values)
    return [Sample({name: rows}, columns[name], run_spread(single.on(name))) for name, rows in values.items()]


def slice_samples(cut: Sequence[Slice], values: Values, single: SingleRuns) -> list[Sample]:
    """Return each slice as a sample of its own."""
    columns = _columns(values)
    return [
        Sample(
            each.cut(values),
            np.concatenate([columns[name][queries] for name, queries in each.queries.items()]),
            run_spread(each.cut_runs(single)),
        )
        for each in cut
    ]


def _columns(values: Values) -> dict[str, Integers]:
    """Return the positions of the queries of each dataset among all queries."""
    ends = np.cumsum([rows.shape[1] for rows in values.values()])
    return {name: np.arange(end - rows.shape[1], end) for (name, rows), end in zip(values.items(), ends, strict=True)}


def tested_gaps(
    samples: Sequence[Sample], pairs: SystemPairs, tested: SystemPairs, resamples: int, seed: int
) -> list[list[Gap]]:
    """Return the difference of each pair on each sample, adjusted for all tested pairs on all samples by max-T.

    The first tested pairs are `pairs`.
    """
    flips = sign_flips(samples, tested, resamples, seed)
    return [list(_gaps(sample, pairs, test)) for sample, test in zip(samples, flips, strict=True)]


def _gaps(sample: Sample, pairs: SystemPairs, test: FlipTest) -> Iterator[Gap]:
    difference = pairs.differences(means(sample.values))
    low, high = np.clip(difference_intervals(sample.values, pairs, sample.spread), -100.0, 100.0)
    p, adjusted = test.p[: len(pairs)], test.p_adjusted[: len(pairs)]
    for moved, least, most, own, for_all in np.array([difference, low, high, p, adjusted]).T.tolist():
        yield Gap(moved, known_number(least), known_number(most), own, for_all)


def middle_pair(detectable: Floats) -> int | None:
    """Return the position of the median of the positive gaps, the lower of two; None if no gap is positive."""
    known = np.flatnonzero(detectable > 0)
    return int(known[np.argsort(detectable[known], kind="stable")[(len(known) - 1) // 2]]) if len(known) else None
