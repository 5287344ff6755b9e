"""Check what a submitted answer record states about its questions, its reader and its judge."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from r2med.assessment.answers.answer_controls import CITATION_KINDS, GRADE_KINDS, NUGGET_KINDS
from r2med.assessment.answers.answer_options import options_of
from r2med.assessment.answers.answer_scores import CITATION_SUPPORT, NUGGET_RECALL
from r2med.assessment.answers.answer_sheets import can_be_judged, stated_test
from r2med.assessment.answers.reading import asked_queries
from r2med.assessment.panels.planted_controls import CONTROLS, FEWEST_CONTROLS, UNTESTED, ControlTest
from r2med.data.dataset import Dataset, Query
from r2med.evaluation.records.answer_record import AnswerRecord, GivenAnswer, JudgeFacts, answer_key
from r2med.evaluation.records.answer_words import CONDITIONS
from r2med.foundation.core.errors import UserError
from r2med.foundation.runtime.setup import Setup
from r2med.models.llm.llm_cards import families, resolve_llm
from r2med.publication.leaderboard.stated_settings import asks_a_server, is_in_the_future

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
    if asks_a_server(settings) and record.varies is False:
        yield "its settings name an LLM behind a server, so it varies, but it says that it does not"
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


def judge_faults(record: AnswerRecord, answers: Sequence[GivenAnswer]) -> Iterator[str]:
    """Yield faults of the judge: controls that it failed, agreement, and its family."""
    judge = record.judge
    judged = [each for each in answers if can_be_judged(each)]
    if judge is None:
        if record.settings.get("judge") and judged:
            yield "its settings name a judge, but it has no verdicts of one"
        if any(_is_judged(each) for each in answers):
            yield "it has verdicts, but no judge"
        return
    if any(_is_judged(each) for each in answers if not can_be_judged(each)):
        yield "it has a verdict of the judge on what is not an answer"
    yield from _control_faults(judge, record)
    both = [each for each in judged if None not in (each.by_rule, each.by_judge)]
    if (judge.both, judge.agreed) != (len(both), sum(each.by_rule == each.by_judge for each in both)):
        yield "it states a wrong agreement of judge and rule"
    if _of_one_family(judge.judge, record.reader) and not judge.own_family:
        yield f"its judge {judge.judge} is of the same family as its reader, but it does not say so"


def _is_judged(answer: GivenAnswer) -> bool:
    said = [sentence.supported for sentence in answer.sentences]
    return answer.by_judge is not None or bool(answer.why) or any(each is not None for each in said)


def _control_faults(judge: JudgeFacts, record: AnswerRecord) -> Iterator[str]:
    """Yield faults of the planted controls. With too many errors, `r2med answer` makes no record, or no measure."""
    known = {**GRADE_KINDS, **NUGGET_KINDS, **CITATION_KINDS}
    for kind, (right, asked) in judge.controls.items():
        if kind not in known:
            yield f"it states a kind of controls that does not exist: {kind[:60]}; make it again with r2med answer"
            return
        if not 0 <= right <= asked or not asked:
            yield f"it states {right} of {asked} right controls that are {kind}"
            return
    grades = stated_test(judge, GRADE_KINDS)
    yield from _count_faults(judge, grades)
    measures = {measure for rows in record.mean.values() for measure in rows}
    tests = [grades] + [
        stated_test(judge, kinds)
        for kinds, measure in ((NUGGET_KINDS, NUGGET_RECALL), (CITATION_KINDS, CITATION_SUPPORT))
        if measure in measures and any(kind in kinds for kind in judge.controls)
    ]
    if fault := next((test.fault for test in tests if test.fault), ""):
        yield f"its judge {judge.judge} fails the planted controls: {fault}"


def _count_faults(judge: JudgeFacts, grades: ControlTest) -> Iterator[str]:
    """Yield faults of the numbers of controls for grades: half are to be answered yes."""
    if (judge.trust == UNTESTED) != (grades.asked < FEWEST_CONTROLS):
        said = "was not tested" if judge.trust == UNTESTED else "was tested"
        yield f"it states that its judge {said}, and {grades.asked} controls"
    if grades.asked > CONTROLS:
        yield f"it states {grades.asked} controls, and a judge is asked {CONTROLS}"
    asked_for_yes = sum(each.asked for each in grades.counts if each.yes)
    if 2 * asked_for_yes != grades.asked:
        yield f"{asked_for_yes} of its {grades.asked} controls are to be answered yes, which must be half"


def _of_one_family(judge: str, reader: str) -> bool:
    """Return True if two LLMs are of one family. LLMs that are not known here are of one only if they are the same."""
    if judge == reader:
        return True
    try:
        one, other = (resolve_llm(name, Setup()) for name in (judge, reader))
    except UserError:
        return False
    return bool({*families(one)} & {*families(other)})
