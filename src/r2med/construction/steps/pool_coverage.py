"""How far a pool of candidates can be trusted to hold all positives: who contributed what, and what nobody found.

A pool holds only what a member proposed, so positives that no member retrieved are never judged. How many there are
is estimated in the two ways that ecologists count animals nobody saw:

- **Leave one out.** What a member found is a sample of the positives. The share of it that the others found too tells
  how much of all positives the others cover. The members in turn give one figure for the pool with one member fewer,
  and the full pool covers more than that.
- **Chao's lower bound.** Positives that exactly one member found (f1), and exactly two (f2), tell how many nobody did:
  (T − 1)/T · f1 (f1 − 1) / (2 (f2 + 1)) for T members.

Members that search alike miss alike, so both are too low rather than too high. The source itself, whose links were made
by people and not by searching, counts as a member and is the most independent of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from r2med.construction.items import Candidate

SOURCE = "source"
"""The member of first positives: what the source of a question links to."""


@dataclass(frozen=True)
class Contribution:
    """What one member, or one view, brought into a pool."""

    proposed: int
    alone: int
    """Of these, what nobody else proposed."""


def contributions(candidates: Iterable[Candidate]) -> dict[str, dict[str, Contribution]]:
    """Return what each member and each view contributed, and what each alone did."""
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
    """How much of the positives a pool holds, by what its members found in common."""

    positives: int
    shared: dict[str, tuple[int, int]]
    """For each member the positives that it found, and how many of these others found too."""
    once: int
    twice: int

    @classmethod
    def of(cls, positives: Iterable[Candidate]) -> Coverage:
        """Return the coverage of candidates that are known to be positives."""
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
        """About how many positives nobody found, judged by what each member found and the others missed."""
        found, shared = (sum(column) for column in zip(*self.shared.values(), strict=True)) if self.shared else (0, 0)
        return self.positives * (found - shared) / shared if shared and len(self.shared) > 1 else None

    @property
    def at_least(self) -> float | None:
        """Chao's lower bound of the positives that nobody found."""
        members = len(self.shared)
        if members < 2:
            return None
        return (members - 1) / members * self.once * (self.once - 1) / (2 * (self.twice + 1))


@dataclass(frozen=True)
class FirstPositives:
    """How many of the chunks that the source links a committee retrieves: known before anything is judged."""

    given: int
    retrieved: int
    without: dict[str, int]
    """For each member, how many would be retrieved if it were not in the committee."""

    @classmethod
    def of(cls, candidates: Iterable[Candidate]) -> FirstPositives:
        """Return it for a pool; what the source does not link has no part in it."""
        given, sets = 0, Counter[frozenset[str]]()
        for candidate in candidates:
            members = frozenset(each.member for each in candidate.found)
            if SOURCE in members:
                given += 1
                sets[members - {SOURCE}] += 1
        names = sorted(frozenset[str]().union(*sets))
        without = {name: sum(count for found, count in sets.items() if found - {name}) for name in names}
        return cls(given, given - sets[frozenset()], without)
