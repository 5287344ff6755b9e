"""Rewriting by an LLM with minimal edits: exam questions without options, cases without their diagnosis, and the path
of reasoning from a question to its answer."""

from __future__ import annotations

import re
from collections.abc import Mapping

from pydantic import Field

from r2med.ask.answers import LLMAnswer, Remark, Text, Truth
from r2med.construction.items import Question, Rejected
from r2med.construction.steps.asking import AskingQuestions
from r2med.text.english import english

NO_DIAGNOSIS, NEEDS_FIGURE = "No Confirmed Diagnosis", "Needs A Figure"

_OFFERED = re.compile(
    r"\bof (?:the following|these (?:options|choices|answers|statements))\b"
    r"|\b(?:options|choices|statements|answers) (?:below|above|listed|given)\b|\banswer choices\b",
    re.IGNORECASE,
)
"""Words that speak of options."""
_PICTURE = r"(?:figure|image|photo(?:graph|micrograph)?|picture|exhibit|illustration|diagram)s?"
_SHOWN = re.compile(
    rf"\b(?:(?:shown|depicted|pictured) in (?:the|this) (?:\w+ )?{_PICTURE}|(?:shown|pictured) (?:below|above|here)"
    rf"|(?:see|refer to) (?:the )?{_PICTURE}|(?:accompanying|following|attached) {_PICTURE}|{_PICTURE} (?:below|above)"
    r"|figure \d+)\b",
    re.IGNORECASE,
)
"""Words that point to a picture, which a query in words does not have."""
_PLACEHOLDERS = frozenset(
    ["", "the path", "path", "reasoning", "the reasoning", "text", "string", "n/a", "none", "todo", "tbd"]
)


class OpenedQuestion(LLMAnswer):
    """The question without its options."""

    question: Text


class HiddenDiagnosis(LLMAnswer):
    """A case without its diagnosis; only a confirmed diagnosis has the other two."""

    confirmed: Truth
    diagnosis: Remark = ""
    presentation: Remark = ""


class ReasoningPath(LLMAnswer):
    """The path from a question to its answer."""

    reasoning: Text


class OpenQuestion(AskingQuestions, kind="build", needs="llm"):
    """Let an LLM ask a multiple-choice question openly, with minimal edits; one without options stays as it is."""

    template = "open-question"
    answer = OpenedQuestion

    name: str = "open-question"
    new: float = Field(
        0.2, ge=0, le=1, description="the share of words that may come or go; with more it is asked again"
    )

    def settled(self, item: Question) -> Question | Rejected | None:
        """Return a question that has no options, or one as left out that shows something which no text has."""
        if shown := _SHOWN.search(item.text):
            return Rejected.of(item, NEEDS_FIGURE, shown[0])
        return None if item.options or _OFFERED.search(item.text) else item

    def fields(self, item: Question) -> Mapping[str, str]:
        """Return the question and its options."""
        return {"text": item.text, "options": "; ".join(item.options)}

    def read(self, item: Question, answer: OpenedQuestion) -> Question:
        """Return the open question; what it was is kept. Raises ValueError if it is more than a rewording."""
        text = answer.question
        if max(share_of_new(text, item.text), share_of_new(item.text, text)) > self.new:
            raise ValueError("it is more than a rewording")
        if _OFFERED.search(text):
            raise ValueError("it still speaks of options")
        return item.model_copy(update={"text": text, "original": item.original or item.text, "options": ()})


class HideDiagnosis(AskingQuestions, kind="build", needs="llm"):
    """Let an LLM reduce a case report to its presentation, its diagnosis hidden and nothing added."""

    template = "hide-diagnosis"
    answer = HiddenDiagnosis

    name: str = "hide-diagnosis"
    new: float = Field(0.1, ge=0, le=1, description="the share of words that may be new; with more it is asked again")

    def fields(self, item: Question) -> Mapping[str, str]:
        """Return the case and its diagnosis."""
        return {"text": item.text, "answer": item.answer or "not known"}

    def read(self, item: Question, answer: HiddenDiagnosis) -> Question | Rejected:
        """Return the presentation; the report is kept. Raises ValueError if words were added."""
        if not answer.confirmed:
            return Rejected.of(item, NO_DIAGNOSIS)
        text, diagnosis = answer.presentation, item.answer or answer.diagnosis
        if not text or not diagnosis:
            raise ValueError("the presentation or the diagnosis is missing")
        if share_of_new(text, item.text) > self.new:
            raise ValueError("words were added")
        return item.model_copy(update={"text": text, "original": item.original or item.text, "answer": diagnosis})


class Reason(AskingQuestions, kind="build", needs="llm"):
    """Let an LLM write the path of reasoning from a question to its answer: a view that candidates come from."""

    template = "reason"
    answer = ReasoningPath

    name: str = "reason"

    def read(self, item: Question, answer: ReasoningPath) -> Question:
        """Return the question with its path. Raises ValueError if the LLM gave a placeholder instead."""
        said = answer.reasoning.lower().strip(" .…<>[]{}()\"'*_")
        if said in _PLACEHOLDERS or said == " ".join(item.answer.lower().split()):
            raise ValueError("it is a placeholder")
        return item.model_copy(update=dict(answer))


def share_of_new(text: str, original: str) -> float:
    """Return the share of a text's words that the original does not have."""
    known = set(english(original))
    here = english(text)
    return sum(word not in known for word in here) / max(len(here), 1)
