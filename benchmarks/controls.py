"""How often planted controls stop a bad judge, and how often they stop a good one, by simulation.

    python benchmarks/controls.py [FOLDER] [--judges 1000]

Controls are made from the labels of a dataset: FOLDER, or the bundled demo. Scripted judges answer them through the
same panel as `r2med judge`. Seeds are fixed.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from r2med.assessment.judgements.passage_controls import LabelledDataset, passage_controls
from r2med.assessment.panels.panel import Panel
from r2med.assessment.panels.planted_controls import Control, in_turn, plant
from r2med.assessment.panels.ratings import Rating
from r2med.assessment.rubrics.item import Item
from r2med.assessment.rubrics.rubric import RUBRICS
from r2med.data import load
from r2med.data.dataset_cards import groups

NEAR, ORDERS = "relevant to a near query", "unrelated, with orders to the judge"

Answer = Callable[[bool, str, random.Random], bool]
"""The right answer, the kind of the item (empty if it is not a control) and chance -> True for yes."""


def share(right: float) -> Answer:
    """Return a judge that is right in this share of all items."""
    return lambda yes, kind, chance: yes if chance.random() < right else not yes


GOOD = share(0.9)
JUDGES: Mapping[str, Answer] = {
    "a coin": share(0.5),
    "always yes": lambda yes, kind, chance: True,
    "always no": lambda yes, kind, chance: False,
    "right in 60 % of each kind": share(0.6),
    "obeys orders": lambda yes, kind, chance: kind == ORDERS or GOOD(yes, kind, chance),
    "yes to everything on topic": lambda yes, kind, chance: kind == NEAR or GOOD(yes, kind, chance),
    "right in 90 % of each kind": GOOD,
}


@dataclass
class ScriptedRater:
    """A judge that answers by a function."""

    answer: Answer
    kinds: Mapping[str, tuple[bool, str]]
    """Token of a control -> right answer and kind."""
    seed: str
    name: str = "scripted"

    def about(self, label: str) -> ScriptedRater:
        """Return this judge: it keeps no answers."""
        return self

    def rate(self, items: Sequence[Item], planted: Any) -> tuple[list[Rating | None], dict[int, str]]:
        """Rate every item, as an LLM would."""
        chance = random.Random(f"{self.seed} {items[0].token}")
        said = [self.answer(*self.kinds[item.token], chance) for item in items]
        grades = ["3" if yes else "0" for yes in said]
        return [Rating(item.token, self.name, {"grade": g}) for item, g in zip(items, grades, strict=True)], {}

    def says_yes(self, rating: Rating | None) -> bool | None:
        """Return True if a rating means yes."""
        return None if rating is None else rating.word == "3"


def found_controls(folder: Path | None) -> dict[str, list[Control]]:
    """Return the controls of each kind."""
    datasets = [load(folder)] if folder else [load(name) for name in groups()["demo"]]
    rubric = RUBRICS["relevance"]
    kinds = [passage_controls(LabelledDataset(each, {}), rubric) for each in datasets]
    return {kind: in_turn([each[kind] for each in kinds]) for kind in rubric.controls}


def passes(found: Mapping[str, Sequence[Control]], judge: Answer, number: int) -> bool:
    """Return True if a judge passes its controls."""
    shuffled = {kind: random.Random(f"{number} {kind}").sample(each, len(each)) for kind, each in found.items()}
    planted = plant(shuffled, str(number))
    rater: Any = ScriptedRater(judge, {each.item.token: (each.yes, each.kind) for each in planted}, f"judge {number}")
    panel = Panel([rater], planted)
    panel.check("name a dataset with more labels")
    return not panel.ask_controls(rater).fault


def main() -> None:
    """Print how many of the judges pass."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--judges", type=int, default=1000)
    given = parser.parse_args()
    found = found_controls(given.folder)
    print("controls:", ", ".join(f"{len(each):,} {kind}" for kind, each in found.items()))
    print(f"{'judge':<32} {'passes':>8}")
    for name, judge in JUDGES.items():
        passed = sum(passes(found, judge, number) for number in range(given.judges))
        print(f"{name:<32} {passed / given.judges:>8.1%}", flush=True)


if __name__ == "__main__":
    main()
