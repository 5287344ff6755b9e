"""Compute the scores of an answer from what rules and judges said about it. No LLM is asked.

`verify` repeats this arithmetic on the records of others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from r2med.assessment.answers.answer_rule import by_rule
from r2med.data.nuggets_file import Nugget
from r2med.evaluation.records.answer_facts import GivenAnswer
from r2med.evaluation.records.answer_words import RIGHT, NuggetVerdict, can_be_right
from r2med.foundation.core.search_steps import SearchStep

ACCURACY = "accuracy"
NUGGET_RECALL, VITAL_RECALL, NUGGET_PRECISION = "nugget-recall", "vital-recall", "nugget-precision"
CITATION_SUPPORT, CITATION_RELEVANCE = "citation-support", "citation-relevance"
CONFIDENCE, BRIER = "confidence", "brier"
STEP_RECALL: Mapping[SearchStep, str] = {
    "returned": "returned-recall",
    "shown": "shown-recall",
    "opened": "opened-recall",
    "cited": "cited-recall",
    "kept": "kept-recall",
}
"""Step of an agent -> the measure of how many relevant documents came so far."""

SEARCH_MEASURES = (*STEP_RECALL.values(), CONFIDENCE, BRIER)
"""The measures of agents that search and answer."""

ANSWER_MEASURES: Mapping[str, str] = {
    ACCURACY: "Share of right answers. An option decides by itself, and a judge decides open answers.",
    NUGGET_RECALL: "Share of the nuggets in an answer. One that is there in part counts one half.",
    VITAL_RECALL: "Share of the vital nuggets that are completely in an answer.",
    NUGGET_PRECISION: "Share of the sentences of an answer that say a nugget.",
    CITATION_SUPPORT: "Share of the sentences of an answer that are supported by the passages they cite.",
    CITATION_RELEVANCE: "Share of the cited passages that are relevant in the judgements.",
    STEP_RECALL["returned"]: "Share of the relevant documents that a search of the agent returned.",
    STEP_RECALL["shown"]: "Share of the relevant documents whose text was in the conversation.",
    STEP_RECALL["opened"]: "Share of the relevant documents that the agent opened.",
    STEP_RECALL["cited"]: "Share of the relevant documents that the answer cites.",
    STEP_RECALL["kept"]: "Share of the relevant documents in the agent's list at the end.",
    CONFIDENCE: "How sure the agent is of its answers.",
    BRIER: "Mean square of the difference of confidence and truth. Lower is better.",
}
"""Measure of answers -> its meaning. All values are between 0 and 1."""

_CREDIT: Mapping[NuggetVerdict, float] = {"support": 1.0, "partial": 0.5, "none": 0.0}


def scores_of(
    answer: GivenAnswer, nuggets: Sequence[Nugget], grades: Mapping[str, int], *, judged: bool
) -> dict[str, float]:
    """Return measure -> value for all measures that are known for an answer.

    `nuggets` and `grades` (document -> grade) are those of the query. `judged` is True if a judge was asked. A failed
    request has no values. An answer that was refused, cut off and so on is wrong, and contains no nuggets. An open
    answer without a grade has no accuracy. An answer that abstains has no citations and no statements to measure.
    """
    if answer.status == "failed":
        return {}
    verdict = is_right(answer, judged=judged)
    values = {
        ACCURACY: None if verdict is None else float(verdict),
        **_nugget_scores(answer, nuggets),
        CITATION_SUPPORT: citation_support(answer),
        CITATION_RELEVANCE: citation_relevance(answer, grades),
        **_search_scores(answer, grades, verdict),
    }
    return {measure: value for measure, value in values.items() if value is not None}


def _search_scores(answer: GivenAnswer, grades: Mapping[str, int], verdict: bool | None) -> dict[str, float | None]:
    """Return the measures of an agent. A step that it does not have, and an unknown confidence, have no value."""
    if answer.search is None:
        return {}
    relevant = {document for document, grade in grades.items() if grade > 0}
    confidence = answer.search.confidence
    return {
        **{
            STEP_RECALL[step]: len(relevant.intersection(documents)) / len(relevant) if relevant else None
            for step, documents in answer.search.steps.items()
        },
        CONFIDENCE: confidence,
        BRIER: None if confidence is None or verdict is None else (confidence - verdict) ** 2,
    }


def rule_verdict(answer: GivenAnswer, reference: str) -> bool | None:
    """Return the verdict of the rule: the chosen option is the reference, or an open answer is.

    Only an answer with the status "answered" can be right. A failed request has no verdict.
    """
    if not (possible := can_be_right(answer.status)):
        return possible
    if answer.options:
        return answer.choice is not None and answer.options[answer.choice] == reference
    return by_rule(" ".join(sentence.text for sentence in answer.sentences), reference)


def is_right(answer: GivenAnswer, *, judged: bool) -> bool | None:
    """Return True for a right answer, False for a wrong one, and None if that is not decided.

    A choice is decided by its option, an open answer by a judge: the rule is only the control of the judge.
    """
    if answer.options:
        return answer.by_rule
    if not judged:
        return None
    if not can_be_right(answer.status):
        return False
    return None if answer.grade is None else answer.grade == RIGHT


def _nugget_scores(answer: GivenAnswer, nuggets: Sequence[Nugget]) -> dict[str, float | None]:
    """Return the measures of nuggets. They are None if the nuggets of the query were not all matched."""
    if not nuggets or set(answer.nuggets) != {nugget.id for nugget in nuggets}:
        return {}
    credits = [_CREDIT[answer.nuggets[nugget.id]] for nugget in nuggets]
    vital = [answer.nuggets[nugget.id] == "support" for nugget in nuggets if nugget.vital]
    counted = answer.is_answered and answer.statements
    return {
        NUGGET_RECALL: sum(credits) / len(credits),
        VITAL_RECALL: sum(vital) / len(vital) if vital else None,
        NUGGET_PRECISION: answer.statements_found / answer.statements if counted else None,
    }


def citation_support(answer: GivenAnswer) -> float | None:
    """Return the share of supported sentences; None if the judge decided not all of them, or nothing was read."""
    verdicts = [sentence.supported for sentence in answer.sentences]
    if not answer.is_answered or not answer.read or not verdicts or None in verdicts:
        return None
    return sum(map(bool, verdicts)) / len(verdicts)


def citation_relevance(answer: GivenAnswer, grades: Mapping[str, int]) -> float | None:
    """Return the share of relevant passages among those that are cited. None if nothing is cited, or nothing was read.

    A passage counts once, however often it is cited. A citation of a passage that does not exist is not relevant, also
    one of an agent that did not search.
    """
    if not answer.is_answered or not (answer.read or answer.search):
        return None
    cited = {document for sentence in answer.sentences for document in sentence.documents}
    unknown = sum(sentence.unknown for sentence in answer.sentences)
    relevant = sum(grades.get(document, 0) > 0 for document in cited)
    return relevant / (len(cited) + unknown) if cited or unknown else None
