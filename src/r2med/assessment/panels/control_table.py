"""The table of how judges answered their controls."""

from __future__ import annotations

from collections.abc import Mapping

from r2med.assessment.panels.planted_controls import LEAST_SHARE, ControlTest, share_of
from r2med.foundation.pages.page import Table


def control_table(tests: Mapping[str, ControlTest], title: str = "", name: str = "") -> Table:
    """Return the share of controls of each kind that each judge got right. `tests` are those of judges by name."""
    rows = [
        [judge, count.kind, "yes" if count.yes else "no", count.asked, share_of(count.right, count.asked)]
        for judge, test in tests.items()
        for count in test.counts
    ]
    note = (
        "Share of controls that the judge gets right. A judge is not used if it gets less than half of a kind right, "
        f"or if the lower end of the interval of all kinds is not above {LEAST_SHARE:.0%}. Labels of the dataset can "
        "be wrong too, so less than 100 % is normal."
    )
    return Table.of(("judge", "control", "right answer", "asked", "right"), rows, title, note, name=name)
