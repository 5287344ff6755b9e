"""What each member and each view contributed to a pool of candidates."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from r2med.construction.items import Candidate

SOURCE = "source"
"""Name of the member that represents the links of a question's source."""


@dataclass(frozen=True)
class Contribution:
    """The number of candidates that one member or one view added to a pool."""

    proposed: int
    alone: int
    """Candidates that no other member or view proposed."""


def contributions(candidates: Iterable[Candidate]) -> dict[str, dict[str, Contribution]]:
    """Return the contribution of each member and of each view."""
    counts = {"members": (Counter[str](), Counter[str]()), "views": (Counter[str](), Counter[str]())}
    for candidate in candidates:
        for kind, names in (
            ("members", {found.member for found in candidate.found}),
            ("views", {found.view for found in candidate.found}),
        ):
            proposed, alone = counts[kind]
            proposed.update(names)
            alone.update(names if len(names) == 1 else ())
    return {
        kind: {name: Contribution(count, alone[name]) for name, count in sorted(proposed.items())}
        for kind, (proposed, alone) in counts.items()
    }
