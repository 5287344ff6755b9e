"""What the pages say about the conditions, measures and statuses of answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from r2med.evaluation.records.answer_views import RETRIEVED
from r2med.evaluation.records.answer_words import CONDITIONS, AnswerGrade, AnswerStatus, Condition


@dataclass(frozen=True)
class AnswerMeasure:
    """A measure of answers, and its column on the page Answers."""

    name: str
    title: str
    label: str = ""
    """The head of its column; empty if it has no column of its own."""
    group: str = ""
    """The group of its column."""
    about: str = ""


MEASURES = (
    AnswerMeasure("accuracy", "Accuracy"),
    AnswerMeasure(
        "nugget-recall",
        "Nugget recall",
        "Nuggets",
        "Facts",
        "Share of the facts of the reference answer that the answer contains.",
    ),
    AnswerMeasure(
        "vital-recall",
        "Vital recall",
        "Vital",
        "Facts",
        "Share of the vital facts that the answer contains completely.",
    ),
    AnswerMeasure(
        "nugget-precision",
        "Nugget precision",
        "Precision",
        "Facts",
        "Share of the answer’s statements that are such a fact.",
    ),
    AnswerMeasure(
        "citation-support",
        "Citation support",
        "Support",
        "Citations",
        "Share of the answer’s sentences that the cited passages support.",
    ),
    AnswerMeasure(
        "citation-relevance",
        "Citation relevance",
        "Relevant",
        "Citations",
        "Share of the cited passages that are relevant.",
    ),
    AnswerMeasure(
        "returned-recall",
        "Recall of returned documents",
        "Returned",
        "Search",
        "Share of the relevant documents that a search of the agent returned.",
    ),
    AnswerMeasure(
        "shown-recall",
        "Recall of shown documents",
        "Shown",
        "Search",
        "Share of the relevant documents whose text was in the conversation.",
    ),
    AnswerMeasure(
        "opened-recall",
        "Recall of opened documents",
        "Opened",
        "Search",
        "Share of the relevant documents that the agent opened.",
    ),
    AnswerMeasure(
        "cited-recall",
        "Recall of cited documents",
        "Cited",
        "Search",
        "Share of the relevant documents that the answer cites.",
    ),
    AnswerMeasure(
        "kept-recall",
        "Recall of kept documents",
        "Kept",
        "Search",
        "Share of the relevant documents in the agent’s list at the end.",
    ),
    AnswerMeasure(
        "confidence",
        "Confidence",
        "Confidence",
        "Calibration",
        "How sure the agent is of its answers, on average.",
    ),
    AnswerMeasure(
        "brier",
        "Brier score",
        "Brier",
        "Calibration",
        "Mean square of the difference of confidence and truth. Lower is better.",
    ),
)
"""The measures of an answer, in the order of the columns."""

READ_IN: Mapping[Condition, str] = {
    "closed book": "no passage",
    "retrieved": "the best passages of the system",
    "relevant": "the labelled passages",
    "random": "random passages",
    "searched": "what it searched itself",
}
"""Condition -> what the reader reads."""

ABOUT_CONDITION: Mapping[Condition, str] = {
    "closed book": "The reader reads no passage.",
    "retrieved": "The reader reads the best passages of the system.",
    "relevant": "The reader reads the passages that are labelled as relevant.",
    "random": "The reader reads random passages of the same length.",
    "searched": "The reader is an agent that searches, opens documents, answers and cites.",
}

ABOUT_STATUS: Mapping[AnswerStatus, str] = {
    "answered": "",
    "no option": "The answer states none of the options, or several, so it counts as wrong.",
    "refused": "The server of the LLM says that it refused to answer, so the answer counts as wrong.",
    "cut off": "The reader wrote until its token limit and was not finished, so the answer counts as wrong.",
    "unreadable": "The answer does not have the form that was asked for, so it counts as wrong.",
    "failed": "The request failed, so there is no answer and no score. The same command asks it again.",
}


GRADE_WORDS: Mapping[AnswerGrade, str] = {
    "nothing": "abstained",
    "wrong": "wrong",
    "partly": "partly right",
    "right": "right",
}
"""Grade of the judge -> the word that pages show."""


def answer_labels() -> dict[str, Any]:
    """Return the lists of conditions, measures, statuses and so on, and the condition that systems are ranked by."""
    return {
        "condition": RETRIEVED,
        "conditions": [
            {"name": name, "label": name.capitalize(), "about": ABOUT_CONDITION[name], "read": READ_IN[name]}
            for name in CONDITIONS
        ],
        "measures": [asdict(measure) for measure in MEASURES],
        "statuses": dict(ABOUT_STATUS),
        "grades": dict(GRADE_WORDS),
    }
