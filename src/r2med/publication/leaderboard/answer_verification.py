"""Compare an answer record with its answers and its dataset: queries, passages, options, choices and means.

The grades of a judge are shown as they are stated, because only the judge could give them again.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from r2med.assessment.answers.answer_options import options_of
from r2med.assessment.answers.answer_scores import ACCURACY, is_right, rule_verdict, scores_of
from r2med.assessment.answers.reading import asked_queries
from r2med.data.dataset import Dataset, Query
from r2med.evaluation.records.answer_facts import GivenAnswer
from r2med.evaluation.records.answer_words import Condition
from r2med.evaluation.records.dataset_facts import query_facts
from r2med.evaluation.records.record import Record
from r2med.publication.leaderboard.submitted_answers import failed_scores


def unverified(record: Record) -> tuple[str, ...]:
    """Return what an answer record states that cannot be computed again."""
    judge = record.answers.judge
    parts = [f"the grades of the judge {judge.judge}"] if judge else []
    if (left := record.dataset.judged_queries - len(record.queries)) > 0:
        parts.append(f"{left:,} of {record.dataset.judged_queries:,} judged queries, which were not asked")
    return tuple(parts)


def answer_record_faults(record: Record, answers: Sequence[GivenAnswer], dataset: Dataset) -> Iterator[str]:
    """Yield what does not match, in the order of the checks. The facts of the dataset were checked before."""
    queries = {query.id: query for query in asked_queries(dataset)}
    facts = query_facts(dataset)
    if any(query not in queries or facts[query] != stated for query, stated in record.queries.items()):
        yield f"its questions and their facts are not those of {dataset.name}"
        return
    cells = Counter((answer.query, answer.condition) for answer in answers)
    if set(cells) != {(query, condition) for query in record.queries for condition in record.answers.statuses}:
        yield "its answers are not those to its questions in all its conditions"
        return
    if repeated := next((cell for cell, count in cells.items() if count > 1), None):
        yield f"it has two answers to query {repeated[0]} in the condition {repeated[1]}"
    is_judged = record.answers.judge is not None
    for answer in answers:
        where = f"the answer to query {answer.query} in the condition {answer.condition}"
        faults = [*_passage_faults(answer, dataset)]
        if record.answers.form == "choice":
            grades = dataset.qrels[answer.query]
            faults += [*_choice_faults(answer, queries, grades, is_judged=is_judged)]
        elif answer.status != "failed":
            verdict = is_right(answer, judged=is_judged)
            if answer.scores.get(ACCURACY) != (None if verdict is None else float(verdict)):
                faults.append("has an accuracy that its grade does not give")
        yield from (f"{where} {fault}" for fault in faults)
    yield from _record_values(record, answers)


def _passage_faults(answer: GivenAnswer, dataset: Dataset) -> Iterator[str]:
    cited = [document for sentence in answer.sentences for document in sentence.documents]
    documents = [*answer.read, *cited]
    rows = dataset.corpus.rows(documents).tolist()
    if lost := [document for document, row in zip(documents, rows, strict=True) if row < 0]:
        yield f"names document {lost[0][:60]!r}, which {dataset.name} does not have"


def _choice_faults(
    answer: GivenAnswer, queries: Mapping[str, Query], grades: Mapping[str, int], is_judged: bool
) -> Iterator[str]:
    query = queries[answer.query]
    if answer.options != options_of(query, list(queries.values())):
        yield "has other options than those of the query"
    if answer.status != "answered":
        if answer.choice is not None:
            yield f"has a choice, but it is stated as {answer.status}"
    elif answer.choice is None or not 0 <= answer.choice < len(answer.options):
        yield f"chose option {answer.choice}, which does not exist"
    elif answer.text != answer.options[answer.choice]:
        yield "has another text than its option"
    chosen = answer.model_copy(update={"by_rule": rule_verdict(answer, query.answer)})
    computed = scores_of(chosen, (), grades, judged=is_judged)
    if chosen != answer or computed.keys() != answer.scores.keys():
        yield "has scores that are not those of its choice"
        return
    for measure, value in computed.items():
        if not math.isclose(answer.scores[measure], value, abs_tol=1e-9):
            yield f"has {measure} {answer.scores[measure]:.4f}, but its choice gives {value:.4f}"


def _record_values(record: Record, answers: Sequence[GivenAnswer]) -> Iterator[str]:
    """Yield faults of the scores and counts of the record. Its means were checked when it was read."""
    measures: dict[Condition, list[str]] = {}
    for each in answers:
        measures.setdefault(each.condition, []).extend(each.scores)
    for each in answers:
        stated = record.answers.per_query[each.condition].get(each.query, {})
        if each.status == "failed" and stated != failed_scores(measures[each.condition]):
            yield f"its failed answer to query {each.query} in the condition {each.condition} does not count 0"
        elif each.status != "failed" and stated != each.scores:
            yield f"its scores of query {each.query} in the condition {each.condition} are not those of the answer"
    for condition, stated_counts in record.answers.statuses.items():
        counts = Counter(each.status for each in answers if each.condition == condition)
        if counts != Counter(stated_counts):
            yield f"its counts of answers in the condition {condition} are wrong"
        grades = Counter(each.grade for each in answers if each.condition == condition and each.grade)
        if grades != Counter(record.answers.grades.get(condition, {})):
            yield f"its counts of grades in the condition {condition} are wrong"
