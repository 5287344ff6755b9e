"""Labels for systems whose names would fill the table: what each stands for is told above it."""

from __future__ import annotations

from collections.abc import Sequence

LINES = 3
"""Lines of a table's first column that a name may take."""

WIDEST = len("100.00")


def labelled(names: Sequence[str], heads: Sequence[str], width: int) -> tuple[list[str], list[str]]:
    """Return what stands in the first column of a table, and a line for each name that a label stands for."""
    room = max(WIDEST, width - sum(1 + max(len(head), WIDEST) for head in heads))
    long = {name: f"[{number}]" for number, name in enumerate((n for n in names if len(n) > LINES * room), 1)}
    return [long.get(name, name) for name in names], [f"{label} {name}" for name, label in long.items()]
