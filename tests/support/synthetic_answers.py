"""Answer records with given values and no answers, for statistics, written where `r2med answer` puts them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from r2med.evaluation.records.answer_record import (
    SUFFIX,
    AnswerRecord,
    GivenAnswer,
    answer_key,
    write_answers,
)
from r2med.evaluation.records.answer_words import Condition
from r2med.evaluation.running.evaluation import slug
from r2med.foundation.core.cost import Cost
from support.records import record as retrieval_record

SYSTEM, READER = "bm25", "smollm2"
COSTS = {
    "retrieval": Cost(seconds=1.0),
    "reader": Cost(seconds=8.0, calls=12, prompt_tokens=6000, completion_tokens=600, dollars=0.012),
    "judge": Cost(seconds=4.0, calls=12, prompt_tokens=3000, completion_tokens=300, dollars=0.03),
}


def synthetic(
    values: Mapping[Condition, Sequence[float | None]],
    system: str = SYSTEM,
    reader: str = READER,
    dataset: str = "Biology",
    retrieval: Sequence[float] = (),
    measure: str = "accuracy",
) -> AnswerRecord:
    """Return a record with these values of a measure, one for each question. None is a question without a value."""
    size = max(map(len, values.values()))
    plain = retrieval_record(system, dataset, [0.5] * size)
    known = {
        condition: {f"q{n}": {measure: float(value)} for n, value in enumerate(row) if value is not None}
        for condition, row in values.items()
    }
    return AnswerRecord(
        key=answer_key({"system": system, "reader": reader}, dataset),
        system=system,
        reader=reader,
        settings={"system": system, "reader": reader, "passages": 5},
        dataset=plain.dataset,
        form="open",
        passages=5,
        mean={condition: means(rows) for condition, rows in known.items()},
        per_query=known,
        statuses={condition: {"answered": len(row)} for condition, row in values.items()},
        queries=plain.queries,
        retrieval={f"q{n}": value for n, value in enumerate(retrieval)},
        costs=COSTS,
        created="2026-01-01T00:00:00+00:00",
    )


def means(rows: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
    """Return measure -> mean over the queries that have a value."""
    measures = dict.fromkeys(measure for values in rows.values() for measure in values)
    found = {measure: [values[measure] for values in rows.values() if measure in values] for measure in measures}
    return {measure: sum(each) / len(each) for measure, each in found.items()}


def write(record: AnswerRecord, out: Path, answers: Sequence[GivenAnswer] = ()) -> Path:
    """Write a record where `r2med answer` puts it, with its answers if there are any. Return its path."""
    stem = f"{slug(record.system)}__{slug(record.reader)}-{record.key[:10]}"
    path = out.joinpath(*map(slug, record.dataset.name.split("/")), f"{stem}{SUFFIX}")
    path.parent.mkdir(parents=True, exist_ok=True)
    files = {"answers": write_answers(answers, path)} if answers else {}
    record.model_copy(update=files).write(path)
    return path
