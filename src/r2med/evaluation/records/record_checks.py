"""Check the content of a record before it is shown. A checksum does not prove that r2med wrote the file."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from r2med.evaluation.measure.measures import ANSWER_FAMILIES
from r2med.evaluation.records.answer_facts import AnswerFacts
from r2med.evaluation.records.answer_words import Condition
from r2med.evaluation.records.record import Record
from r2med.evaluation.records.record_facts import StageFacts
from r2med.evaluation.records.system_names import name_fault

LARGEST = 1e15
"""The largest number in a record. Beyond it sums lose digits, and no corpus has that many documents or tokens."""


def record_faults(record: Record) -> Iterator[str]:
    """Yield faults that the types allow, but that no record of r2med has, or that no table or board can show."""
    yield from _ranking_faults(record) if record.kind == "ranking" else _answer_faults(record)
    if not _are_settings(record.settings):
        yield "its settings are not those of a system"
    for query, values in record.per_query.items():
        if values.keys() != record.mean.keys():
            yield f"{query[:60]} has other measures than the mean"
    if record.name and name_fault(record.name):
        yield f"{record.name[:200]!r} cannot be the name of a system"
    numbers = [number for stage in record.stages for number in _numbers(stage)]
    numbers += [number for cost in record.answers.costs.values() for number in vars(cost).values() if number]
    if any(number < 0 for number in numbers):
        yield "the cost of a stage is negative"
    if any(number > LARGEST for number in numbers):
        yield f"it contains a number above {LARGEST:g}"


def _ranking_faults(record: Record) -> Iterator[str]:
    if not record.stages or not record.per_query:
        yield "it has no stages or no scores"
    if not record.mean:
        yield "it has no mean of any measure"


def _are_settings(settings: Mapping[str, Any]) -> bool:
    """Return True if each stage in the settings is a mapping, because a board reads its values."""
    rerank = settings.get("rerank") or []
    if not isinstance(rerank, list):
        return False
    parts = [settings.get("expand") or {}, settings.get("retrieve") or {}, *rerank]
    return all(isinstance(part, Mapping) for part in parts)


def _numbers(stage: StageFacts) -> list[float]:
    took = [*vars(stage.cost).values(), *vars(stage.prepared).values()]
    return [stage.failures, *(value for value in took if isinstance(value, int | float))]


def _answer_faults(record: Record) -> Iterator[str]:
    answers = record.answers
    if not answers.per_query or not record.queries:
        yield "it has no answers"
    if answers.per_query.keys() != answers.mean.keys() or answers.per_query.keys() != answers.statuses.keys():
        yield "its scores, means and counts are not those of the same conditions"
        return
    for condition in answers.per_query:
        yield from _condition_faults(record, answers, condition)
    if any(not 0 <= value <= 1 for values in record.per_query.values() for value in values.values()):
        yield "its nDCG@10 of a query is not between 0 and 1"


def _condition_faults(record: Record, answers: AnswerFacts, condition: Condition) -> Iterator[str]:
    rows, mean = answers.per_query[condition], answers.mean[condition]
    if unknown := next((query for query in rows if query not in record.queries), None):
        yield f"it scores {unknown[:60]} in the condition {condition}, but has no facts about this query"
    measures = dict.fromkeys(measure for values in rows.values() for measure in values)
    if invented := next((name for name in (*measures, *mean) if name not in ANSWER_FAMILIES), None):
        yield f"{invented[:60]} is not a measure of answers"
    for query, values in rows.items():
        if wrong := next((name for name, value in values.items() if not 0 <= value <= 1), None):
            yield f"{wrong} of {query[:60]} is {values[wrong]}; scores must be between 0 and 1"
    if measures.keys() != mean.keys():
        yield f"its means in the condition {condition} are not those of its measures"
        return
    for measure, stated in mean.items():
        scores = [values[measure] for values in rows.values() if measure in values]
        computed = math.fsum(scores) / len(scores)
        if not math.isclose(computed, stated, abs_tol=1e-9):
            yield f"{measure} in the condition {condition} is {stated}, but the mean of its queries is {computed}"
    counts = answers.statuses[condition]
    total, asked = sum(counts.values()), len(record.queries)
    if any(count < 0 for count in counts.values()) or not len(rows) <= total <= asked:
        yield f"it counts {total} answers in the condition {condition}, but has {asked} questions"
    grades = answers.grades.get(condition, {})
    if any(count < 0 for count in grades.values()) or sum(grades.values()) > total:
        yield f"it has more grades than answers in the condition {condition}"
