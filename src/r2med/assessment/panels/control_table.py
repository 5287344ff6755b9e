"""The table of how judges answered their controls."""

from __future__ import annotations

from collections.abc import Iterable

from r2med.assessment.panels.panel import JudgeTest
from r2med.assessment.panels.planted_controls import LEAST_SHARE, share_of
from r2med.foundation.pages.page import Table


def control_table(tests: Iterable[JudgeTest], title: str = "", name: str = "") -> Table:
    """Return the share of controls of each kind that each judge got right."""
    rows = [
        [test.judge, when, count.kind, "yes" if count.yes else "no", count.asked, share_of(count.right, count.asked)]
        for test in tests
        for when, part in (("first", test.first), ("in the pool", test.mixed))
        for count in part.counts
    ]
    note = (
        "Share of controls that the judge gets right. A judge is not used if it gets less than half of a kind right, "
        f"or if the lower end of the interval of all kinds is not above {LEAST_SHARE:.0%}. Labels of the dataset can "
        "be wrong too, so less than 100 % is normal."
    )
    heads = ("judge", "asked when", "control", "right answer", "asked", "right")
    return Table.of(heads, rows, title, note, name=name)
