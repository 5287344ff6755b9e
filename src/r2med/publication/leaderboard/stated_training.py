"""Check what a submitted record states about training data: compute the overlap again from the file of rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from r2med.assessment.audit.containment import known_texts, shared_texts
from r2med.assessment.audit.overlaps import overlap_of
from r2med.assessment.audit.text_columns import texts_of
from r2med.data.dataset import Dataset
from r2med.data.training_sheet import overlap_words
from r2med.evaluation.records.record import Record, TrainingFacts
from r2med.evaluation.records.training_words import training_words
from r2med.publication.leaderboard.submitted_answers import unclear_name


def training_faults(record: Record, dataset: Dataset, files: Mapping[str, Path]) -> Iterator[str]:
    """Yield what does not hold in the stated training of a record. `files` are those beside the runs, by SHA-256."""
    asked = {query.id for query in dataset.queries}
    for stage in record.stages:
        held_out = [query for facts in stage.training for query in facts.held_out]
        if held_out and (len(held_out) != len(set(held_out)) or set(held_out) != asked):
            yield f"the models of {stage.name} do not hold out every query of {dataset.name} once"
        for facts in stage.training:
            yield from (fault for text in (facts.name or facts.model, facts.model) for fault in unclear_name(text))
            file = files.get(facts.digest)
            if file is not None and facts.touched is not None and facts.queries is not None:
                yield from _wrong_overlap(facts, dataset, file)


def _wrong_overlap(facts: TrainingFacts, dataset: Dataset, file: Path) -> Iterator[str]:
    queries = facts.held_out or tuple(query.id for query in dataset.queries)
    found = shared_texts(known_texts(dataset, queries), texts_of(file), [dataset]).found
    here = overlap_of(dataset, found, len(queries))
    if (here.touched, here.queries) != (facts.touched, facts.queries):
        stated = overlap_words(facts.touched or 0, facts.queries or 0)
        yield (
            f"{facts.model} states {stated} ({facts.touched} of {facts.queries} queries) with {facts.name}, but "
            f"{file.name} gives {here.words} ({here.touched} of {here.queries})"
        )


def unchecked_training(record: Record, files: Mapping[str, Path]) -> tuple[str, ...]:
    """Return the stated training that could not be computed again, because its file is not beside the runs."""
    stated = [facts for stage in record.stages for facts in stage.training if facts.name]
    missing = [facts for facts in stated if facts.digest not in files or facts.touched is None]
    return (f"{training_words([record])}, which is stated, not checked",) if missing else ()
