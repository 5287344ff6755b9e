"""Measures as values: a measure prints as it is typed, `nDCG@10`, and parses back."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from r2med.core.errors import UserError, unknown
from r2med.data.dataset_cards import BENCHMARK, DatasetCard

FAMILIES = ("nDCG", "MAP", "R", "P", "MRR")
ALIASES = {"recall": "R", "precision": "P"}

CUTOFFS = (1, 3, 5, 10, 20, 25, 50, 100, 1000)

_FORM = re.compile(r"([A-Za-z]+)(?:@([0-9]{1,9}))?")


@dataclass(frozen=True, order=True)
class Measure:
    """A family of measures with a cutoff. Without a cutoff it is computed over the whole ranking."""

    family: str
    """The name without the cutoff, such as nDCG."""
    cutoff: int | None = None
    """The number of documents that count; None for the whole ranking."""

    def __str__(self) -> str:
        return self.family if self.cutoff is None else f"{self.family}@{self.cutoff}"

    @classmethod
    def parse(cls, text: str) -> Measure:
        """Return the measure that prints as `text`, in any case. `Recall@10` and `Precision@10` are accepted too."""
        match = _FORM.fullmatch(text.strip())
        by_lower = {**{name.lower(): name for name in FAMILIES}, **ALIASES}
        family = by_lower.get(match[1].lower()) if match else None
        if match is None or family is None:
            at = match[2] if match and match[2] else "10"
            raise unknown("measure", text[:60], [name if name == "MRR" else f"{name}@{at}" for name in FAMILIES])
        cutoff = int(match[2]) if match[2] else None
        if cutoff == 0 or (cutoff is None and family in ("R", "P")):
            raise UserError(f"{text!r} needs a cutoff of at least 1, such as {family}@10")
        return cls(family, cutoff)


DEFAULT_MEASURES = (
    *(Measure(family, cutoff) for family in ("nDCG", "MAP", "R", "P") for cutoff in CUTOFFS),
    Measure("MRR"),
)
HEADLINE_MEASURE = Measure("nDCG", 10)
"""The main measure of the benchmark's tables."""


def recorded_measure(text: str) -> str:
    """Return the name of a measure that every record holds. Raises UserError if it is not one of them."""
    name = str(Measure.parse(text))
    if name not in map(str, DEFAULT_MEASURES):
        raise UserError(f"records do not hold {name}: choose one of {', '.join(map(str, DEFAULT_MEASURES))}")
    return name


def group_means(values: Mapping[str, float], cards: Mapping[str, DatasetCard | None]) -> dict[str, float]:
    """Return label -> unweighted mean. Every dataset has the same weight, however many queries it has.

    The means of the benchmark and of its tasks do not include other datasets.
    """
    means = {"average": _mean(list(values.values()))}
    members = {name: value for name, value in values.items() if (card := cards.get(name)) and BENCHMARK in card.groups}
    averaged = members or values
    if 0 < len(members) < len(values):
        means[BENCHMARK] = _mean(list(members.values()))
    tasks = dict.fromkeys(task for name in averaged if (task := _task(cards.get(name))))
    if len(tasks) > 1:
        for task in tasks:
            means[task] = _mean([v for name, v in averaged.items() if _task(cards.get(name)) == task])
    apart = [name for name in averaged if (card := cards.get(name)) is not None and card.also_averaged_without]
    if apart and len(apart) < len(averaged):
        means[f"without {', '.join(apart)}"] = _mean([v for name, v in averaged.items() if name not in apart])
    return means


def _task(card: DatasetCard | None) -> str:
    return card.task if card is not None else ""


def _mean(values: list[float]) -> float:
    return sum(values) / len(values) if values else 0.0
