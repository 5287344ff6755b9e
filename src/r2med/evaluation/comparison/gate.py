"""The gate of a pipeline: is a new system worse than the old one by more than some points?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from r2med.evaluation.measure.intervals import FEWEST_VALUES
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
    """Lower end of the 95 % interval of `difference`; None if there are too few queries for an interval."""
    high: float | None
    """Upper end of the 95 % interval of `difference`."""

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
            shown = f"95 % interval {signed(self.low)} to {signed(self.high)}"
        return f"Gate: {self.outcome}. {self.system} {claim} ({signed(self.difference)} points, {shown})."


def gate_verdict(
    system: str,
    baseline: str,
    worse_than: float,
    gain: tuple[float, float | None, float | None],
    queries: Sequence[int],
) -> GateVerdict:
    """Return the verdict on a system. `gain` is the difference with its interval, `queries` their number by dataset.

    Two systems that differ by the same amount on every query have no interval. The difference itself then decides,
    unless there are too few queries for any interval.
    """
    difference, low, high = gain
    if low is None and sum(queries) >= FEWEST_VALUES and min(queries) > 1:
        low = high = difference
    return GateVerdict(system, baseline, worse_than, difference, low, high)
