"""Score answers: by the chosen option, by a judge or else a rule, and with a judge also by nuggets and citations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from r2med.assessment.answers.answer_controls import ControlResult, check_nugget_matching, check_support, check_verdicts
from r2med.assessment.answers.answer_judge import AnswerJudge
from r2med.assessment.answers.answer_scores import rule_verdict, scores_of
from r2med.assessment.answers.citation_support import cited_sentences_of, with_support
from r2med.assessment.answers.nugget_matching import MAX_SENTENCES, match_nuggets
from r2med.assessment.panels.planted_controls import KindCount
from r2med.data.dataset import Dataset
from r2med.data.nuggets_file import Nuggets
from r2med.evaluation.records.answer_record import GivenAnswer, JudgeFacts
from r2med.evaluation.records.answer_words import can_be_right
from r2med.foundation.core.cost import NOTHING, Cost
from r2med.foundation.engine.tracing import Span


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
    answers: Sequence[GivenAnswer],
    dataset: Dataset,
    judge: AnswerJudge | None,
    nuggets: Nuggets | None,
    spans: Mapping[int, Span] | None = None,
) -> ScoredAnswers:
    """Return the answers with all scores that can be computed. `spans` are those of the answers in a trace.

    A judge first gets planted controls. Raises UserError if it fails those of grades. If it fails those of nuggets or
    of citations, the measures of these have no values, and a notice says so.
    """
    references = {query.id: query.answer for query in dataset.queries}
    given = [each.model_copy(update={"by_rule": rule_verdict(each, references[each.query])}) for each in answers]
    facts: JudgeFacts | None = None
    withheld: list[str] = []
    if judge is not None and any(map(_is_judged, given)):
        given, counts, withheld = _judged(given, dataset, judge, nuggets, spans or {})
        facts = _facts(given, judge, counts)
    done = tuple(_with_scores(each, dataset, nuggets, judged=facts is not None) for each in given)
    notices = (*withheld, *_notices(done, nuggets, judge if facts else None))
    return ScoredAnswers(done, facts, judge.cost if judge and facts else NOTHING, notices)


def _is_judged(answer: GivenAnswer) -> bool:
    """Return True for an answer in the reader's own words."""
    return answer.status == "answered" and not answer.options


def _judged(
    answers: Sequence[GivenAnswer],
    dataset: Dataset,
    judge: AnswerJudge,
    nuggets: Nuggets | None,
    spans: Mapping[int, Span],
) -> tuple[list[GivenAnswer], list[KindCount], list[str]]:
    """Return the answers with the verdicts of a judge, how it answered the controls, and which measures are withheld.

    All controls come first.
    """
    counts = [*check_verdicts(judge, dataset, nuggets)]
    matching = check_nugget_matching(judge, dataset, nuggets) if nuggets else ControlResult(())
    support = check_support(judge, dataset) if any(cited_sentences_of(answers)) else ControlResult(())
    given = _with_verdicts(answers, dataset, judge, spans)
    if nuggets and not matching.fault:
        given = _with_nuggets(given, dataset, judge, nuggets, spans)
    if not support.fault:
        given = with_support(given, dataset, judge, spans)
    parts = (("Measures of nuggets are", matching), ("citation-support is", support))
    withheld = [f"{measures} withheld: {part.fault}." for measures, part in parts if part.fault]
    return given, [*counts, *matching.counts, *support.counts], withheld


def _with_verdicts(
    answers: Sequence[GivenAnswer], dataset: Dataset, judge: AnswerJudge, spans: Mapping[int, Span]
) -> list[GivenAnswer]:
    queries = {query.id: query for query in dataset.queries}
    asked = [number for number, each in enumerate(answers) if _is_judged(each)]
    items = [
        (queries[each.query].text, queries[each.query].answer, each.text) for each in map(answers.__getitem__, asked)
    ]
    given = list(answers)
    for number, verdict in zip(asked, judge.verdicts(items, [*map(spans.get, asked)]), strict=True):
        if verdict is not None:
            given[number] = given[number].model_copy(update={"by_judge": verdict[0], "why": verdict[1]})
    return given


def _with_nuggets(
    answers: Sequence[GivenAnswer], dataset: Dataset, judge: AnswerJudge, nuggets: Nuggets, spans: Mapping[int, Span]
) -> list[GivenAnswer]:
    """Return the answers with their nuggets. An answer that was refused and so on contains none of them."""
    texts = {query.id: query.text for query in dataset.queries}
    with_facts = [number for number, each in enumerate(answers) if each.query in nuggets.by_query and not each.options]
    asked = [number for number in with_facts if _is_judged(answers[number])]
    items = [
        (texts[each.query], nuggets.by_query[each.query], [sentence.text for sentence in each.sentences])
        for each in map(answers.__getitem__, asked)
    ]
    found = dict(zip(asked, match_nuggets(judge, items, [*map(spans.get, asked)]), strict=True))
    given = list(answers)
    for number in with_facts:
        answer, match = given[number], found.get(number)
        if match is not None:
            facts = {"nuggets": dict(match.said), "statements_found": match.sentences}
            given[number] = answer.model_copy(update={**facts, "statements": len(answer.sentences)})
        elif can_be_right(answer.status) is False:
            none = {nugget.id: "none" for nugget in nuggets.by_query[answer.query]}
            given[number] = answer.model_copy(update={"nuggets": none})
    return given


def _facts(answers: Sequence[GivenAnswer], judge: AnswerJudge, counts: Sequence[KindCount]) -> JudgeFacts:
    both = [each for each in answers if _is_judged(each) and None not in (each.by_rule, each.by_judge)]
    return JudgeFacts(
        judge=judge.card.spec,
        controls={count.kind: (count.right, count.asked) for count in counts},
        agreed=sum(each.by_rule == each.by_judge for each in both),
        both=len(both),
        own_family=bool(judge.shared_families),
        failures=dict(judge.failures),
    )


def _with_scores(answer: GivenAnswer, dataset: Dataset, nuggets: Nuggets | None, *, judged: bool) -> GivenAnswer:
    facts = nuggets.by_query.get(answer.query, ()) if nuggets else ()
    grades = dataset.qrels.get(answer.query, {})
    return answer.model_copy(update={"scores": scores_of(answer, facts, grades, judged=judged)})


def _notices(answers: Sequence[GivenAnswer], nuggets: Nuggets | None, judge: AnswerJudge | None) -> Iterator[str]:
    """Yield what a reader of the scores should know, one sentence each."""
    written = [each for each in answers if _is_judged(each)]
    if judge is None:
        undecided = sum(each.by_rule is None for each in written)
        if undecided:
            yield (
                f"{undecided:,} of {len(written):,} answers are undecided: without a judge, only an answer that is the "
                "reference counts as right. A judge would decide them."
            )
        if nuggets and written:
            yield "Nuggets were not matched and citations not checked, because no judge was named."
        return
    yield from judge.notices()
    if nuggets and (unreviewed := sum(not nugget.reviewed for nugget in nuggets)):
        yield f"{unreviewed:,} of {len(nuggets):,} nuggets were not reviewed by people."
    if long := sum(len(each.sentences) > MAX_SENTENCES for each in written):
        yield (
            f"{long:,} of {len(written):,} answers have more than {MAX_SENTENCES} sentences. The others count as "
            "not supported and as saying no nugget."
        )
