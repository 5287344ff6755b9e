"""Label questions by an LLM: what they ask for, which rules of the benchmark they break, and their body system."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from pydantic import Field, WithJsonSchema

from r2med.construction.items import Rejected, SourceQuestion
from r2med.construction.steps.asking import AskingQuestions
from r2med.foundation.runtime.stages import Words
from r2med.models.ask.answers import LLMAnswer, Remark, Truth, one_of, word_of

ANSWER_KINDS: Mapping[str, tuple[str, ...]] = {
    "EXM": ("laboratory", "imaging", "endoscopy", "other"),
    "DIA": ("disease", "syndrome", "aetiology", "functional disorder"),
    "TRT": ("drug", "surgery", "other therapy", "prevention"),
}
"""Examination, diagnosis and treatment -> the possible kinds of answer."""

RULES: Mapping[str, str] = {
    "depth": "Too Simple",
    "one_answer": "Ambiguous Answer",
    "open": "Not Reformulatable",
    "entity": "Non-Medical Entity",
}
"""Rule that a question must obey -> the label of a question that breaks it."""

BODY_SYSTEMS = (
    "Cardiovascular",
    "Digestive",
    "Endocrine",
    "Integumentary",
    "Lymphatic",
    "Muscular",
    "Nervous",
    "Reproductive",
    "Respiratory",
    "Skeletal",
    "Urinary",
    "Other / NA",
)


_ANSWER_KINDS = {"type": "string", "enum": [*dict.fromkeys(sum(ANSWER_KINDS.values(), ())), "none"]}


class KindAnswer(LLMAnswer):
    """What a question asks for. The schema lists all kinds of answer, and the step checks that the kind fits."""

    kind: Annotated[str, one_of(*ANSWER_KINDS, "none")]
    answer_kind: Annotated[Remark, WithJsonSchema(_ANSWER_KINDS)] = ""


class RulesAnswer(LLMAnswer):
    """One field for each of RULES, True if the question obeys it."""

    depth: Truth
    one_answer: Truth
    open: Truth
    entity: Truth
    why: Remark = ""


class BodySystemAnswer(LLMAnswer):
    """The body system that a question is about."""

    body_system: Annotated[str, one_of(*BODY_SYSTEMS)]


class LabelKind(AskingQuestions, kind="build", takes="llm"):
    """Let an LLM label questions that ask for an examination, a diagnosis or a treatment; leave out all others."""

    template = "label-kind"
    answer = KindAnswer

    name: str = "label-kind"
    keep: Words = Field(("EXM", "DIA", "TRT"), description="The kinds of questions to keep, joined by a colon.")

    def read(self, item: SourceQuestion, answer: KindAnswer) -> SourceQuestion | Rejected:
        """Return the question with its kind, or reject it if its kind is not kept."""
        kind = answer.kind
        if kind not in self.keep:
            return Rejected.of(item, "Other Kind", kind)
        return item.model_copy(update={"kind": f"{kind}/{word_of(answer.answer_kind, ANSWER_KINDS[kind])}"})


class CheckRules(AskingQuestions, kind="build", takes="llm"):
    """Let an LLM check four rules: needs reasoning, has one answer, can be asked openly, has a medical answer."""

    template = "check-rules"
    answer = RulesAnswer

    name: str = "check-rules"

    def fields(self, item: SourceQuestion) -> Mapping[str, str]:
        """Return the question, its answer and its options."""
        return {**super().fields(item), "options": "; ".join(item.options) or "none"}

    def read(self, item: SourceQuestion, answer: RulesAnswer) -> SourceQuestion | Rejected:
        """Return the question, or reject it with the label of the first rule that it breaks."""
        broken = [label for field, label in RULES.items() if not getattr(answer, field)]
        if not broken:
            return item
        return Rejected.of(item, broken[0], "; ".join(filter(None, (*broken[1:], answer.why))))


class LabelBodySystem(AskingQuestions, kind="build", takes="llm"):
    """Let an LLM label each question with one of twelve body systems, unless its source already names one."""

    template = "label-body-system"
    answer = BodySystemAnswer

    name: str = "label-body-system"

    def settled(self, item: SourceQuestion) -> SourceQuestion | None:
        """Return a question whose source already names one of our body systems."""
        return item if item.body_system in BODY_SYSTEMS else None

    def fields(self, item: SourceQuestion) -> Mapping[str, str]:
        """Return the question, its answer and the list of body systems."""
        return {**super().fields(item), "systems": "\n".join(BODY_SYSTEMS)}

    def read(self, item: SourceQuestion, answer: BodySystemAnswer) -> SourceQuestion:
        """Return the question with its body system."""
        return item.model_copy(update=dict(answer))
