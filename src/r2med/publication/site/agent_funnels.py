"""The data of the page Funnel: at which step each agent that answers loses relevant documents, and how sure it is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from r2med.assessment.answers.answer_scores import ACCURACY, CONFIDENCE, STEP_RECALL, UNDECIDED
from r2med.assessment.answers.search_tables import calibration_of, estimate_of, values_of
from r2med.evaluation.records.answer_collection import AnswerCollection
from r2med.evaluation.records.answer_record import AnswerRecord
from r2med.evaluation.records.answer_words import SEARCHED
from r2med.evaluation.records.stored_records import RecordCollection
from r2med.foundation.core.search_steps import SEARCH_STEPS
from r2med.foundation.pages.estimate import Estimate

ABOUT_STEP: Mapping[str, str] = {
    "returned": "in a result list of a search",
    "shown": "whose text stood in the conversation",
    "opened": "that the agent opened",
    "cited": "that the answer cites",
    "kept": "in the list at the end",
}
"""Step -> what the page says about the documents that came so far."""


def funnels_value(
    answers: AnswerCollection, collection: RecordCollection, names: Sequence[str]
) -> list[dict[str, Any]]:
    """Return the funnel of every agent on every dataset. `names` are the datasets in the order of their numbers."""
    return [
        _funnel(each.record, answers.name_of(each.record), collection, names)
        for each in answers
        if SEARCHED in each.record.per_query and each.record.dataset.name in names
    ]


def _funnel(record: AnswerRecord, name: str, collection: RecordCollection, names: Sequence[str]) -> dict[str, Any]:
    known = record.system in collection.systems
    calibration = calibration_of(record)
    return {
        "name": name,
        "system": record.system,
        "number": collection.systems.index(record.system) if known else None,
        "reader": record.reader,
        "dataset": names.index(record.dataset.name),
        "questions": len(record.per_query[SEARCHED]),
        "relevant": sum(record.queries[query].positives for query in record.per_query[SEARCHED]),
        "steps": list(_steps(record)),
        "accuracy": _share(estimate_of(values_of(record, ACCURACY))),
        "undecided": sum(bool(row.get(UNDECIDED)) for row in record.per_query[SEARCHED].values()),
        "calibration": {name: _plain(value) for name, value in calibration.items()},
        "statuses": dict(record.statuses.get(SEARCHED, {})),
        "searching": dict(record.searching),
        "queries": [_query(record, query, row) for query, row in record.per_query[SEARCHED].items()],
    }


def _steps(record: AnswerRecord) -> Iterator[dict[str, Any]]:
    """Yield each step that the agent has, with the number of relevant documents that came so far."""
    rows = record.per_query[SEARCHED]
    for step in SEARCH_STEPS:
        measure = STEP_RECALL[step]
        if any(measure in row for row in rows.values()):
            came = sum(_came(record, query, row[measure]) for query, row in rows.items() if measure in row)
            recall = _share(estimate_of(values_of(record, measure)))
            yield {"name": step, "about": ABOUT_STEP[step], "documents": came, "recall": recall}


def _came(record: AnswerRecord, query: str, recall: float) -> int:
    return round(recall * record.queries[query].positives)


def _query(record: AnswerRecord, query: str, row: Mapping[str, float]) -> dict[str, Any]:
    steps = {step: STEP_RECALL[step] for step in SEARCH_STEPS if STEP_RECALL[step] in row}
    decided = ACCURACY in row and not row.get(UNDECIDED)
    return {
        "id": query,
        "relevant": record.queries[query].positives,
        "steps": {step: _came(record, query, row[measure]) for step, measure in steps.items()},
        "right": bool(row[ACCURACY]) if decided else None,
        "confidence": row.get(CONFIDENCE),
    }


def _plain(value: Any) -> Any:
    return _share(value) if isinstance(value, Estimate) else value


def _share(estimate: Estimate | None) -> dict[str, float | None] | None:
    return None if estimate is None else {"value": estimate.value, "low": estimate.low, "high": estimate.high}
