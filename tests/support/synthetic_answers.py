"""Answer records with given values and no answers, for statistics, written where `r2med answer` puts them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from r2med.evaluation.records.answer_facts import AnswerFacts, GivenAnswer, write_answers
from r2med.evaluation.records.answer_words import Condition
from r2med.evaluation.records.record import ANSWERS_SUFFIX, FORMATS, Record, record_key
from r2med.evaluation.records.record_facts import StageFacts
from r2med.evaluation.records.record_paths import slug
from r2med.foundation.core.cost import Cost
from support.records import record as retrieval_record

SYSTEM, READER = "bm25", "smollm2"
COSTS = {
    "retrieve": Cost(seconds=1.0),
    "read": Cost(seconds=8.0, calls=12, prompt_tokens=6000, completion_tokens=600, dollars=0.012),
    "judge": Cost(seconds=4.0, calls=12, prompt_tokens=3000, completion_tokens=300, dollars=0.03),
}


def synthetic(
    values: Mapping[Condition, Sequence[float | None]],
    system: str = SYSTEM,
    reader: str = READER,
    dataset: str = "Biology",
    retrieval: Sequence[float] = (),
    measure: str = "accuracy",
) -> Record:
    """Return a record with these values of a measure, one for each question. None is a question without a value."""
    size = max(map(len, values.values()))
    plain = retrieval_record(system, dataset, [0.5] * size)
    known = {
        condition: {f"q{n}": {measure: float(value)} for n, value in enumerate(row) if value is not None}
        for condition, row in values.items()
    }
    ranked = {f"q{n}": {"nDCG@10": value} for n, value in enumerate(retrieval)}
    return Record(
        format=FORMATS["answers"],
        key=record_key({"system": system, "reader": reader}, dataset, "answers"),
        system=system,
        settings={"system": system, "reader": reader, "passages": 5},
        dataset=plain.dataset,
        mean=means(ranked),
        per_query=ranked,
        queries=plain.queries,
        stages=stages(system, reader),
        versions={},
        source="",
        created="2026-01-01T00:00:00+00:00",
        answers=AnswerFacts(
            reader=reader,
            form="open",
            passages=5,
            mean={condition: means(rows) for condition, rows in known.items()},
            per_query=known,
            statuses={condition: {"answered": len(row)} for condition, row in values.items()},
        ),
    )


def stages(system: str, reader: str, varies: bool = False) -> tuple[StageFacts, ...]:
    """Return the stages of a record of answers with their costs. If it varies, its reader does."""
    return (
        StageFacts(stage="retrieve", name=system, cost=COSTS["retrieve"]),
        StageFacts(stage="read", name=reader, cost=COSTS["read"], varies=varies),
        StageFacts(stage="judge", name="judge", cost=COSTS["judge"]),
    )


def with_answers(record: Record, **changes: Any) -> Record:
    """Return a record whose answers have other values."""
    return record.model_copy(update={"answers": record.answers.model_copy(update=changes)})


def varying(record: Record) -> Record:
    """Return a record whose reader can answer otherwise."""
    return record.model_copy(update={"stages": stages(record.system, record.answers.reader, varies=True)})


def means(rows: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
    """Return measure -> mean over the queries that have a value."""
    measures = dict.fromkeys(measure for values in rows.values() for measure in values)
    found = {measure: [values[measure] for values in rows.values() if measure in values] for measure in measures}
    return {measure: sum(each) / len(each) for measure, each in found.items()}


def write(record: Record, out: Path, answers: Sequence[GivenAnswer] = ()) -> Path:
    """Write a record where `r2med answer` puts it, with its answers if there are any. Return its path."""
    stem = f"{slug(record.system)}__{slug(record.answers.reader)}-{record.key[:10]}"
    path = out.joinpath(*map(slug, record.dataset.name.split("/")), f"{stem}{ANSWERS_SUFFIX}")
    path.parent.mkdir(parents=True, exist_ok=True)
    (with_answers(record, file=write_answers(answers, path)) if answers else record).write(path)
    return path
