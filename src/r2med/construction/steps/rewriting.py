"""Let an LLM rewrite questions with minimal edits.

Exam questions lose their options, and cases lose their diagnosis. A third step adds the path of reasoning from a
question to its answer.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from pydantic import Field

from r2med.construction.items import Rejected, SourceQuestion
from r2med.construction.steps.asking import AskingQuestions
from r2med.foundation.text.english import english
from r2med.models.ask.answers import LLMAnswer, Remark, Text, Truth

NO_DIAGNOSIS, NEEDS_FIGURE = "No Confirmed Diagnosis", "Needs A Figure"

_OFFERED = re.compile(
    r"\bof (?:the following|these (?:options|choices|answers|statements))\b"
    r"|\b(?:options|choices|statements|answers) (?:below|above|listed|given)\b|\banswer choices\b",
    re.IGNORECASE,
)
"""Words that refer to answer options."""
_PICTURE = r"(?:figure|image|photo(?:graph|micrograph)?|picture|exhibit|illustration|diagram)s?"
_SHOWN = re.compile(
    rf"\b(?:(?:shown|depicted|pictured) in (?:the|this) (?:\w+ )?{_PICTURE}|(?:shown|pictured) (?:below|above|here)"
    rf"|(?:see|refer to) (?:the )?{_PICTURE}|(?:accompanying|following|attached) {_PICTURE}|{_PICTURE} (?:below|above)"
    r"|figure \d+)\b",
    re.IGNORECASE,
)
"""Words that refer to a picture, which a text query does not have."""
_PLACEHOLDERS = frozenset(
    ["", "the path", "path", "reasoning", "the reasoning", "text", "string", "n/a", "none", "todo", "tbd"]
)


class OpenedQuestion(LLMAnswer):
    """A question rewritten without its options."""

    question: Text


class HiddenDiagnosis(LLMAnswer):
    """A case without its diagnosis. The other two fields are empty if the diagnosis is not confirmed."""

    confirmed: Truth
    diagnosis: Remark = ""
    presentation: Remark = ""


class ReasoningPath(LLMAnswer):
    """The path of reasoning from a question to its answer."""

    reasoning: Text


class OpenQuestion(AskingQuestions, kind="build", takes="llm"):
    """Let an LLM turn multiple-choice questions into open ones, with minimal edits. Open questions stay as they are."""

    template = "open-question"
    answer = OpenedQuestion

    name: str = "open-question"
    new: float = Field(
        0.2,
        ge=0,
        le=1,
        description="Largest share of words that may be added or removed. With more, the LLM is asked again.",
    )

    def settled(self, item: SourceQuestion) -> SourceQuestion | Rejected | None:
        """Return a question without options as it is, and a question that refers to a picture as rejected."""
        if shown := _SHOWN.search(item.text):
            return Rejected.of(item, NEEDS_FIGURE, shown[0])
        return None if item.options or _OFFERED.search(item.text) else item

    def fields(self, item: SourceQuestion) -> Mapping[str, str]:
        """Return the text of the question and its options."""
        return {"text": item.text, "options": "; ".join(item.options)}

    def read(self, item: SourceQuestion, answer: OpenedQuestion) -> SourceQuestion:
        """Return the open question, with its original text. Raises ValueError if the text changed too much."""
        text = answer.question
        if max(share_of_new(text, item.text), share_of_new(item.text, text)) > self.new:
            raise ValueError("it is more than a rewording")
        if _OFFERED.search(text):
            raise ValueError("it still speaks of options")
        return item.model_copy(update={"text": text, "original": item.original or item.text, "options": ()})


class HideDiagnosis(AskingQuestions, kind="build", takes="llm"):
    """Let an LLM reduce a case report to its presentation. The diagnosis is hidden, and nothing is added."""

    template = "hide-diagnosis"
    answer = HiddenDiagnosis

    name: str = "hide-diagnosis"
    new: float = Field(
        0.1, ge=0, le=1, description="Largest share of words that may be new. With more, the LLM is asked again."
    )

    def fields(self, item: SourceQuestion) -> Mapping[str, str]:
        """Return the text of the case and its diagnosis."""
        return {"text": item.text, "answer": item.answer or "not known"}

    def read(self, item: SourceQuestion, answer: HiddenDiagnosis) -> SourceQuestion | Rejected:
        """Return the presentation, with the original report. Raises ValueError if too many words are new."""
        if not answer.confirmed:
            return Rejected.of(item, NO_DIAGNOSIS)
        text, diagnosis = answer.presentation, item.answer or answer.diagnosis
        if not text or not diagnosis:
            raise ValueError("the presentation or the diagnosis is missing")
        if share_of_new(text, item.text) > self.new:
            raise ValueError("words were added")
        return item.model_copy(update={"text": text, "original": item.original or item.text, "answer": diagnosis})


class Reason(AskingQuestions, kind="build", takes="llm"):
    """Let an LLM write the path of reasoning from a question to its answer, as a view to search with."""

    template = "reason"
    answer = ReasoningPath

    name: str = "reason"

    def settled(self, item: SourceQuestion) -> SourceQuestion | None:
        """Return a question whose reasoning an expert wrote as it is."""
        return item if item.reasoning else None

    def read(self, item: SourceQuestion, answer: ReasoningPath) -> SourceQuestion:
        """Return the question with its path of reasoning. Raises ValueError if the LLM gave a placeholder."""
        said = answer.reasoning.lower().strip(" .…<>[]{}()\"'*_")
        if said in _PLACEHOLDERS or said == " ".join(item.answer.lower().split()):
            raise ValueError("it is a placeholder")
        return item.model_copy(update=dict(answer))


def share_of_new(text: str, original: str) -> float:
    """Return the share of a text's words that the original does not contain."""
    known = set(english(original))
    here = english(text)
    return sum(word not in known for word in here) / max(len(here), 1)
