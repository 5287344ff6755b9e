"""The line goes through the best means; a system below it is tested against the one that costs no more."""

from __future__ import annotations

from collections.abc import Sequence

from r2med.evaluation.comparison.cost_line import near_line
from r2med.evaluation.comparison.gaps import Gap

PLACED = {
    "free": (0.0, 30.0),
    "cheap": (1.0, 40.0),
    "dear": (9.0, 50.0),
    "near-free": (0.5, 29.0),
    "near-cheap": (5.0, 39.0),
    "far": (5.0, 20.0),
    "near-dear": (9.0, 49.0),
}


def test_each_system_below_the_line_is_tested_against_the_one_on_it_that_costs_no_more() -> None:
    asked: dict[str, list[str]] = {}

    def tests(leader: str, others: Sequence[str]) -> dict[str, Gap]:
        asked[leader] = list(others)
        moved = {name: PLACED[name][1] - PLACED[leader][1] for name in others}
        return {name: Gap(gap, None, None, 0.5, 0.01 if abs(gap) > 5 else 0.5) for name, gap in moved.items()}

    assert near_line(PLACED, tests) == {"near-free": "free", "near-cheap": "cheap", "near-dear": "dear"}
    assert asked == {"free": ["near-free"], "cheap": ["near-cheap", "far"], "dear": ["near-dear"]}
    assert near_line({}, tests) == {}
