"""What the models of a stage were trained with, for its record."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from r2med.data.dataset import Dataset
from r2med.evaluation.records.record import TrainingFacts
from r2med.models.encoders.weights import WeightsCard
from r2med.systems.retrieve.fold_models import BoundFolds


def training_facts(bound: Any, dataset: Dataset) -> tuple[TrainingFacts, ...]:
    """Return what each model of a bound stage was trained with; nothing if no card states it. Nothing is loaded.

    If only some cards state it, the others have an empty name.
    """
    facts = tuple(_facts(bound, dataset))
    return facts if any(each.name for each in facts) else ()


def _facts(bound: Any, dataset: Dataset, held_out: tuple[str, ...] = ()) -> Iterator[TrainingFacts]:
    if isinstance(bound, BoundFolds):
        asked = {query.id for query in dataset.queries}
        for fold, part in bound.parts.items():
            yield from _facts(part, dataset, tuple(sorted(bound.models.folds.queries(fold) & asked)))
        return
    for part in getattr(bound, "inner", ()):
        yield from _facts(part, dataset, held_out)
    card = getattr(bound, "card", None)
    if not isinstance(card, WeightsCard):
        return
    if card.training is None:
        yield TrainingFacts(model=card.name, name="", held_out=held_out)
        return
    stated = card.training.overlap_with(dataset.name, dataset.fingerprint, dataset.corpus.fingerprint)
    touched = None
    count = len(held_out or dataset.queries)
    if stated is not None and (stated.fold > 0) == bool(held_out):
        # What no query has, no part of the queries has. Of other parts nothing is known.
        touched = stated.touched if stated.queries == count or (not stated.touched and stated.queries > count) else None
    yield TrainingFacts(
        model=card.name,
        name=card.training.name,
        digest=card.training.digest,
        held_out=held_out,
        queries=None if touched is None else count,
        touched=touched,
    )
