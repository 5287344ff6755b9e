"""Estimate how many relevant documents a pool of candidates misses, and what each member contributed.

A pool holds only what a member proposed, so relevant documents that no member retrieved are never judged. Their number
is estimated in the two ways in which ecologists count animals that they did not see:

- **Leave one out.** What one member found is a sample of the relevant documents. The share of it that the other members
  found too estimates how much of all relevant documents they cover. The mean over the members is an estimate for a pool
  with one member fewer. The full pool covers more.
- **Chao's lower bound.** If exactly one member found f1 relevant documents, and exactly two members found f2, then at
  least (T − 1)/T · f1 (f1 − 1) / (2 (f2 + 1)) were not found, for T members.

Similar members miss the same documents, so both estimates are too low rather than too high. The source itself counts as
a member. It is the most independent one, because its links were made by people and not by a search.
"""

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


@dataclass(frozen=True)
class Coverage:
    """The share of the relevant documents that a pool holds, estimated from the overlap of its members."""

    positives: int
    shared: dict[str, tuple[int, int]]
    """For each member, the number of relevant documents that it found, and how many of them others found too."""
    once: int
    twice: int

    @classmethod
    def of(cls, positives: Iterable[Candidate]) -> Coverage:
        """Return the coverage from candidates that are known to be relevant."""
        found, shared, times, total = Counter[str](), Counter[str](), Counter[int](), 0
        for candidate in positives:
            members = {each.member for each in candidate.found}
            total += 1
            times[len(members)] += 1
            found.update(members)
            shared.update(members if len(members) > 1 else ())
        return cls(total, {name: (found[name], shared[name]) for name in sorted(found)}, times[1], times[2])

    @property
    def leave_one_out(self) -> float | None:
        """Estimated number of relevant documents that no member found, by the leave-one-out method."""
        found, shared = (sum(column) for column in zip(*self.shared.values(), strict=True)) if self.shared else (0, 0)
        return self.positives * (found - shared) / shared if shared and len(self.shared) > 1 else None

    @property
    def at_least(self) -> float | None:
        """Chao's lower bound of the relevant documents that no member found."""
        members = len(self.shared)
        if members < 2:
            return None
        once = self.once * (self.once - 1)  # an integer: a float would be -0.0 if nothing was found once
        return (members - 1) / members * once / (2 * (self.twice + 1))


@dataclass(frozen=True)
class LinkedChunks:
    """How many of the chunks that the source links a committee retrieves. This is known before anything is judged."""

    given: int
    retrieved: int
    without: dict[str, int]
    """For each member, the number of linked chunks that the committee would retrieve without it."""

    @classmethod
    def of(cls, candidates: Iterable[Candidate]) -> LinkedChunks:
        """Count the linked chunks of a pool. Candidates that the source does not link are ignored."""
        given, sets = 0, Counter[frozenset[str]]()
        for candidate in candidates:
            members = frozenset(each.member for each in candidate.found)
            if SOURCE in members:
                given += 1
                sets[members - {SOURCE}] += 1
        names = sorted(frozenset[str]().union(*sets))
        without = {name: sum(count for found, count in sets.items() if found - {name}) for name in names}
        return cls(given, given - sets[frozenset()], without)
