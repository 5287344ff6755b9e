"""An estimate: a number with its interval."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Estimate:
    """A number and its 95 % interval: the range to expect with other queries of the same kind."""

    value: float
    low: float | None = None
    high: float | None = None
    """Both are None if there are too few observations for an interval."""

    @property
    def bounds(self) -> tuple[float, float]:
        """Low and high; the number itself twice if there is no interval."""
        return (self.value, self.value) if self.low is None or self.high is None else (self.low, self.high)

    def interval(self, form: str) -> str:
        """Return the interval as text, with bounds in a format such as `.2f` or `.0%`; a dash if there is none."""
        return "–" if self.low is None else " to ".join(f"{bound:{form}}" for bound in self.bounds)
