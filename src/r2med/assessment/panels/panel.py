"""A panel: raters that first answer planted controls, then rate a pool with further controls among its items."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from r2med.assessment.panels.planted_controls import FEWEST_FIRST, FEWEST_OF_KIND, ControlTest, PlantedControls
from r2med.assessment.panels.raters import LLMRater
from r2med.assessment.panels.ratings import Rating
from r2med.assessment.rubrics.item import Item
from r2med.foundation.core.errors import UserError

Trust = Literal["", "not tested", "failed its controls"]
UNTESTED: Trust = "not tested"
FAILED: Trust = "failed its controls"
"""What is said about a judge that had too few controls, and about one whose answers count in spite of its faults."""


@dataclass(frozen=True)
class JudgeTest:
    """How a judge answered its controls: those that came first, and those among the items of the pool."""

    judge: str
    first: ControlTest = field(default_factory=ControlTest)
    mixed: ControlTest = field(default_factory=ControlTest)
    untested: bool = False
    """True if there were too few controls."""

    @property
    def fault(self) -> str:
        """Why the answers about the pool do not count; empty if they do."""
        return self._fault(self.mixed)

    @property
    def any_fault(self) -> str:
        """Why the judge fails, in the first controls or among the items; empty if it passes."""
        return self._fault(self.first) or self.fault

    def _fault(self, test: ControlTest) -> str:
        """Return the fault.

        Too few controls have a wide interval, so a judge that is not tested fails only if it gets most of a kind wrong.
        """
        return test.of_kinds_with(FEWEST_OF_KIND).failed_kind if self.untested else test.fault

    @property
    def trust(self) -> Trust:
        """What readers of the labels must know: empty, "not tested" or "failed its controls"."""
        return FAILED if self.fault else UNTESTED if self.untested else ""

    @property
    def both(self) -> ControlTest:
        """All controls together."""
        return self.first + self.mixed


@dataclass(frozen=True)
class Rated:
    """What one judge said about a pool."""

    test: JudgeTest
    ratings: Mapping[int, Rating]
    """Number of the item in the pool -> rating."""
    failures: Mapping[int, str]
    """Number of the item -> kind of failure."""


@dataclass(frozen=True)
class Panel:
    """Judges and their controls."""

    judges: Sequence[LLMRater]
    controls: PlantedControls
    untested: bool = False
    """True if judges are used although there are too few controls."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """Source of items -> the label of this dataset in the store."""

    def check(self, advice: str) -> None:
        """Raise UserError if there are too few controls to test a judge, unless `untested` is set.

        `advice` says what the user can do.
        """
        if not self.untested and not self.controls.is_enough:
            raise UserError(
                f"there are {len(self.controls.first)} planted controls to ask first, and a judge is tested with "
                f"{FEWEST_FIRST} or more: {advice}"
            )

    def items(self, pool: Sequence[Item]) -> list[Item]:
        """Return everything that each judge is asked: the controls, then the pool."""
        return [*(control.item for control in (*self.controls.first, *self.controls.mixed)), *pool]

    def test(self, judge: LLMRater, what: str) -> ControlTest:
        """Ask a judge the first controls. Raises UserError if it fails them; `what` is what it would judge."""
        found = self.ask_first(judge)
        if self.controls.is_enough and found.fault:
            raise UserError(f"{judge.name} cannot judge {what}: {found.fault}; use another LLM or prompt")
        return found

    def ask_first(self, judge: LLMRater) -> ControlTest:
        """Ask a judge the first controls."""
        first = self.controls.first
        ratings, _ = self._ask(judge, [control.item for control in first])
        return ControlTest.of(first, (judge.says_yes(ratings.get(number)) for number in range(len(first))))

    def rate(self, judge: LLMRater, first: ControlTest, pool: Sequence[Item]) -> Rated:
        """Ask a judge about a pool with controls among its items. `first` is how it answered the first controls."""
        mixed = self.controls.mixed
        ratings, failures = self._ask(judge, [*pool, *(control.item for control in mixed)])
        size = len(pool)
        test = ControlTest.of(mixed, (judge.says_yes(ratings.get(size + number)) for number in range(len(mixed))))
        return Rated(
            JudgeTest(judge.name, first, test, untested=not self.controls.is_enough),
            {number: rating for number, rating in ratings.items() if number < size},
            {number: kind for number, kind in failures.items() if number < size},
        )

    def _ask(self, judge: LLMRater, items: Sequence[Item]) -> tuple[dict[int, Rating], dict[int, str]]:
        """Return the ratings and the failures by the number of the item.

        Items are asked by their source, in an order within it that says nothing about them.
        """
        planted = {each.item.token: each.kind for each in (*self.controls.first, *self.controls.mixed)}
        found: dict[int, Rating] = {}
        failures: dict[int, str] = {}
        for source in dict.fromkeys(item.source for item in items):
            numbers = [number for number, item in enumerate(items) if item.source == source]
            random.Random(source).shuffle(numbers)
            asked = [items[number] for number in numbers]
            ratings, lost = judge.about(self.labels.get(source, "")).rate(asked, planted)
            found |= {number: each for number, each in zip(numbers, ratings, strict=True) if each is not None}
            failures |= {numbers[place]: kind for place, kind in lost.items()}
        return found, failures
