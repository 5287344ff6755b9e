"""Planted controls: items with a known answer that look like all others. They show how often a rater errs.

Requests to an LLM have no memory, so a judge does not know which of its items are controls. Some controls are asked
first, and a judge that fails them is not used. Others are mixed into the pool, and if they fail, the answers do not
count: a judge may be careful only in the beginning.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, zip_longest
from typing import TypeVar

import numpy as np

from r2med.assessment.rubrics.item import Item
from r2med.evaluation.measure.intervals import wilson
from r2med.foundation.pages.estimate import Estimate

FIRST = 40
"""Number of controls that are asked before the pool is paid for."""
FEWEST_FIRST = 20
"""Number of first controls below which a judge cannot be tested."""
FEWEST_MIXED = 40
"""Smallest number of controls in a pool."""
MIXED_IN = 20
"""One item of this many in a pool is a control."""
LEAST_SHARE = 0.65
"""The lower end of Wilson's 95 % interval of the share of right answers must be above this."""
LEAST_OF_KIND = 0.5
"""Share of the controls of each kind that must be right. A judge that always says the same gets a kind all wrong."""
FEWEST_OF_KIND = 10
"""Number of controls of one kind from which they say something alone."""
ONLY_WARN = frozenset(["relevant, without its answer"])
"""Kinds whose right answer is not certain. They never stop a judge."""


@dataclass(frozen=True)
class Control:
    """An item with a known answer."""

    item: Item
    kind: str
    yes: bool
    """True if the right answer is yes."""


@dataclass(frozen=True)
class KindCount:
    """How many controls of one kind a rater got right."""

    kind: str
    yes: bool
    asked: int
    right: int


@dataclass(frozen=True)
class ControlTest:
    """How a rater answered controls. No usable answer is a wrong answer."""

    counts: tuple[KindCount, ...] = ()

    @classmethod
    def of(cls, controls: Sequence[Control], said: Iterable[bool | None]) -> ControlTest:
        """Return the counts of each kind. `said` is True for yes, and None for no usable answer."""
        return cls.counted((control.kind, control.yes, yes) for control, yes in zip(controls, said, strict=True))

    @classmethod
    def counted(cls, answers: Iterable[tuple[str, bool, bool | None]]) -> ControlTest:
        """Return the counts of each kind from answers: the kind, the right answer, and what was said."""
        given = list(answers)
        asked = Counter((kind, yes) for kind, yes, _ in given)
        right = Counter((kind, yes) for kind, yes, said in given if said is yes)
        return cls(tuple(KindCount(*kind, count, right[kind]) for kind, count in sorted(asked.items())))

    def __add__(self, other: ControlTest) -> ControlTest:
        both = (*self.counts, *other.counts)
        kinds = dict.fromkeys((each.kind, each.yes) for each in both)
        sums = {kind: [each for each in both if (each.kind, each.yes) == kind] for kind in kinds}
        return ControlTest(
            tuple(
                KindCount(*kind, sum(e.asked for e in each), sum(e.right for e in each)) for kind, each in sums.items()
            )
        )

    @cached_property
    def deciding(self) -> tuple[KindCount, ...]:
        """The kinds that can stop a rater."""
        return tuple(each for each in self.counts if each.kind not in ONLY_WARN)

    def of_kinds_with(self, fewest: int) -> ControlTest:
        """Return the counts of kinds with at least this number of controls."""
        return ControlTest(tuple(each for each in self.counts if each.asked >= fewest))

    @property
    def asked(self) -> int:
        """Number of controls that decide."""
        return sum(each.asked for each in self.deciding)

    @property
    def right(self) -> int:
        """Number of right answers among them."""
        return sum(each.right for each in self.deciding)

    @property
    def share(self) -> Estimate | None:
        """The share of right answers with Wilson's interval; None if nothing was asked."""
        return share_of(self.right, self.asked)

    @property
    def failed_kind(self) -> str:
        """A sentence about the first kind that the rater gets mostly wrong; empty if it passes all kinds."""
        for each in self.deciding:
            if each.right < LEAST_OF_KIND * each.asked:
                word, wrong = ("yes" if each.yes else "no"), each.asked - each.right
                return f"it did not say {word} to {wrong} of {each.asked} controls that are {each.kind}"
        return ""

    @property
    def fault(self) -> str:
        """Why the rater fails; empty if it passes. Without controls there is no fault, and no test either."""
        if self.failed_kind:
            return self.failed_kind
        if self.share is not None and self.share.low is not None and self.share.low <= LEAST_SHARE:
            return (
                f"it answered {self.right} of {self.asked} controls right, and the lower end of the interval "
                f"({self.share.low:.0%}) is not above {LEAST_SHARE:.0%}"
            )
        return ""

    @property
    def warnings(self) -> tuple[str, ...]:
        """A sentence for each kind that only warns and is mostly wrong."""
        return tuple(
            f"it said yes to {each.asked - each.right} of {each.asked} passages that are {each.kind}"
            for each in self.counts
            if each.kind in ONLY_WARN and each.right < LEAST_OF_KIND * each.asked
        )


def share_of(right: int, asked: int) -> Estimate | None:
    """Return a share with Wilson's interval; None if nothing was asked."""
    if not asked:
        return None
    low, high = wilson(np.array(right / asked), np.array(float(asked))).tolist()
    return Estimate(right / asked, low, high)


@dataclass(frozen=True)
class PlantedControls:
    """The controls of a command: those that are asked first, and those that are mixed into the pool."""

    first: tuple[Control, ...] = ()
    mixed: tuple[Control, ...] = ()

    @property
    def is_enough(self) -> bool:
        """True if the controls can test a judge."""
        return sum(each.kind not in ONLY_WARN for each in self.first) >= FEWEST_FIRST

    def __len__(self) -> int:
        """Return the number of controls."""
        return len(self.first) + len(self.mixed)


def mixed_count(pool: int) -> int:
    """Return the number of controls that are mixed into a pool of this size."""
    return max(FEWEST_MIXED, -(-pool // MIXED_IN))


def plant(found: Mapping[str, Sequence[Control]], pool: int, seed: str) -> PlantedControls:
    """Choose the controls for a pool of this size from all that the labels give: kind -> controls.

    Half of them are to be answered yes, and kinds of the same answer are equally many as far as possible. `seed` are
    the names of the datasets. If there are too few, they are divided between those that come first and those that are
    mixed in.
    """
    chance = random.Random(seed)
    signs: dict[bool, list[Sequence[Control]]] = {True: [], False: []}
    for kind in sorted(found):
        if found[kind] and kind not in ONLY_WARN:
            signs[found[kind][0].yes].append(found[kind])
    yes, no = (in_turn(signs[sign]) for sign in (True, False))
    wanted = mixed_count(pool)
    pairs = min(len(yes), len(no), (FIRST + wanted) // 2)
    ordered = list(chain.from_iterable(zip(yes[:pairs], no[:pairs], strict=True)))
    begin = min(FIRST, len(ordered) // 2 if len(ordered) < FIRST + wanted else FIRST)
    begin += begin % 2  # as many yes as no
    only_warn = [control for kind in sorted(ONLY_WARN & found.keys()) for control in found[kind]][: FEWEST_FIRST // 2]
    ahead, mixed = ordered[:begin], ordered[begin:] + only_warn
    chance.shuffle(ahead)
    chance.shuffle(mixed)
    return PlantedControls(tuple(ahead), tuple(mixed))


Entry = TypeVar("Entry")


def in_turn(lists: Sequence[Sequence[Entry]]) -> list[Entry]:
    """Return the first entry of every list, then the second of every one, and so on."""
    missing = object()
    turns = chain.from_iterable(zip_longest(*lists, fillvalue=missing))
    return [entry for entry in turns if entry is not missing]  # type: ignore[misc]
