"""What the models of a system were trained with, in the words that a comparison and a board show."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from r2med.data.training_sheet import overlap_words
from r2med.evaluation.records.record import Record, StageFacts, TrainingFacts

NOT_STATED = "training data not stated"
WITHOUT_MODEL = ("bm25", "rm3", "rocchio", "run:")
"""How the names of stages begin that have no trained model."""


def training_words(records: Iterable[Record]) -> str:
    """Return what the models of a system were trained with. Empty if it has no model of its own.

    Folds of one set are one: their queries add up.
    """
    stages = [stage for record in records for stage in record.stages if stage.stage != "expand"]
    stated: dict[str, list[TrainingFacts]] = {}
    for stage in stages:
        for facts in (facts for facts in stage.training if facts.name):
            stated.setdefault(facts.name, []).append(facts)
    words = [f"trained on {name}: {_overlap(facts)}" for name, facts in stated.items()]
    if any(map(_lacks, stages)):
        words.append(NOT_STATED)
    return "; ".join(dict.fromkeys(words))


def _lacks(stage: StageFacts) -> bool:
    if stage.training:
        return not all(facts.name for facts in stage.training)
    return not stage.name.startswith(WITHOUT_MODEL)


def _overlap(facts: list[TrainingFacts]) -> str:
    if any(each.queries is None or each.touched is None for each in facts):
        return "not compared with this dataset"
    return overlap_words(sum(each.touched or 0 for each in facts), sum(each.queries or 0 for each in facts))


def stated_training(records: Mapping[str, Sequence[Record]]) -> dict[str, str]:
    """Return system -> what its models were trained with. It is empty if no system states it."""
    if not any(stage.training for each in records.values() for record in each for stage in record.stages):
        return {}
    return {system: words for system, each in records.items() if (words := training_words(each))}
