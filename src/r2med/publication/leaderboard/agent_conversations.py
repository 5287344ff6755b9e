"""Check that what an agent is said to have done follows from its conversations: answers, steps, path and counts."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from r2med.assessment.answers.answer_options import options_of
from r2med.assessment.answers.answering_agents import with_options
from r2med.assessment.answers.reading import asked_queries
from r2med.assessment.answers.searched_answers import AgentConversation, searched_answer, searching_means
from r2med.data.dataset import Dataset
from r2med.evaluation.records.answer_record import AnswerRecord, GivenAnswer
from r2med.evaluation.records.answer_words import SEARCHED

_FIELDS = ("read", "tokens", "options", "status", "failure", "text", "choice")
"""Fields of an answer that follow from its conversation. Sentences are compared without the verdicts of a judge."""
_STEPS = {"returned": "documents", "shown": "shown", "opened": "opened"}
"""Step -> the field of a turn that has its documents."""


def conversation_faults(
    record: AnswerRecord, answers: Sequence[GivenAnswer], dataset: Dataset, file: Path
) -> Iterator[str]:
    """Yield what does not follow from the conversations in a file. Dollars depend on prices and are not compared."""
    try:
        traces = {query: _first(each) for query, each in json.loads(file.read_bytes()).items()}
        queries = {query.id: query for query in asked_queries(dataset)}
        for answer in (each for each in answers if each.condition == SEARCHED):
            query = queries[answer.query]
            if record.form == "choice":
                query = with_options(query, options_of(query, list(queries.values())))
            expected = searched_answer(query, traces.get(query.id), dataset, None, record.form)
            where = f"the answer to query {query.id} in the condition {SEARCHED}"
            yield from (f"{where} {fault}" for fault in _answer_faults(answer, expected))
            yield from (f"{where} {fault}" for fault in _trace_faults(traces.get(query.id, {})))
        yield from _record_faults(record, answers)
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        yield "its file of conversations is not one that r2med wrote"


def _first(each: Any) -> Mapping[str, Any]:
    trace: Mapping[str, Any] = each[0] if isinstance(each, list) else each
    return trace


def _answer_faults(answer: GivenAnswer, expected: GivenAnswer) -> Iterator[str]:
    for name in _FIELDS:
        if getattr(answer, name) != getattr(expected, name):
            yield f"has another {name} than its conversation"
    plain = tuple(sentence.model_copy(update={"supported": None}) for sentence in answer.sentences)
    if plain != expected.sentences:
        yield "has other citations than its conversation"
    stated, found = (each.search.model_dump(exclude={"dollars"}) if each.search else {} for each in (answer, expected))
    for name, value in found.items():
        if stated.get(name) != value:
            yield f"states {_named(stated.get(name))} as {name}, but its conversation has {_named(value)}"
    if not found and stated:
        yield "states what an agent did, but there is no conversation"


def _trace_faults(trace: Mapping[str, Any]) -> Iterator[str]:
    """Yield steps and totals of a conversation that do not follow from its turns."""
    turns = list(trace.get("turns", ()))
    for step, field in _STEPS.items():
        if step not in trace.get("steps", {}):
            continue
        came = (each["id"] if field == "documents" else each for turn in turns for each in turn.get(field) or ())
        if set(trace["steps"][step]) != set(came):
            yield f"has a conversation whose {step} documents are not those of its turns"
    total = trace.get("total", {})
    if turns:
        for name in ("prompt_tokens", "completion_tokens", "seconds"):
            if not math.isclose(sum(turn[name] for turn in turns), total[name], rel_tol=1e-9, abs_tol=1e-6):
                yield f"has a conversation whose {name} are not those of its turns"
        if len(AgentConversation(trace).searches) != total["searches"]:
            yield "has a conversation whose number of searches is not that of its turns"


def _record_faults(record: AnswerRecord, answers: Sequence[GivenAnswer]) -> Iterator[str]:
    if (means := searching_means(answers)).keys() != record.searching.keys() or any(
        not math.isclose(value, record.searching[name], rel_tol=1e-9, abs_tol=1e-9) for name, value in means.items()
    ):
        yield "its means of searches, tokens and so on are not those of its answers"


def _named(value: object) -> str:
    return repr(value)[:60]
