"""The line of quality against cost, through the best means, and the systems that do not differ from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from r2med.evaluation.comparison.budget_choice import Tests
from r2med.evaluation.comparison.charts import pareto

CostPoints = Mapping[str, tuple[float, float]]
"""System -> what a query costs, and its mean score in points. A higher score is better."""


def near_line(placed: CostPoints, tests: Tests) -> dict[str, str]:
    """Return system below the line -> the system on the line that it does not differ from significantly.

    The line goes through the best means. A system is tested against the system of the line that costs no more.
    """
    line = pareto(placed)
    below: dict[str, list[str]] = {}
    for system in placed:
        if system not in line:
            below.setdefault(_leader(system, placed, line), []).append(system)
    return {
        system: leader
        for leader, systems in below.items()
        for system, gap in tests(leader, systems).items()
        if not gap.significant
    }


def _leader(system: str, placed: CostPoints, line: Sequence[str]) -> str:
    """Return the system of the line with the best mean among those that cost no more than a system."""
    return next(each for each in reversed(line) if placed[each][0] <= placed[system][0])
