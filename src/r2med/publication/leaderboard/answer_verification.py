"""Compute again what needs no LLM in an answer record: questions, passages, statuses, verdicts of the rule, scores."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import assert_never

from r2med.assessment.answers.answer_options import options_of
from r2med.assessment.answers.answer_scores import rule_verdict, scores_of
from r2med.assessment.answers.citations import cited_sentences
from r2med.assessment.answers.reader import failed_status
from r2med.assessment.answers.reading import (
    ReadPassages,
    asked_queries,
    drawn_documents,
    passages_of,
    random_passages,
    relevant_passages,
)
from r2med.assessment.answers.searched_answers import searched_status
from r2med.assessment.answers.statuses import refuses, status_of
from r2med.assessment.panels.planted_controls import UNTESTED
from r2med.data.dataset import Dataset, Query
from r2med.data.nuggets_file import Nugget, Nuggets, nuggets_of, read_nuggets
from r2med.evaluation.measure import HEADLINE_MEASURE
from r2med.evaluation.records.answer_record import AnswerRecord, GivenAnswer
from r2med.evaluation.records.answer_words import SEARCHED, Condition
from r2med.evaluation.records.dataset_facts import query_facts
from r2med.evaluation.records.record import Record
from r2med.foundation.core.errors import UserError
from r2med.publication.leaderboard.agent_conversations import conversation_faults
from r2med.publication.leaderboard.stated_answers import answer_setting_faults, judge_faults, stated_questions
from r2med.publication.leaderboard.submitted_answers import failed_scores


@dataclass(frozen=True)
class ReadRanking:
    """The ranking that was read, if the entry has its record and the run file is here."""

    record: Record
    lists: Mapping[str, Sequence[str]]
    """Query -> the first documents of the run."""


@dataclass(frozen=True)
class _Asked:
    """What is known here about the questions of a record."""

    record: AnswerRecord
    dataset: Dataset
    queries: Mapping[str, Query]
    nuggets: Mapping[str, Sequence[Nugget]]
    ranking: ReadRanking | None
    retrieved: Mapping[str, GivenAnswer]
    """Query -> its answer in the condition "retrieved", whose length the random passages have."""


def unverified(record: AnswerRecord) -> tuple[str, ...]:
    """Return what cannot be computed again without an LLM."""
    parts = [f"that {record.reader} gave these answers"]
    if record.judge:
        untested = ", which was not tested" if record.judge.trust == UNTESTED else ""
        parts.append(f"the grades of the judge {record.judge.judge}{untested}")
    without = [status for rows in record.statuses.values() for status, count in rows.items() if count]
    if silent := [each for each in ("refused", "cut off", "unreadable") if each in without]:
        parts.append(f"answers without a text, which are said to be {' or '.join(silent)}")
    if SEARCHED in record.statuses:
        parts.append("that its agent had these conversations, and what they cost")
    if record.notices:
        parts.append("its notices")
    if (left := record.dataset.judged_queries - len(record.queries)) > 0:
        parts.append(f"{left:,} of {record.dataset.judged_queries:,} judged queries, which were not asked")
    return tuple(parts)


def answer_record_faults(
    record: AnswerRecord,
    answers: Sequence[GivenAnswer],
    dataset: Dataset,
    ranking: ReadRanking | None,
    nuggets_file: Path | None = None,
    conversations: Path | None = None,
) -> Iterator[str]:
    """Yield what does not match, in the order of the checks. The facts of the dataset were checked before.

    `nuggets_file` is the file of nuggets that a pack brings with the record. Without it, those of the dataset count.
    `conversations` is the file of what an agent did, if it is here.
    """
    yield from answer_setting_faults(record)
    try:
        queries = {query.id: query for query in stated_questions(record, dataset)}
        nuggets = _nuggets(record, dataset, nuggets_file)
    except UserError as error:
        yield str(error)
        return
    facts = query_facts(dataset)
    if record.queries != {query: facts[query] for query in queries}:
        yield f"its questions and their facts are not those of {dataset.name} that its settings say"
        return
    cells = Counter((each.query, each.condition) for each in answers)
    if set(cells) != {(query, condition) for query in record.queries for condition in record.statuses}:
        yield "its answers are not those to its questions in all its conditions"
        return
    if repeated := next((cell for cell, count in cells.items() if count > 1), None):
        yield f"it has two answers to query {repeated[0]} in the condition {repeated[1]}"
    retrieved = {each.query: each for each in answers if each.condition == "retrieved"}
    asked = _Asked(record, dataset, queries, nuggets.by_query if nuggets else {}, ranking, retrieved)
    for answer in answers:
        where = f"the answer to query {answer.query} in the condition {answer.condition}"
        for fault in _answer_faults(answer, asked):
            yield f"{where} {fault}"
    if conversations:
        yield from conversation_faults(record, answers, dataset, conversations)
    yield from _record_values(record, answers)
    yield from judge_faults(record, answers)
    yield from _retrieval_faults(record, ranking)


def _nuggets(record: AnswerRecord, dataset: Dataset, file: Path | None) -> Nuggets | None:
    """Return the nuggets that were matched; None without any. Raises UserError if the record was scored with others."""
    if not record.nuggets:
        return None
    known = read_nuggets(file, dataset) if file else nuggets_of(dataset)
    if known is None or known.digest != record.nuggets:
        where = "beside it" if file else f"of {dataset.name} on this machine"
        raise UserError(f"its nuggets are not those {where}")
    return known


def _answer_faults(answer: GivenAnswer, asked: _Asked) -> Iterator[str]:
    record, query, grades = asked.record, asked.queries[answer.query], asked.dataset.qrels[answer.query]
    yield from _read_faults(answer, asked)
    yield from _status_faults(answer, query, asked.dataset)
    if record.form == "choice":
        yield from _choice_faults(answer, query, asked_queries(asked.dataset))
    elif answer.options or answer.choice is not None:
        yield "has options, but the questions are open"
    nuggets = asked.nuggets.get(answer.query, ())
    yield from _statement_faults(answer, nuggets)
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


def _read_faults(answer: GivenAnswer, asked: _Asked) -> Iterator[str]:
    """Yield faults of the passages: unknown, cited but not read, or other than those of the condition."""
    dataset = asked.dataset
    rows = dataset.corpus.rows(list(answer.read)).tolist()
    if lost := [document for document, row in zip(answer.read, rows, strict=True) if row < 0]:
        yield f"read document {lost[0][:60]!r}, which {dataset.name} does not have"
        return
    cited = [document for sentence in answer.sentences for document in sentence.documents]
    if unread := [document for document in cited if document not in answer.read]:
        yield f"cites document {unread[0][:60]!r}, which was not read"
    yield from _condition_faults(answer, asked)


def _condition_faults(answer: GivenAnswer, asked: _Asked) -> Iterator[str]:
    """Yield faults of the passages that are not those of the condition."""
    record, dataset, query = asked.record, asked.dataset, asked.queries[answer.query]
    match answer.condition:
        case "closed book":
            if answer.read:
                yield f"read document {answer.read[0][:60]!r}, but a closed book has no passages"
        case "relevant":
            shown = relevant_passages(dataset, query, record.passages)
            yield from _length_faults(answer, shown.documents, "the passages that are labelled as relevant")
        case "random":
            drawn = _random_documents(answer, asked)
            yield from _length_faults(answer, drawn, "the passages that are drawn for its query")
        case "retrieved":
            if asked.ranking:
                first = passages_of(dataset, list(asked.ranking.lists.get(answer.query, ()))[: record.passages])
                yield from _length_faults(answer, first.documents, "the first passages of its ranking")
            elif not 0 < len(answer.read) <= record.passages and answer.status != "failed":
                yield f"read {len(answer.read)} passages, but the record states {record.passages}"
        case "searched":
            yield from _search_faults(answer, asked)
        case other:
            assert_never(other)


def _search_faults(answer: GivenAnswer, asked: _Asked) -> Iterator[str]:
    """Yield faults of what an agent is said to have done: steps that do not follow from one another."""
    if answer.search is None:
        if answer.status != "failed":
            yield "does not say what the agent searched"
        return
    steps, query = answer.search.steps, answer.query
    if set(steps.get("returned", ())) != set(answer.read):
        yield "states other returned documents than those that it read"
    for step, documents in steps.items():
        if step != "cited" and (strange := next((each for each in documents if each not in answer.read), None)):
            yield f"states {strange[:60]!r} as {step}, but no search returned it"
    cited = {document for sentence in answer.sentences for document in sentence.documents}
    if "cited" in steps and set(steps["cited"]) != cited and not answer.options:
        yield "states other cited documents than those of its text"
    grades = asked.dataset.qrels[query]
    found = sum(grades.get(document, 0) > 0 for document in steps.get("returned", ()))
    if sum(answer.search.new_relevant) != found:
        yield f"states {sum(answer.search.new_relevant)} new relevant documents, but {found} were returned"


def _random_documents(answer: GivenAnswer, asked: _Asked) -> Sequence[str]:
    """Return the documents of the condition "random". They are as long as the retrieved ones, if that is known."""
    dataset, query = asked.dataset, asked.queries[answer.query]
    retrieved = asked.retrieved.get(answer.query)
    if retrieved is None or retrieved.cut or answer.cut:
        return drawn_documents(dataset, query, len(answer.read))
    shown: ReadPassages = passages_of(dataset, retrieved.read)
    return random_passages(dataset, query, shown.tokens).documents


def _length_faults(answer: GivenAnswer, expected: Sequence[str], what: str) -> Iterator[str]:
    """Yield a fault if an answer did not read the first of the expected passages, or fewer than it cut."""
    count = len(answer.read)
    if list(answer.read) != list(expected[:count]):
        yield f"did not read {what}"
    elif count + answer.cut < len(expected) or (expected and not count and answer.status != "failed"):
        yield f"read {count} of {len(expected)} passages, and states that {answer.cut} were cut"


def _status_faults(answer: GivenAnswer, query: Query, dataset: Dataset) -> Iterator[str]:
    """Yield faults of the status: one that the text does not have, or a failure that has another status."""
    if answer.failure or (not answer.text and answer.status != "answered"):
        if answer.text or answer.choice is not None or answer.sentences:
            yield "has a text or a choice, but it is stated as a failure"
        status_of_failure = searched_status if answer.condition == SEARCHED else failed_status
        if not answer.failure or status_of_failure(answer.failure) != answer.status:
            yield f"is stated as {answer.status}, but its failure is {answer.failure[:60]!r}"
        return
    if answer.options:
        if answer.status != "answered" and not (answer.status == "refused" and refuses(answer.text)):
            yield f"is stated as {answer.status}, but it has a text"
        return
    found = cited_sentences(answer.text, answer.read, passages_of(dataset, answer.read).texts)
    if found != tuple(sentence.model_copy(update={"supported": None}) for sentence in answer.sentences):
        yield "has sentences or citations that are not those of its text"
    status = status_of(answer.text, query.text)
    if status != answer.status:
        yield f"is stated as {answer.status}, but it is {status}"


def _choice_faults(answer: GivenAnswer, query: Query, others: Sequence[Query]) -> Iterator[str]:
    if answer.options != options_of(query, others):
        yield "has other options than those of the query"
    if answer.status != "answered":
        if answer.choice is not None:
            yield f"has a choice, but it is stated as {answer.status}"
    elif answer.choice is None or not 0 <= answer.choice < len(answer.options):
        yield f"chose option {answer.choice}, which does not exist"
    elif answer.text != answer.options[answer.choice]:
        yield "has another text than its option"


def _statement_faults(answer: GivenAnswer, nuggets: Sequence[Nugget]) -> Iterator[str]:
    """Yield faults of the nuggets that were matched, and of the number of statements."""
    if answer.nuggets and {*answer.nuggets} != {nugget.id for nugget in nuggets}:
        yield "has nuggets that are not those of its query"
    if answer.status != "answered" and any(said != "none" for said in answer.nuggets.values()):
        yield f"contains nuggets, but it is stated as {answer.status}"
    expected = len(answer.sentences) if answer.nuggets and answer.status == "answered" else 0
    if answer.statements != expected or not 0 <= answer.statements_found <= expected:
        yield f"states {answer.statements_found} of {answer.statements} statements, but has {expected} to match"


def _record_values(record: AnswerRecord, answers: Sequence[GivenAnswer]) -> Iterator[str]:
    """Yield faults of the scores and counts of the record. Its means were checked when it was read."""
    measures: dict[Condition, list[str]] = {}
    for each in answers:
        measures.setdefault(each.condition, []).extend(each.scores)
    for each in answers:
        stated = record.per_query[each.condition].get(each.query, {})
        if each.status == "failed" and stated != failed_scores(measures[each.condition]):
            yield f"its failed answer to query {each.query} in the condition {each.condition} does not count 0"
        elif each.status != "failed" and stated != each.scores:
            yield f"its scores of query {each.query} in the condition {each.condition} are not those of the answer"
    for condition, stated_counts in record.statuses.items():
        counts = Counter(each.status for each in answers if each.condition == condition)
        if counts != Counter(stated_counts):
            yield f"its counts of answers in the condition {condition} are wrong"


def _retrieval_faults(record: AnswerRecord, ranking: ReadRanking | None) -> Iterator[str]:
    if ranking is None:
        return
    headline = str(HEADLINE_MEASURE)
    if record.retrieval.keys() != record.queries.keys():
        yield f"its {headline} is not that of its questions"
    for query, value in record.retrieval.items():
        if not math.isclose(value, ranking.record.per_query.get(query, {}).get(headline, -1), abs_tol=1e-9):
            yield f"its {headline} of query {query} is {value:.4f}, which is not that of its ranking"


def _said(verdict: bool | None) -> str:
    return {None: "undecided", True: "right", False: "wrong"}[verdict]


def _listed(scores: Mapping[str, float]) -> str:
    return ", ".join(sorted(scores)) or "none"
