"""Check the content of an answer record before it is shown. A checksum does not prove that r2med wrote the file."""

from __future__ import annotations

import math
from collections.abc import Iterator

from r2med.evaluation.measure.measures import ANSWER_FAMILIES
from r2med.evaluation.records.answer_record import AnswerRecord
from r2med.evaluation.records.answer_words import Condition
from r2med.evaluation.records.record_checks import LARGEST
from r2med.foundation.core.cost import Cost


def answer_faults(record: AnswerRecord) -> Iterator[str]:
    """Yield faults that the types allow, but that no record of r2med has."""
    if not record.per_query or not record.queries:
        yield "it has no answers"
    if record.per_query.keys() != record.mean.keys() or record.per_query.keys() != record.statuses.keys():
        yield "its scores, means and counts are not those of the same conditions"
        return
    for condition in record.per_query:
        yield from _condition_faults(record, condition)
    if any(not 0 <= value <= 1 for value in record.retrieval.values()):
        yield "its nDCG@10 of a query is not between 0 and 1"
    costs = [*record.costs.values(), *record.reader_costs.values()]
    if any(not 0 <= number <= LARGEST for cost in costs for number in _numbers(cost)):
        yield f"its costs contain a number below 0 or above {LARGEST:g}"


def _condition_faults(record: AnswerRecord, condition: Condition) -> Iterator[str]:
    rows, mean = record.per_query[condition], record.mean[condition]
    if unknown := next((query for query in rows if query not in record.queries), None):
        yield f"it scores {unknown[:60]} in the condition {condition}, but has no facts about this query"
    measures = dict.fromkeys(measure for values in rows.values() for measure in values)
    if invented := next((each for each in (*measures, *mean) if each not in ANSWER_FAMILIES), None):
        yield f"{invented[:60]} is not a measure of answers"
    for query, values in rows.items():
        if wrong := next((name for name, value in values.items() if not 0 <= value <= 1), None):
            yield f"{wrong} of {query[:60]} is {values[wrong]}; scores must be between 0 and 1"
    if measures.keys() != mean.keys():
        yield f"its means in the condition {condition} are not those of its measures"
        return
    for measure, stated in mean.items():
        known = [values[measure] for values in rows.values() if measure in values]
        found = math.fsum(known) / len(known)
        if not math.isclose(found, stated, abs_tol=1e-9):
            yield f"{measure} in the condition {condition} is {stated}, but the mean of its queries is {found}"
    counts = record.statuses[condition]
    total, asked = sum(counts.values()), len(record.queries)
    if any(count < 0 for count in counts.values()) or not len(rows) <= total <= asked:
        yield f"it counts {total} answers in the condition {condition}, but has {asked} questions"
    grades = record.grades.get(condition, {})
    if any(count < 0 for count in grades.values()) or sum(grades.values()) > total:
        yield f"it has more grades than answers in the condition {condition}"


def _numbers(cost: Cost) -> list[float]:
    return [value for value in vars(cost).values() if isinstance(value, int | float)]
