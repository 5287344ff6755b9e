"""Check what a submitted answer record states about its questions, its reader and its judge."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from r2med.assessment.answers.answer_controls import (
    CONTROLS,
    DENIED,
    DENIED_NUGGETS,
    EMPTY,
    ORDERS,
    OTHER,
    OTHER_NUGGETS,
    OTHER_PASSAGE,
    OWN_NUGGETS,
    OWN_PASSAGE,
    PARAPHRASE,
    REFERENCE,
    answer_controls,
)
from r2med.assessment.answers.answer_options import options_of
from r2med.assessment.answers.answer_scores import CITATION_SUPPORT, NUGGET_RECALL
from r2med.assessment.answers.reading import asked_queries
from r2med.assessment.panels.planted_controls import ControlTest, KindCount
from r2med.data.dataset import Dataset, Query
from r2med.data.nuggets_file import Nuggets
from r2med.evaluation.records.answer_record import AnswerRecord, GivenAnswer, JudgeFacts, answer_key
from r2med.evaluation.records.answer_words import CONDITIONS
from r2med.foundation.core.errors import UserError
from r2med.foundation.runtime.setup import Setup
from r2med.models.llm.llm_cards import families, resolve_llm
from r2med.publication.leaderboard.stated_settings import is_in_the_future

SETTINGS = {
    "retrieval",
    "reader",
    "prompts",
    "form",
    "passages",
    "conditions",
    "queries",
    "judge",
    "nuggets",
}
"""The settings of every answer record."""

_GRADES = {REFERENCE: True, PARAPHRASE: True, OTHER: False, DENIED: False, EMPTY: False, ORDERS: False}
_NUGGETS = {OWN_NUGGETS: True, OTHER_NUGGETS: False, DENIED_NUGGETS: False}
_CITATIONS = {OWN_PASSAGE: True, OTHER_PASSAGE: False}
"""Kind of a planted control -> the right verdict, for each task of a judge."""


def answer_setting_faults(record: AnswerRecord) -> Iterator[str]:
    """Yield settings that are not those of the record."""
    settings = record.settings
    if record.key != answer_key(settings, record.dataset.fingerprint):
        yield "its key is not that of its settings and its dataset: make the entry again with r2med submit"
    if invented := sorted(settings.keys() - SETTINGS):
        yield f"its settings have {invented[0][:60]!r}, which is not a setting of answers"
    judge = _llm(settings.get("judge"))
    stated: Mapping[str, tuple[Any, Any]] = {
        "reader": (_llm(settings.get("reader")), record.reader),
        "form": (settings.get("form"), record.form),
        "passages": (settings.get("passages"), record.passages),
        "nuggets": (settings.get("nuggets"), record.nuggets),
        "conditions": (settings.get("conditions"), [each for each in CONDITIONS if each in record.statuses]),
        "judge": (judge, record.judge.judge if record.judge else judge),
    }
    for name, (typed, found) in stated.items():
        if typed != found:
            yield f"its settings name another {name} than the record: {str(typed)[:60]!r}, not {str(found)[:60]!r}"
    if record.reader_costs and record.reader_costs.keys() != record.statuses.keys():
        yield "its costs of the reader are not those of its conditions"
    if is_in_the_future(record.created):
        yield f"it was made in the future, on {record.created[:60]}"


def _llm(described: Any) -> Any:
    return described.get("llm") if isinstance(described, Mapping) else described


def stated_questions(record: AnswerRecord, dataset: Dataset) -> list[Query]:
    """Return the questions that the settings of a record say. Raises UserError if they say none."""
    limit = record.settings.get("queries")
    if not isinstance(limit, int) or limit < 0:
        raise UserError("its settings do not say how many queries were asked")
    every = asked_queries(dataset)
    asked = every[: limit or None]
    return asked if record.form == "open" else [query for query in asked if len(options_of(query, every)) > 1]


def judge_faults(
    record: AnswerRecord, answers: Sequence[GivenAnswer], dataset: Dataset, nuggets: Nuggets | None
) -> Iterator[str]:
    """Yield faults of the judge: controls that it failed, agreement, and its family. `nuggets` are the matched ones."""
    judge = record.judge
    judged = [each for each in answers if _can_be_judged(each)]
    if judge is None:
        if record.settings.get("judge") and judged:
            yield "its settings name a judge, but it has no verdicts of one"
        if any(_is_judged(each) for each in answers):
            yield "it has verdicts, but no judge"
        return
    if any(_is_judged(each) for each in answers if not _can_be_judged(each)):
        yield "it has a verdict of the judge on what is not an answer"
    yield from _control_faults(judge, record, dataset, nuggets)
    both = [each for each in judged if None not in (each.by_rule, each.by_judge)]
    if (judge.both, judge.agreed) != (len(both), sum(each.by_rule == each.by_judge for each in both)):
        yield "it states a wrong agreement of judge and rule"
    if _of_one_family(judge.judge, record.reader) and not judge.own_family:
        yield f"its judge {judge.judge} is of the same family as its reader, but it does not say so"


def _can_be_judged(answer: GivenAnswer) -> bool:
    return answer.status == "answered" and not answer.options


def _is_judged(answer: GivenAnswer) -> bool:
    said = [sentence.supported for sentence in answer.sentences]
    return answer.by_judge is not None or bool(answer.why) or any(each is not None for each in said)


def _control_faults(
    judge: JudgeFacts, record: AnswerRecord, dataset: Dataset, nuggets: Nuggets | None
) -> Iterator[str]:
    """Yield faults of the planted controls. With too many errors, `r2med answer` makes no record, or no measure."""
    planned = _planned(dataset, nuggets)
    for kind, (right, asked) in judge.controls.items():
        if kind not in planned:
            yield f"it states a kind of controls that does not exist: {kind[:60]}"
            return
        if not 0 <= right <= asked <= planned[kind]:
            yield f"it states {right} of {asked} right controls that are {kind}, but there are {planned[kind]}"
            return
    measures = {measure for rows in record.mean.values() for measure in rows}
    tasks = ((_GRADES, True), (_NUGGETS, NUGGET_RECALL in measures), (_CITATIONS, CITATION_SUPPORT in measures))
    for kinds, needed in tasks:
        counts = [
            KindCount(kind, expected, judge.controls[kind][1], judge.controls[kind][0])
            for kind, expected in kinds.items()
            if kind in judge.controls
        ]
        if needed and (fault := ControlTest(tuple(counts)).failed_kind):
            yield f"its judge {judge.judge} fails the planted controls: {fault}"


def _planned(dataset: Dataset, nuggets: Nuggets | None) -> dict[str, int]:
    """Return kind of control -> the largest number of them. Nuggets have a control for each nugget of ten queries."""
    planted = [control.kind for control in answer_controls(dataset, nuggets)]
    counts = {kind: planted.count(kind) for kind in _GRADES}
    of_nuggets = sum(sorted(map(len, nuggets.by_query.values()))[-CONTROLS:]) if nuggets else 0
    return counts | dict.fromkeys(_NUGGETS, of_nuggets) | dict.fromkeys(_CITATIONS, CONTROLS)


def _of_one_family(judge: str, reader: str) -> bool:
    """Return True if two LLMs are of one family. LLMs that are not known here are of one only if they are the same."""
    if judge == reader:
        return True
    try:
        one, other = (resolve_llm(name, Setup()) for name in (judge, reader))
    except UserError:
        return False
    return bool({*families(one)} & {*families(other)})
