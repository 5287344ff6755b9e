"""Group the queries of a benchmark by task, scenario, body system, length or number of relevant documents."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from r2med.evaluation.measure.run_variance import SingleRuns
from r2med.evaluation.measure.scores import Floats
from r2med.evaluation.measure.significance import Integers, Values
from r2med.foundation.core.errors import unknown

UNKNOWN_LABEL = "not stated"


@dataclass(frozen=True)
class SliceFacts:
    """The facts about one dataset that slices depend on, with one value per judged query."""

    task: str
    scenario: str
    words: Integers
    positives: Integers
    body_systems: tuple[str, ...]


@dataclass(frozen=True)
class Slice:
    """A group of queries: dataset -> positions in its arrays."""

    kind: str
    label: str
    queries: Mapping[str, Integers]

    def __len__(self) -> int:
        return sum(map(len, self.queries.values()))

    def cut(self, values: Values) -> dict[str, Floats]:
        """Return the values of the queries in this slice.

        In a slice of whole datasets every dataset has the same weight, as in the main score. In other slices every
        query has the same weight: a dataset with one query in the slice must not count as much as one with fifty.
        """
        parts = {dataset: values[dataset][:, queries] for dataset, queries in self.queries.items()}
        return parts if self.kind in DATASET_KINDS else {self.label: np.hstack(list(parts.values()))}

    def cut_runs(self, single: SingleRuns) -> SingleRuns:
        """Return the runs of the queries in this slice: those that a system has on all of its datasets."""
        here = {dataset: single.tables[dataset] for dataset in self.queries}
        counts = SingleRuns(here, single.varies).counts.tolist()
        systems = [
            self.cut({dataset: tables[number][:count] for dataset, tables in here.items()})
            for number, count in enumerate(counts)
        ]
        return SingleRuns({name: [each[name] for each in systems] for name in systems[0]}, single.varies)


Label = tuple[int, str]
"""The position of a slice among the slices of its kind, and its name."""


def _task(facts: Mapping[str, SliceFacts]) -> Iterator[list[Label]]:
    return (_alike(fact.task, fact) for fact in facts.values())


def _scenario(facts: Mapping[str, SliceFacts]) -> Iterator[list[Label]]:
    return (_alike(fact.scenario, fact) for fact in facts.values())


def _alike(label: str, fact: SliceFacts) -> list[Label]:
    return [(0, label)] * len(fact.words)


def _body_system(facts: Mapping[str, SliceFacts]) -> Iterator[list[Label]]:
    return ([(0, label) for label in fact.body_systems] for fact in facts.values())


def _length(facts: Mapping[str, SliceFacts]) -> Iterator[list[Label]]:
    """Yield labels that divide all queries into thirds by length."""
    everything = np.concatenate([fact.words for fact in facts.values()])
    low, high = (int(bound) for bound in np.quantile(everything, [1 / 3, 2 / 3]))
    labels = [(0, f"up to {low} words"), (1, f"{low + 1} to {high} words"), (2, f"over {high} words")]
    return ([labels[third] for third in np.searchsorted([low, high], fact.words)] for fact in facts.values())


def _positives(facts: Mapping[str, SliceFacts]) -> Iterator[list[Label]]:
    labels = [
        (0, "1 relevant document"),
        (1, "2 relevant documents"),
        (2, "3 or 4 relevant documents"),
        (3, "5 or more relevant documents"),
    ]
    return ([labels[level] for level in np.searchsorted([1, 2, 4], fact.positives)] for fact in facts.values())


_LABELS: Mapping[str, Callable[[Mapping[str, SliceFacts]], Iterator[list[Label]]]] = {
    "task": _task,
    "scenario": _scenario,
    "body-system": _body_system,
    "length": _length,
    "positives": _positives,
}

KINDS = tuple(_LABELS)
DATASET_KINDS = ("task", "scenario")


def slices(kind: str, facts: Mapping[str, SliceFacts]) -> list[Slice]:
    """Return the slices of a kind, in their order. Raises UserError if there is no such kind."""
    if kind not in KINDS:
        raise unknown("slice", kind, KINDS)
    members: dict[Label, dict[str, list[int]]] = {}
    for dataset, labels in zip(facts, _LABELS[kind](facts), strict=True):
        for position, (order, label) in enumerate(labels):
            key = (order, label) if label else (len(facts), UNKNOWN_LABEL)
            members.setdefault(key, {}).setdefault(dataset, []).append(position)
    return [
        Slice(kind, key[1], {dataset: np.array(queries) for dataset, queries in members[key].items()})
        for key in sorted(members)
    ]
