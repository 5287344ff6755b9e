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
from r2med.evaluation.records.training_words import NOT_STATED, training_words
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
            yield from _impossible_counts(facts, dataset)
            if file is not None and facts.name:
                yield from _wrong_overlap(facts, dataset, file)


def _impossible_counts(facts: TrainingFacts, dataset: Dataset) -> Iterator[str]:
    queries = len(facts.held_out or dataset.queries)
    compared = facts.queries is not None and facts.touched is not None
    if (facts.queries is None) != (facts.touched is None) or (
        compared and not (facts.queries == queries and 0 <= (facts.touched or 0) <= queries)
    ):
        yield f"{facts.model} states an overlap of {facts.touched} of {facts.queries} queries, but it has {queries}"


def _wrong_overlap(facts: TrainingFacts, dataset: Dataset, file: Path) -> Iterator[str]:
    queries = facts.held_out or tuple(query.id for query in dataset.queries)
    shared = shared_texts(known_texts(dataset, queries), texts_of(file), [dataset]).found
    here = overlap_of(dataset, shared, len(queries))
    found = f"{file.name} gives {here.words} ({here.touched} of {here.queries})"
    if facts.touched is None:
        if here.touched:
            yield f"{facts.model} was not compared with {dataset.name}, but {found}"
    elif (here.touched, here.queries) != (facts.touched, facts.queries):
        stated = f"{overlap_words(facts.touched, facts.queries or 0)} ({facts.touched} of {facts.queries} queries)"
        yield f"{facts.model} states {stated} with {facts.name}, but {found}"


def unchecked_training(record: Record, files: Mapping[str, Path]) -> tuple[str, ...]:
    """Return the stated training that could not be computed again, because its file is not beside the runs."""
    return (f"{training_words([record])}, which is stated, not checked",) if _is_unchecked(record, files) else ()


def checked_training(record: Record, files: Mapping[str, Path]) -> str:
    """Return what was computed again from the files beside the runs, or that nothing is stated; otherwise empty."""
    words = "" if _is_unchecked(record, files) else training_words([record])
    return f"{words}, computed again" if words not in ("", NOT_STATED) else words


def _is_unchecked(record: Record, files: Mapping[str, Path]) -> bool:
    stated = [facts for stage in record.stages for facts in stage.training if facts.name]
    return any(facts.digest not in files for facts in stated)
