"""The gate of a pipeline: is a new system worse than the old one by more than some points?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from r2med.evaluation.comparison.standings import known_number
from r2med.evaluation.measure.intervals import difference_intervals, has_intervals
from r2med.evaluation.measure.significance import ALPHA, Sample, SystemPairs, means
from r2med.foundation.pages.cells import signed

GateOutcome = Literal["worse", "not decided", "passed"]


@dataclass(frozen=True)
class GateVerdict:
    """Whether a system passes the gate. Points are those of the system minus those of the baseline; below 0 is worse.

    If lower values of the measure are better, the signs are turned, so that below 0 is worse here too.
    """

    system: str
    baseline: str
    worse_than: float
    """Points that the system may lose."""
    difference: float
    low: float | None
    """Lower end of the interval of `difference`; None if there are too few queries for an interval."""
    high: float | None
    """Upper end of the interval of `difference`."""
    systems: int = 1
    """Number of systems that the baseline is compared with. All their intervals together hold at 95 %."""

    @property
    def outcome(self) -> GateOutcome:
        """`worse` if the interval is below the limit, `not decided` if it contains the limit, otherwise `passed`."""
        if self.low is None or self.high is None:
            return "not decided"
        if self.high < -self.worse_than:
            return "worse"
        return "not decided" if self.low <= -self.worse_than else "passed"

    def __str__(self) -> str:
        """Return the verdict as one sentence."""
        loss = f"{self.worse_than:g} {'point' if self.worse_than == 1 else 'points'}"
        claim = {
            "worse": f"is worse than {self.baseline} by more than {loss}",
            "not decided": f"may be worse than {self.baseline} by more than {loss}: more queries are needed",
            "passed": f"is not worse than {self.baseline} by more than {loss}",
        }[self.outcome]
        shown = "no interval"
        if self.low is not None and self.high is not None:
            together = f" for {self.systems} systems together" if self.systems > 1 else ""
            shown = f"95 % interval{together} {signed(self.low)} to {signed(self.high)}"
        return f"Gate: {self.outcome}. {self.system} {claim} ({signed(self.difference)} points, {shown})."


def gate_verdicts(
    systems: Sequence[str], baseline: str, worse_than: float, gains: Sample, pairs: SystemPairs
) -> tuple[GateVerdict, ...]:
    """Return the verdict on each system. The pairs are those of the systems with the baseline; more points are better.

    The intervals are adjusted for the number of systems (Bonferroni): the chance that any of them is called worse by
    mistake is at most 5 %. Two systems that differ by the same amount on every query have no interval. The difference
    itself then decides, unless there are too few queries for any interval.
    """
    low, high = np.clip(difference_intervals(gains.values, pairs, gains.spread, ALPHA / len(pairs)), -100.0, 100.0)
    difference = pairs.differences(means(gains.values))
    if has_intervals(gains.values):
        low, high = (np.where(np.isnan(ends), difference, ends) for ends in (low, high))
    rows = zip(systems, difference.tolist(), low.tolist(), high.tolist(), strict=True)
    return tuple(
        GateVerdict(system, baseline, worse_than, points, known_number(least), known_number(most), len(pairs))
        for system, points, least, most in rows
    )
