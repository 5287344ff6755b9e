"""What the pages say about the conditions, measures and statuses of answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from r2med.evaluation.records.answer_collection import RETRIEVED
from r2med.evaluation.records.answer_words import CONDITIONS, AnswerStatus, Condition


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
    AnswerMeasure("undecided", "Undecided"),
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
)
"""The measures of an answer, in the order of the columns."""

READ_IN: Mapping[Condition, str] = {
    "closed book": "no passage",
    "retrieved": "the best passages of the system",
    "relevant": "the labelled passages",
    "random": "random passages",
}
"""Condition -> what the reader reads."""

ABOUT_CONDITION: Mapping[Condition, str] = {
    "closed book": "The reader reads no passage.",
    "retrieved": "The reader reads the best passages of the system.",
    "relevant": "The reader reads the passages that are labelled as relevant.",
    "random": "The reader reads random passages of the same length.",
}

ABOUT_STATUS: Mapping[AnswerStatus, str] = {
    "answered": "",
    "refused": "The reader declined to answer, so the answer counts as wrong.",
    "other language": "The answer is not in the language of the question, so it counts as wrong.",
    "copied": "The answer only repeats the question, so it counts as wrong.",
    "cut off": "The reader wrote until its token limit and was not finished, so the answer counts as wrong.",
    "unreadable": "The answer does not have the form that was asked for, so it counts as wrong.",
    "failed": "The request failed, so there is no answer and no score. The same command asks it again.",
}


def answer_labels() -> dict[str, Any]:
    """Return the lists of conditions, measures and statuses, and the condition that systems are ranked by."""
    return {
        "condition": RETRIEVED,
        "conditions": [
            {"name": name, "label": name.capitalize(), "about": ABOUT_CONDITION[name], "read": READ_IN[name]}
            for name in CONDITIONS
        ],
        "measures": [asdict(measure) for measure in MEASURES],
        "statuses": dict(ABOUT_STATUS),
    }
