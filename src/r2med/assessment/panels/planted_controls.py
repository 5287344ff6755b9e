"""Planted controls: items with a known answer that look like all others. They show how often a rater errs.

Requests to an LLM have no memory, so a judge does not know which of its items are controls. All controls are asked
first, before anything else is paid for, and a judge that fails them is not used.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, zip_longest
from typing import Literal, TypeVar

import numpy as np

from r2med.assessment.rubrics.item import Item
from r2med.evaluation.measure.intervals import wilson
from r2med.foundation.pages.cells import Estimate

CONTROLS = 80
"""Number of controls that a judge is asked."""
FEWEST_CONTROLS = 20
"""Number of controls below which a judge cannot be tested: half to be answered yes, and half no."""
Trust = Literal["", "not tested"]
UNTESTED: Trust = "not tested"
"""What is said about a judge that had too few controls."""
LEAST_SHARE = 0.65
"""The lower end of Wilson's 95 % interval of the share of right answers must be above this."""
LEAST_OF_KIND = 0.5
"""Share of the controls of each kind that must be right. A judge that always says the same gets a kind all wrong."""
FEWEST_OF_KIND = 10
"""Number of controls of one kind from which they say something alone."""
WARNING_CONTROLS = 10
"""Number of further controls that only warn."""
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

    @cached_property
    def deciding(self) -> tuple[KindCount, ...]:
        """The kinds that can stop a rater."""
        return tuple(each for each in self.counts if each.kind not in ONLY_WARN)

    @property
    def asked(self) -> int:
        """Number of controls that decide."""
        return sum(each.asked for each in self.deciding)

    @property
    def right(self) -> int:
        """Number of right answers among them."""
        return sum(each.right for each in self.deciding)

    @property
    def is_enough(self) -> bool:
        """True if the controls can test a rater: there are enough to be answered yes, and enough to be answered no."""
        return all(
            2 * sum(each.asked for each in self.deciding if each.yes == yes) >= FEWEST_CONTROLS for yes in (True, False)
        )

    @property
    def trust(self) -> Trust:
        """What readers of the answers must know: empty or "not tested"."""
        return "" if self.is_enough else UNTESTED

    @property
    def share(self) -> Estimate | None:
        """The share of right answers with Wilson's interval; None if nothing was asked."""
        return share_of(self.right, self.asked)

    @property
    def failed_kind(self) -> str:
        """A sentence about the first kind that the rater gets mostly wrong; empty if it passes all kinds.

        If there are too few controls for a test, only kinds with enough of them count.
        """
        fewest = 1 if self.is_enough else FEWEST_OF_KIND
        for each in self.deciding:
            if each.asked >= fewest and each.right < LEAST_OF_KIND * each.asked:
                word, wrong = ("yes" if each.yes else "no"), each.asked - each.right
                return f"it did not say {word} to {wrong} of {each.asked} controls that are {each.kind}"
        return ""

    @property
    def fault(self) -> str:
        """Why the rater fails; empty if it passes, or if there are too few controls for a test."""
        if self.failed_kind or not self.is_enough:
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


def can_test(controls: Iterable[Control]) -> bool:
    """Return True if there are enough controls to test a judge."""
    return ControlTest.counted((each.kind, each.yes, None) for each in controls).is_enough


def plant(found: Mapping[str, Sequence[Control]], seed: str) -> tuple[Control, ...]:
    """Choose the controls of a command from all that the labels give: kind -> controls.

    Half of them are to be answered yes, and kinds of the same answer are equally many as far as possible. `seed` are
    the names of the datasets.
    """
    signs: dict[bool, list[Sequence[Control]]] = {True: [], False: []}
    for kind in sorted(found):
        if found[kind] and kind not in ONLY_WARN:
            signs[found[kind][0].yes].append(found[kind])
    yes, no = (in_turn(signs[sign]) for sign in (True, False))
    pairs = min(len(yes), len(no), CONTROLS // 2)
    only_warn = [control for kind in sorted(ONLY_WARN & found.keys()) for control in found[kind]][:WARNING_CONTROLS]
    controls = [*yes[:pairs], *no[:pairs], *only_warn]
    random.Random(seed).shuffle(controls)
    return tuple(controls)


Entry = TypeVar("Entry")


def in_turn(lists: Sequence[Sequence[Entry]]) -> list[Entry]:
    """Return the first entry of every list, then the second of every one, and so on."""
    missing = object()
    turns = chain.from_iterable(zip_longest(*lists, fillvalue=missing))
    return [entry for entry in turns if entry is not missing]  # type: ignore[misc]
