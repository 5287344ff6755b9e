"""Estimate how much of the variance of a score comes from its runs, for systems that give other answers each time.

The value of a query in a run is the sum of a mean, an effect of the query, a shift of the run that all its queries
share, and noise of this query in this run. The mean squares of the table queries × runs estimate the variances of the
three. Values of several runs are averaged first, so the spread of the queries contains the noise already; what is
missing there is the shift. docs/evidence.md derives the formulas and shows how well they hold.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from r2med.evaluation.measure.scores import Floats

FEWEST_RUNS = 3
"""Number of runs of a varying system from which on intervals and tests contain the chance of the runs."""

ROUNDING_VARIANCE = 1e-18
"""Smaller variances of values up to 100 are rounding errors: all runs are equal."""


@dataclass(frozen=True)
class SingleRuns:
    """The values of single runs, before they are averaged."""

    tables: Mapping[str, Sequence[Floats]]
    """Dataset -> runs × queries of each system. Systems may have different numbers of runs, also 0."""
    varies: Sequence[bool]
    """For each system, if another run can give other values."""

    @property
    def counts(self) -> npt.NDArray[np.intp]:
        """For each system, the number of runs that it has on every dataset."""
        counts = [[len(table) for table in tables] for tables in self.tables.values()]
        return np.asarray(np.min(counts, axis=0), dtype=np.intp)

    def on(self, dataset: str) -> SingleRuns:
        """Return the runs on one dataset."""
        return SingleRuns({dataset: self.tables[dataset]}, self.varies)


@dataclass(frozen=True)
class RunSpread:
    """What the runs of each system say about the variance of its score, the mean over its runs and datasets."""

    runs: Floats
    """Number of runs."""
    between: Floats
    """Variance of the score by the spread of the scores of its runs; 0 for a system that does not vary, and for one
    with fewer than `FEWEST_RUNS` runs, because nothing is known about its runs."""
    within: Floats
    """The part of it that the noise of single queries explains."""
    within_freedom: Floats
    """Degrees of freedom of `within`."""

    @property
    def shift(self) -> Floats:
        """Variance of the score by shifts that all queries of a run share. A negative estimate counts as 0."""
        return np.maximum(self.between - self.within, 0.0)

    def loss(self, factor: Floats | float = 1.0) -> Floats:
        """Return what the estimates add to the denominator of Satterthwaite's degrees of freedom; 0 without a shift.

        `factor` is that of the variances in a sum of variances.
        """
        found = _squared(factor * self.between, self.runs - 1) + _squared(factor * self.within, self.within_freedom)
        return np.where(self.shift > 0, found, 0.0)

    def of(self, systems: npt.NDArray[np.intp]) -> RunSpread:
        """Return the spreads of some systems."""
        return RunSpread(*(np.asarray(each)[systems] for each in vars(self).values()))


def run_spread(single: SingleRuns) -> RunSpread:
    """Return the variance of each score by its runs, from the mean squares of tables queries × runs.

    A shift may be common to the datasets of a run, so the scores of a run are averaged over datasets first. If datasets
    have different numbers of runs, the first runs that all of them have are used.
    """
    runs, varies = single.counts, np.array(single.varies, dtype=np.bool_)
    estimated = varies & (runs >= FEWEST_RUNS)
    between, within, freedom = np.zeros((3, len(runs)))
    for count in np.unique(runs[estimated]).tolist():
        systems = np.flatnonzero(estimated & (runs == count))
        tables = [np.stack([each[system][:count] for system in systems.tolist()]) for each in single.tables.values()]
        between[systems], within[systems], freedom[systems] = _spreads(tables)
    return RunSpread(runs.astype(np.float64), between, within, freedom)


def _spreads(tables: Sequence[Floats]) -> tuple[Floats, Floats, Floats]:
    """Return the variances of scores by their runs, the parts of noise in them, and the parts' degrees of freedom.

    The tables are systems × runs × queries, one for each dataset.
    """
    runs = tables[0].shape[1]
    scores = np.mean([table.mean(axis=2) for table in tables], axis=0)
    between = np.var(scores, axis=1, ddof=1) / runs
    parts, losses = [], []
    for table in tables:
        means = table.mean(axis=1, keepdims=True) + table.mean(axis=2, keepdims=True)
        noise = table - means + table.mean(axis=(1, 2), keepdims=True)
        freedom = max(1, (runs - 1) * (table.shape[2] - 1))  # a dataset of one query shows no noise
        parts.append(np.square(noise).sum(axis=(1, 2)) / freedom / (runs * table.shape[2]) / len(tables) ** 2)
        losses.append(parts[-1] ** 2 / freedom)
    within = np.sum(parts, axis=0)
    between, within = (np.where(each > ROUNDING_VARIANCE, each, 0.0) for each in (between, within))
    return between, within, np.divide(within**2, np.sum(losses, axis=0), out=np.ones_like(within), where=within > 0)


def with_shift(variance: Floats, freedom: Floats, shift: Floats, loss: Floats) -> tuple[Floats, Floats]:
    """Return a variance by queries plus one by shifts of runs, with Satterthwaite's degrees of freedom.

    Without a shift both stay exactly as they are. `loss` is that of `RunSpread`.
    """
    whole = variance + shift
    with np.errstate(divide="ignore", invalid="ignore"):
        joint = whole**2 / (_squared(variance, freedom) + loss)
    return whole, np.where(shift > 0, joint, freedom)


def _squared(variance: Floats, freedom: Floats) -> Floats:
    """Return variance² / freedom; 0 for a variance of 0, whose degrees of freedom may be unknown."""
    return np.divide(variance**2, freedom, out=np.zeros(np.shape(variance)), where=np.asarray(variance) > 0)
