"""Compute again what needs no LLM in an answer record: options, citations, verdicts of the rule, nuggets, means."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from r2med.answers.answer_options import options_of
from r2med.answers.answer_scores import rule_verdict, scores_of
from r2med.answers.citations import cited_sentences
from r2med.answers.reading import asked_queries, passages_of
from r2med.answers.statuses import status_of
from r2med.core.errors import UserError
from r2med.data.dataset import Dataset, Query
from r2med.data.nuggets_file import Nugget, Nuggets, nuggets_of
from r2med.measure import HEADLINE_MEASURE
from r2med.records.answer_record import AnswerRecord, GivenAnswer
from r2med.records.dataset_facts import query_facts
from r2med.records.record import Record


@dataclass(frozen=True)
class ReadRanking:
    """The ranking that was read, if the entry has its record and the run file is here."""

    record: Record
    lists: Mapping[str, Sequence[str]]
    """Query -> the first documents of the run."""


def unverified(record: AnswerRecord, has_ranking: bool) -> tuple[str, ...]:
    """Return what cannot be computed again without an LLM, or without what the entry lacks."""
    parts = [f"that {record.reader} gave these answers"]
    if record.judge:
        parts.append(f"the grades of the judge {record.judge.judge}")
    if not has_ranking:
        parts.append("that the passages are those of the system, because its run is not in the entry")
    return tuple(parts)


def answer_record_faults(
    record: AnswerRecord, answers: Sequence[GivenAnswer], dataset: Dataset, ranking: ReadRanking | None
) -> Iterator[str]:
    """Yield what does not match, in the order of the checks. The facts of the dataset were checked before."""
    facts = query_facts(dataset)
    asked = {query.id: query for query in asked_queries(dataset)}
    for query, stated in record.queries.items():
        if query not in asked or facts[query] != stated:
            yield f"its facts about query {query[:60]!r} are not those of {dataset.name}"
            return
    cells = Counter((each.query, each.condition) for each in answers)
    if set(cells) != {(query, condition) for query in record.queries for condition in record.statuses}:
        yield "its answers are not those to its questions in all its conditions"
        return
    if repeated := next((cell for cell, count in cells.items() if count > 1), None):
        yield f"it has two answers to query {repeated[0]} in the condition {repeated[1]}"
    try:
        nuggets = _nuggets(record, dataset)
    except UserError as error:
        yield str(error)
        return
    for answer in answers:
        where = f"the answer to query {answer.query} in the condition {answer.condition}"
        for fault in _answer_faults(answer, record, dataset, asked, nuggets.get(answer.query, ()), ranking):
            yield f"{where} {fault}"
    yield from _record_values(record, answers)
    if ranking:
        headline = str(HEADLINE_MEASURE)
        for query, value in record.retrieval.items():
            if not math.isclose(value, ranking.record.per_query.get(query, {}).get(headline, -1), abs_tol=1e-9):
                yield f"its {headline} of query {query} is {value:.4f}, which is not that of its ranking"


def _nuggets(record: AnswerRecord, dataset: Dataset) -> Mapping[str, Sequence[Nugget]]:
    """Return the nuggets of each query. Raises UserError if the record was scored with others."""
    if not record.nuggets:
        return {}
    known: Nuggets | None = nuggets_of(dataset)
    if known is None or known.digest != record.nuggets:
        raise UserError(f"its nuggets are not those of {dataset.name} on this machine")
    return known.by_query


def _answer_faults(
    answer: GivenAnswer,
    record: AnswerRecord,
    dataset: Dataset,
    asked: Mapping[str, Query],
    nuggets: Sequence[Nugget],
    ranking: ReadRanking | None,
) -> Iterator[str]:
    query, grades = asked[answer.query], dataset.qrels[answer.query]
    yield from _read_faults(answer, record, dataset, grades, ranking)
    if record.form == "choice":
        yield from _choice_faults(answer, query, list(asked.values()))
    else:
        yield from _text_faults(answer, query, dataset)
    verdict = rule_verdict(answer, query.answer)
    if answer.by_rule != verdict:
        yield f"is stated as {_said(answer.by_rule)} by the rule, which says {_said(verdict)}"
    found = scores_of(answer, nuggets, grades, judged=record.judge is not None)
    if found.keys() != answer.scores.keys():
        yield f"states the measures {_listed(answer.scores)}, but its content gives {_listed(found)}"
        return
    for measure, value in found.items():
        if not math.isclose(answer.scores[measure], value, abs_tol=1e-9):
            yield f"has {measure} {answer.scores[measure]:.4f}, but its content gives {value:.4f}"


def _read_faults(
    answer: GivenAnswer,
    record: AnswerRecord,
    dataset: Dataset,
    grades: Mapping[str, int],
    ranking: ReadRanking | None,
) -> Iterator[str]:
    """Yield faults of the passages: unknown ones, cited ones that were not read, and those of another condition."""
    rows = dataset.corpus.rows(list(answer.read)).tolist()
    if lost := [document for document, row in zip(answer.read, rows, strict=True) if row < 0]:
        yield f"read document {lost[0][:60]!r}, which {dataset.name} does not have"
    cited = [document for sentence in answer.sentences for document in sentence.documents]
    if unread := [document for document in cited if document not in answer.read]:
        yield f"cites document {unread[0][:60]!r}, which was not read"
    relevant = [document for document in answer.read if grades.get(document, 0) > 0]
    if answer.condition == "closed book" and answer.read:
        yield f"read document {answer.read[0][:60]!r}, but a closed book has no passages"
    if answer.condition == "relevant" and len(relevant) < len(answer.read):
        yield "read a passage that is not relevant"
    if answer.condition == "random" and relevant:
        yield f"read {relevant[0][:60]!r}, which is relevant and not random"
    if answer.condition == "retrieved":
        if len(answer.read) > record.passages:
            yield f"read {len(answer.read)} passages, but the record states {record.passages}"
        if ranking and list(answer.read) != list(ranking.lists.get(answer.query, ()))[: len(answer.read)]:
            yield "did not read the first passages of its ranking"


def _choice_faults(answer: GivenAnswer, query: Query, others: Sequence[Query]) -> Iterator[str]:
    if answer.options != options_of(query, others):
        yield "has other options than those of the query"
    if answer.choice is not None and not 0 <= answer.choice < len(answer.options):
        yield f"chose option {answer.choice}, which does not exist"
    elif answer.choice is not None and answer.text != answer.options[answer.choice]:
        yield "has another text than its option"


def _text_faults(answer: GivenAnswer, query: Query, dataset: Dataset) -> Iterator[str]:
    """Yield faults of an open answer: citations that are not those of its text, and a status that it cannot have."""
    if answer.options or answer.choice is not None:
        yield "has options, but the questions are open"
    if answer.status != "answered":
        return
    found = cited_sentences(answer.text, answer.read, passages_of(dataset, answer.read).texts)
    if found != tuple(sentence.model_copy(update={"supported": None}) for sentence in answer.sentences):
        yield "has sentences or citations that are not those of its text"
    status = status_of(answer.text, query.text)
    if status != "answered":
        yield f"is stated as answered, but it is {status}"


def _record_values(record: AnswerRecord, answers: Sequence[GivenAnswer]) -> Iterator[str]:
    """Yield faults of the scores and counts of the record. Its means were checked when it was read."""
    for each in answers:
        if record.per_query[each.condition].get(each.query, {}) != each.scores:
            yield f"its scores of query {each.query} in the condition {each.condition} are not those of the answer"
    for condition, stated in record.statuses.items():
        counts = Counter(each.status for each in answers if each.condition == condition)
        if counts != Counter(stated):
            yield f"its counts of answers in the condition {condition} are wrong"


def _said(verdict: bool | None) -> str:
    return {None: "undecided", True: "right", False: "wrong"}[verdict]


def _listed(scores: Mapping[str, float]) -> str:
    return ", ".join(sorted(scores)) or "none"
