"""How often planted controls stop a bad judge, and how often they stop a good one, by simulation.

    python benchmarks/controls.py [FOLDER] [--judges 1000]

Controls are made from the labels of a dataset: FOLDER, or the bundled demo. Scripted judges answer them through the
same panel as `r2med judge`: 40 controls first, then a pool of 500 passages with 40 further controls among them. Some
judges are bad from the beginning, others only after their first hundred answers. Seeds are fixed.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from r2med.assessment.judgements.committee import UnjudgedPool, pool_items
from r2med.assessment.judgements.passage_controls import LabelledDataset, passage_controls
from r2med.assessment.panels.panel import Panel
from r2med.assessment.panels.planted_controls import Control, in_turn, plant
from r2med.assessment.panels.ratings import Rating
from r2med.assessment.rubrics.item import Item
from r2med.assessment.rubrics.rubric import RUBRICS
from r2med.data import load
from r2med.data.dataset_cards import groups
from r2med.foundation.core.errors import UserError

POOL = 500
HONEST_FOR = 100
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
    """A judge that answers by a function, and by another one in its first answers."""

    answer: Answer
    kinds: Mapping[str, tuple[bool, str]]
    """Token of a control -> right answer and kind."""
    seed: str
    first: Answer | None = None
    name: str = "scripted"
    asked: int = 0

    def rate(self, items: Sequence[Item], within: Any, planted: Any) -> tuple[list[Rating | None], dict[int, str]]:
        """Rate every item, as an LLM would."""
        chance = random.Random(f"{self.seed} {self.asked}")
        ratings: list[Rating | None] = []
        for item in items:
            honest = self.first is not None and self.asked < HONEST_FOR
            says = self.first if honest and self.first else self.answer
            yes, kind = self.kinds.get(item.token, (False, ""))
            ratings.append(Rating(item.token, self.name, {"grade": "3" if says(yes, kind, chance) else "0"}))
            self.asked += 1
        return ratings, {}

    def says_yes(self, rating: Rating | None) -> bool | None:
        """Return True if a rating means yes."""
        return None if rating is None else rating.word == "3"


def found_controls(folder: Path | None) -> tuple[dict[str, list[Control]], list[Item]]:
    """Return the controls of each kind, and passages that stand for a pool."""
    datasets = [load(folder)] if folder else [load(name) for name in groups()["demo"]]
    rubric = RUBRICS["relevance"]
    kinds = [passage_controls(LabelledDataset(each, {}), rubric) for each in datasets]
    found = {kind: in_turn([each[kind] for each in kinds]) for kind in rubric.controls}
    items: list[Item] = []
    for dataset in datasets:
        documents = [document for document, _ in zip((name for name, _ in dataset.corpus), range(POOL), strict=False)]
        chosen = {query.id: tuple(documents[: POOL // len(dataset.queries) + 1]) for query in dataset.queries}
        items += pool_items(UnjudgedPool(dataset, chosen, ()), rubric)
    return found, items[:POOL]


def outcomes(
    found: Mapping[str, Sequence[Control]], pool: Sequence[Item], judge: Answer, first: Answer | None, number: int
) -> tuple[bool, bool]:
    """Return True if a judge passes the first controls, and True if it then passes those in the pool."""
    shuffled = {kind: random.Random(f"{number} {kind}").sample(each, len(each)) for kind, each in found.items()}
    planted = plant(shuffled, len(pool), str(number))
    kinds = {each.item.token: (each.yes, each.kind) for each in (*planted.first, *planted.mixed)}
    rater: Any = ScriptedRater(judge, kinds, str(number), first)
    panel = Panel([rater], planted)
    panel.check()
    try:
        test = panel.test(rater, "the pool")
    except UserError:
        return False, False
    return True, not panel.rate(rater, test, pool).test.fault


def main() -> None:
    """Print how many of the judges pass."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--judges", type=int, default=1000)
    given = parser.parse_args()
    found, pool = found_controls(given.folder)
    print("controls:", ", ".join(f"{len(each):,} {kind}" for kind, each in found.items()))
    print(f"{'judge':<32} {'passes first':>14} {'and the pool':>14} {'good at first, then noticed':>28}")
    for name, judge in JUDGES.items():
        whole = [outcomes(found, pool, judge, None, number) for number in range(given.judges)]
        late = [outcomes(found, pool, judge, share(1.0), number) for number in range(given.judges)]
        begun = [passed for started, passed in late if started]
        shares = [sum(column) / given.judges for column in zip(*whole, strict=True)]
        print(f"{name:<32} {shares[0]:>14.1%} {shares[1]:>14.1%} {1 - sum(begun) / len(begun):>28.1%}", flush=True)


if __name__ == "__main__":
    main()
