"""Cut the queries of a benchmark into slices: by task, scenario, body system, query length or number of positives."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from r2med.core.errors import unknown
from r2med.measure.scores import Floats
from r2med.measure.significance import Integers, Values

UNKNOWN = "not stated"


@dataclass(frozen=True)
class SliceFacts:
    """What the slices of one dataset depend on; a line per judged query."""

    task: str
    scenario: str
    words: Integers
    positives: Integers
    body_systems: tuple[str, ...]


@dataclass(frozen=True)
class Slice:
    """Some of the queries: dataset -> positions in its arrays."""

    kind: str
    label: str
    queries: Mapping[str, Integers]

    def __len__(self) -> int:
        return sum(map(len, self.queries.values()))

    def cut(self, values: Values) -> dict[str, Floats]:
        """Return the values of these queries.

        A slice of whole datasets is averaged as all are, dataset by dataset. Elsewhere every query counts the same: a
        dataset of which one query is in the slice must not weigh as much as one of which there are fifty.
        """
        parts = {dataset: values[dataset][:, queries] for dataset, queries in self.queries.items()}
        return parts if self.kind in WHOLE else {self.label: np.hstack(list(parts.values()))}


Label = tuple[int, str]
"""Where a slice stands among those of its kind, and what it is called."""


def _task(facts: Mapping[str, SliceFacts]) -> Iterator[list[Label]]:
    return (_alike(fact.task, fact) for fact in facts.values())


def _scenario(facts: Mapping[str, SliceFacts]) -> Iterator[list[Label]]:
    return (_alike(fact.scenario, fact) for fact in facts.values())


def _alike(label: str, fact: SliceFacts) -> list[Label]:
    return [(0, label)] * len(fact.words)


def _body_system(facts: Mapping[str, SliceFacts]) -> Iterator[list[Label]]:
    return ([(0, label) for label in fact.body_systems] for fact in facts.values())


def _length(facts: Mapping[str, SliceFacts]) -> Iterator[list[Label]]:
    """Yield thirds of all the queries there are."""
    everything = np.concatenate([fact.words for fact in facts.values()])
    low, high = (int(bound) for bound in np.quantile(everything, [1 / 3, 2 / 3]))
    labels = [(0, f"up to {low} words"), (1, f"{low + 1} to {high} words"), (2, f"over {high} words")]
    return ([labels[third] for third in np.searchsorted([low, high], fact.words)] for fact in facts.values())


def _positives(facts: Mapping[str, SliceFacts]) -> Iterator[list[Label]]:
    labels = [(0, "1 positive"), (1, "2 positives"), (2, "3 or 4 positives"), (3, "5 or more positives")]
    return ([labels[level] for level in np.searchsorted([1, 2, 4], fact.positives)] for fact in facts.values())


_LABELS: Mapping[str, Callable[[Mapping[str, SliceFacts]], Iterator[list[Label]]]] = {
    "task": _task,
    "scenario": _scenario,
    "body-system": _body_system,
    "length": _length,
    "positives": _positives,
}

KINDS = tuple(_LABELS)
WHOLE = ("task", "scenario")


def slices(kind: str, facts: Mapping[str, SliceFacts]) -> list[Slice]:
    """Return the slices of a kind, in their order. Raises UserError if there is no such kind."""
    if kind not in KINDS:
        raise unknown("slice", kind, KINDS)
    members: dict[Label, dict[str, list[int]]] = {}
    for dataset, labels in zip(facts, _LABELS[kind](facts), strict=True):
        for position, (order, label) in enumerate(labels):
            key = (order, label) if label else (len(facts), UNKNOWN)
            members.setdefault(key, {}).setdefault(dataset, []).append(position)
    return [
        Slice(kind, key[1], {dataset: np.array(queries) for dataset, queries in members[key].items()})
        for key in sorted(members)
    ]
