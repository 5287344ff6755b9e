"""A panel: raters that first answer planted controls, and then rate a pool."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from r2med.assessment.panels.planted_controls import FEWEST_CONTROLS, Control, ControlTest, can_test
from r2med.assessment.panels.raters import LLMRater
from r2med.assessment.panels.ratings import Rating
from r2med.assessment.rubrics.item import Item
from r2med.foundation.core.errors import UserError


@dataclass(frozen=True)
class Rated:
    """What one judge said about a pool."""

    ratings: Mapping[int, Rating]
    """Number of the item in the pool -> rating."""
    failures: Mapping[int, str]
    """Number of the item -> kind of failure."""


@dataclass(frozen=True)
class Panel:
    """Judges and their controls."""

    judges: Sequence[LLMRater]
    controls: Sequence[Control]
    untested: bool = False
    """True if judges are used although there are too few controls."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """Source of items -> the label of this dataset in the store."""

    def check(self, advice: str) -> None:
        """Raise UserError if there are too few controls to test a judge, unless `untested` is set.

        `advice` says what the user can do.
        """
        if not self.untested and not can_test(self.controls):
            raise UserError(
                f"there are {len(self.controls)} planted controls, and a judge is tested with {FEWEST_CONTROLS} or "
                f"more: {advice}"
            )

    def items(self, pool: Sequence[Item]) -> list[Item]:
        """Return everything that each judge is asked: the controls, then the pool."""
        return [*(control.item for control in self.controls), *pool]

    def test(self, judge: LLMRater, what: str) -> ControlTest:
        """Ask a judge the controls. Raises UserError if it fails them; `what` is what it would judge."""
        found = self.ask_controls(judge)
        if found.fault:
            raise UserError(f"{judge.name} cannot judge {what}: {found.fault}; use another LLM or prompt")
        return found

    def ask_controls(self, judge: LLMRater) -> ControlTest:
        """Return how a judge answers the controls."""
        ratings = self.rate(judge, [control.item for control in self.controls]).ratings
        said = (judge.says_yes(ratings.get(number)) for number in range(len(self.controls)))
        return ControlTest.of(self.controls, said)

    def rate(self, judge: LLMRater, items: Sequence[Item]) -> Rated:
        """Ask a judge about items.

        They are asked by their source, in an order within it that says nothing about them.
        """
        found: dict[int, Rating] = {}
        failures: dict[int, str] = {}
        for source in dict.fromkeys(item.source for item in items):
            numbers = [number for number, item in enumerate(items) if item.source == source]
            random.Random(source).shuffle(numbers)
            asked = [items[number] for number in numbers]
            ratings, lost = judge.about(self.labels.get(source, "")).rate(asked)
            found |= {number: each for number, each in zip(numbers, ratings, strict=True) if each is not None}
            failures |= {numbers[place]: kind for place, kind in lost.items()}
        return Rated(found, failures)
