"""Score answers: by the chosen option or by a judge, who also reads nuggets and citations."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from r2med.assessment.answers.answer_judge import JudgeOfAnswers
from r2med.assessment.answers.answer_scores import rule_verdict, scores_of
from r2med.assessment.answers.answer_sheets import AnswerSheet, can_be_judged, judge_notices
from r2med.assessment.answers.judged_answers import AnswerJudging
from r2med.assessment.answers.nugget_matching import MAX_SENTENCES
from r2med.data.dataset import Dataset
from r2med.data.nuggets_file import Nuggets
from r2med.evaluation.records.answer_facts import GivenAnswer, JudgeFacts
from r2med.foundation.core.cost import NOTHING, Cost


@dataclass(frozen=True)
class ScoredAnswers:
    """Answers with their scores, and what is known about the judge."""

    answers: tuple[GivenAnswer, ...]
    judge: JudgeFacts | None = None
    """None if no judge was asked."""
    cost: Cost = NOTHING
    """The cost of the judge."""
    notices: tuple[str, ...] = ()


def scored(
    sheets: Sequence[AnswerSheet],
    judge: JudgeOfAnswers | None,
    *,
    untested: bool = False,
) -> list[ScoredAnswers]:
    """Return the answers of each sheet with all scores that can be computed.

    A judge first gets planted controls. Raises UserError if it fails those of grades. If it fails those of nuggets or
    of citations, the measures of these have no values, and a notice says so. `untested` is that of
    `AnswerJudging`.
    """
    ruled = [with_rules(sheet) for sheet in sheets]
    if judge is None or not any(can_be_judged(each) for sheet in ruled for each in sheet.answers):
        return [_scored(sheet, sheet.answers, None, _unjudged_notices(sheet)) for sheet in ruled]
    judged = AnswerJudging(judge, ruled, untested).ask()
    counts = [sum(map(can_be_judged, sheet.answers)) for sheet in ruled]
    found = []
    for number, sheet in enumerate(ruled):
        answers = judged.sheets[number].answers
        if not counts[number]:
            found.append(_scored(sheet, sheet.answers, None, ()))
            continue
        facts = judged.facts(number, judge, sheet.reader)
        notices = (*judged.withheld, *judge_notices(judge, sheet.reader, facts), *_notices(sheet))
        # What the controls cost is shared by all answers of the command.
        cost = judge.tally.cost.times(counts[number] / sum(counts))
        found.append(_scored(sheet, answers, facts, notices, cost))
    return found


def with_rules(sheet: AnswerSheet) -> AnswerSheet:
    """Return the sheet with the verdict of the rule on every answer."""
    references = {query.id: query.answer for query in sheet.dataset.queries}
    ruled = [each.model_copy(update={"by_rule": rule_verdict(each, references[each.query])}) for each in sheet.answers]
    return replace(sheet, answers=ruled)


def _scored(
    sheet: AnswerSheet,
    answers: Sequence[GivenAnswer],
    facts: JudgeFacts | None,
    notices: Iterable[str],
    cost: Cost = NOTHING,
) -> ScoredAnswers:
    # If there is nothing to judge, every answer is already decided: it was cut off, refused and so on.
    judged = facts is not None or not any(map(can_be_judged, answers))
    done = tuple(_with_scores(each, sheet.dataset, sheet.nuggets, judged=judged) for each in answers)
    return ScoredAnswers(done, facts, cost, tuple(notices))


def _with_scores(answer: GivenAnswer, dataset: Dataset, nuggets: Nuggets | None, *, judged: bool) -> GivenAnswer:
    facts = nuggets.by_query.get(answer.query, ()) if nuggets else ()
    grades = dataset.qrels.get(answer.query, {})
    return answer.model_copy(update={"scores": scores_of(answer, facts, grades, judged=judged)})


def _unjudged_notices(sheet: AnswerSheet) -> Iterator[str]:
    """Yield what a reader of scores without a judge should know."""
    if any(map(can_be_judged, sheet.answers)):
        also = ", nuggets were not matched and citations not checked" if sheet.nuggets else ""
        yield f"Not judged: open answers have no accuracy{also}, because no judge was named (--judge LLM)."


def _notices(sheet: AnswerSheet) -> Iterator[str]:
    """Yield what a reader of judged scores should know about nuggets and sentences."""
    written = [each for each in sheet.answers if can_be_judged(each)]
    if sheet.nuggets and (unreviewed := sum(not nugget.reviewed for nugget in sheet.nuggets)):
        yield f"{unreviewed:,} of {len(sheet.nuggets):,} nuggets were not reviewed by people."
    if long := sum(len(each.sentences) > MAX_SENTENCES for each in written):
        yield (
            f"{long:,} of {len(written):,} answers have more than {MAX_SENTENCES} sentences. The others count as "
            "not supported and as saying no nugget."
        )
