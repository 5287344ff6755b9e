"""View one measure of answers in one condition as the scores of records, so that all of comparison works on answers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import assert_never

from r2med.evaluation.measure.measures import ANSWER_FAMILIES, Measure
from r2med.evaluation.records.answer_facts import AnswerFacts
from r2med.evaluation.records.answer_words import CONDITIONS, SEARCHED, Condition
from r2med.evaluation.records.collection import MAX_FAILURES, checked
from r2med.evaluation.records.record import Record
from r2med.evaluation.records.record_facts import StageFacts
from r2med.evaluation.records.stored_records import RecordCollection, StoredRecord
from r2med.foundation.core.cost import Cost
from r2med.foundation.core.errors import UserError, unknown

MAIN_MEASURE = "accuracy"
RETRIEVED: Condition = "retrieved"


@dataclass(frozen=True)
class AnswerViews:
    """One measure of answer records, as the scores of systems with their readers."""

    collection: RecordCollection
    """A record for each system with its reader and each dataset. All records of a dataset have the same questions."""
    measure: str
    notices: tuple[str, ...]
    """What was left out and what the scores depend on, one sentence each, without a full stop."""


def answer_views(
    answers: RecordCollection,
    measure: str = MAIN_MEASURE,
    condition: Condition | str = RETRIEVED,
    max_failures: float = MAX_FAILURES,
) -> AnswerViews:
    """Return one measure of the answers of one condition as records that can be compared.

    Only the questions count that every record of a dataset has a value for. Raises UserError if no record has the
    measure. A record is left out with a notice if a larger share of its answers failed than `max_failures`.
    """
    name, where = answer_measure(measure), answer_condition(condition)
    having = [each for each in answers.runs_of_all if _values(each.record, name, where)]
    notices = [
        f"{_what(each.record)} is left out: no {name} of {where} answers"
        for each in answers.runs_of_all
        if each not in having
    ]
    if not having:
        raise UserError(f"no record has {name} of answers in the condition {where!r}: {_how_to_have(name)}")
    faults = [answer_failures(each, where, max_failures) for each in having]
    if all(faults):
        raise UserError(faults[0])
    notices += [f"{fault}: it is left out" for fault in faults if fault]
    having = [each for each, fault in zip(having, faults, strict=True) if not fault]
    by_dataset: dict[str, list[StoredRecord]] = {}
    for each in having:
        by_dataset.setdefault(each.record.dataset.name, []).append(each)
    views: list[StoredRecord] = []
    for dataset, asked_alike in by_dataset.items():
        _refuse_mixed_forms(asked_alike)
        group = _largest_group(asked_alike)
        notices += [_half_run(each.record, group) for each in asked_alike if each not in group]
        shared, asked = _shared_questions(group, name, where)
        if left := asked - len(shared):
            why = "because not every record has a value for them"
            notices.append(f"{dataset}: {left:,} of {asked:,} questions are left out, {why}")
        if shared:
            views += [_view(each, name, where, shared) for each in group]
    if not views:
        raise UserError(f"no question has {name} in all records: {notices[-1]}")
    return AnswerViews(checked(views), name, (*notices, *_remarks(having)))


def _what(record: Record) -> str:
    return f"{record.display_name} on {record.dataset.name}"


def _half_run(record: Record, group: Sequence[StoredRecord]) -> str:
    most = min(len(other.record.queries) for other in group)
    return f"{_what(record)} is left out: it answers {len(record.queries):,} questions, and others {most:,} or more"


def _view(each: StoredRecord, measure: str, condition: Condition, shared: Sequence[str]) -> StoredRecord:
    """Return a record whose scores are those of the answers to the shared questions."""
    record = each.record
    values = _values(record, measure, condition)
    cost = answering_cost(record, condition) or Cost(unpriced=1)
    reading = StageFacts(stage="read", name=record.answers.reader, cost=cost, varies=record.varies)
    scores = {
        "system": record.display_name,
        "mean": {measure: sum(values[query] for query in shared) / len(shared)},
        "per_query": {query: {measure: values[query]} for query in shared},
        "queries": {query: record.queries[query] for query in shared},
        "stages": (reading,),
        "answers": AnswerFacts(),
    }
    return replace(each, record=record.model_copy(update=scores), later=())


def _remarks(having: Sequence[StoredRecord]) -> Iterator[str]:
    """Yield what the scores depend on: different judges, and the notices of the records."""
    judges = {each.record.answers.judge.judge if each.record.answers.judge else "no LLM" for each in having}
    if len(judges) > 1:
        yield f"the answers were judged by different judges ({', '.join(sorted(judges))}), which may differ"
    records_with: dict[str, list[str]] = {}
    for each in having:
        for notice in each.record.answers.notices:
            records_with.setdefault(notice.rstrip("."), []).append(_what(each.record))
    for notice, names in records_with.items():
        yield f"{names[0]}{f' and {len(names) - 1} more' if len(names) > 1 else ''}: {notice}"


def answering_cost(record: Record, condition: Condition) -> Cost | None:
    """Return the cost of answering every query of the dataset in one condition; None if it is not known.

    It is the cost of the reader, and in the condition "retrieved" also that of the search, without judging. An agent
    that searches is the search and the reader in one.
    """
    if condition not in record.answers.costs or not record.queries:
        return None
    share = record.dataset.queries / len(record.queries)
    cost, retrieval = record.answers.costs[condition].times(share), record.cost_of("retrieve")
    if SEARCHED in record.answers.statuses and record.settings.get("queries"):
        retrieval = retrieval.times(share)  # the agent worked on these questions only
    match condition:
        case "retrieved":
            return cost + retrieval
        case "searched":
            return retrieval
        case "closed book" | "relevant" | "random":
            return cost
        case other:
            assert_never(other)


def answer_measure(measure: str) -> str:
    """Return the name of a measure of answers. Raises UserError if it is not one."""
    lowered = measure.strip().lower()
    if lowered not in ANSWER_FAMILIES:
        raise unknown("measure of answers", measure[:60], ANSWER_FAMILIES)
    return str(Measure.parse(lowered))


def answer_condition(condition: str) -> Condition:
    """Return a condition by its name. Raises UserError if there is no such condition."""
    for known in CONDITIONS:
        if known == condition.strip().lower():
            return known
    raise unknown("condition", condition[:60], CONDITIONS)


def _values(record: Record, measure: str, condition: Condition) -> dict[str, float]:
    """Return query -> value of a measure, for the questions that have one."""
    rows = record.answers.per_query.get(condition, {})
    return {query: values[measure] for query, values in rows.items() if measure in values}


def _how_to_have(measure: str) -> str:
    needs = {"nugget": "nuggets", "vital": "nuggets", "citation": "open answers with citations"}
    if measure == MAIN_MEASURE:
        return "open answers have it if a judge reads them: r2med answer SYSTEM --reader LLM --judge LLM"
    needed = needs.get(measure.partition("-")[0], "")
    return f"it needs {needed}, see r2med answer" if needed else "r2med answer asks the questions of all conditions"


def _largest_group(group: Sequence[StoredRecord]) -> list[StoredRecord]:
    """Return the records that share the most answers, so that one record of few questions does not cut all others."""
    asked = [frozenset(each.record.queries) for each in group]
    groups = [[each for each, mine in zip(group, asked, strict=True) if questions <= mine] for questions in asked]
    sizes = [
        (len(members) > 1) * len(members) * len(questions) for members, questions in zip(groups, asked, strict=True)
    ]
    return groups[sizes.index(max(sizes))] if max(sizes) else list(group)


def _shared_questions(group: Sequence[StoredRecord], measure: str, condition: Condition) -> tuple[list[str], int]:
    """Return the questions that all records have a value for, and the number of all questions that were asked."""
    asked = dict.fromkeys(query for each in group for query in each.record.queries)
    known = [_values(each.record, measure, condition) for each in group]
    return [query for query in asked if all(query in values for values in known)], len(asked)


def answer_failures(each: StoredRecord, condition: Condition, limit: float) -> str:
    """Return a message if a larger share of the answers of a condition failed than `limit`; otherwise empty."""
    counts = each.record.answers.statuses.get(condition, {})
    failed, asked = counts.get("failed", 0), sum(counts.values())
    if failed <= limit * asked:
        return ""
    return (
        f"{each.path}: {failed:,} of {asked:,} questions failed, so its scores say little: r2med answer asks them "
        "again, or allow it with max_failures (--max-failures 1)"
    )


def _refuse_mixed_forms(group: Sequence[StoredRecord]) -> None:
    first = group[0]
    for each in group:
        if each.record.answers.form != first.record.answers.form:
            raise UserError(
                f"{first.path} has answers of the form {first.record.answers.form} and {each.path} of the form "
                f"{each.record.answers.form}, which cannot be compared: give the paths of one form"
            )
