"""What an LLM says of a question: what it asks for, whether it obeys the rules of the benchmark, its body system."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from pydantic import Field

from r2med.ask.answers import FieldReader, LLMAnswer, Remark, Truth, one_of
from r2med.construction.items import Question, Rejected
from r2med.construction.steps.asking import AskingQuestions
from r2med.core.stages import Words

ANSWER_KINDS: Mapping[str, tuple[str, ...]] = {
    "EXM": ("laboratory", "imaging", "endoscopy", "other"),
    "DIA": ("disease", "syndrome", "aetiology", "functional disorder"),
    "TRT": ("drug", "surgery", "other therapy", "prevention"),
}
"""Examination, diagnosis and treatment, and what the answer to each may be."""

RULES: Mapping[str, str] = {
    "depth": "Too Simple",
    "one_answer": "Ambiguous Answer",
    "open": "Not Reformulatable",
    "entity": "Non-Medical Entity",
}
"""The rules that a question has to obey, and the label of one that does not."""

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


_ANSWER_KINDS = one_of(*dict.fromkeys(sum(ANSWER_KINDS.values(), ())), "none")


class KindAnswer(LLMAnswer):
    """What a question asks for. Which kinds of answer are right depends on it: all are sent, the step checks them."""

    kind: Annotated[str, one_of(*ANSWER_KINDS, "none")]
    answer_kind: Annotated[str, FieldReader(_ANSWER_KINDS.schema, lambda value: str(value or "").strip())] = ""


class RulesAnswer(LLMAnswer):
    """True for each of RULES that a question obeys."""

    depth: Truth
    one_answer: Truth
    open: Truth
    entity: Truth
    why: Remark = ""


class BodySystemAnswer(LLMAnswer):
    """The body system that a question is about."""

    body_system: Annotated[str, one_of(*BODY_SYSTEMS)]


class LabelKind(AskingQuestions, kind="build", needs="llm"):
    """Let an LLM say whether a question asks for an examination, a diagnosis or a treatment; leave out all others."""

    template = "label-kind"
    answer = KindAnswer

    name: str = "label-kind"
    keep: Words = Field(("EXM", "DIA", "TRT"), description="the kinds that go on")

    def read(self, item: Question, answer: KindAnswer) -> Question | Rejected:
        """Return the question with its kind."""
        kind = answer.kind
        if kind not in self.keep:
            return Rejected.of(item, "Other Kind", kind)
        return item.model_copy(update={"kind": f"{kind}/{one_of(*ANSWER_KINDS[kind]).read(answer.answer_kind)}"})


class CheckRules(AskingQuestions, kind="build", needs="llm"):
    """Let an LLM check four rules: it takes reasoning, has one answer, can be asked openly, its answer is medical."""

    template = "check-rules"
    answer = RulesAnswer

    name: str = "check-rules"

    def fields(self, item: Question) -> Mapping[str, str]:
        """Return question, answer and options."""
        return {**super().fields(item), "options": "; ".join(item.options) or "none"}

    def read(self, item: Question, answer: RulesAnswer) -> Question | Rejected:
        """Return the question, or the label of the first rule that it breaks."""
        broken = [label for field, label in RULES.items() if not getattr(answer, field)]
        if not broken:
            return item
        return Rejected.of(item, broken[0], "; ".join(filter(None, (*broken[1:], answer.why))))


class LabelBodySystem(AskingQuestions, kind="build", needs="llm"):
    """Let an LLM say which of twelve body systems a question is about; those whose source says it are not asked."""

    template = "label-body-system"
    answer = BodySystemAnswer

    name: str = "label-body-system"

    def settled(self, item: Question) -> Question | None:
        """Return a question whose body system is one of ours already."""
        return item if item.body_system in BODY_SYSTEMS else None

    def fields(self, item: Question) -> Mapping[str, str]:
        """Return question, answer and the systems."""
        return {**super().fields(item), "systems": "\n".join(BODY_SYSTEMS)}

    def read(self, item: Question, answer: BodySystemAnswer) -> Question:
        """Return the question with its body system."""
        return item.model_copy(update=dict(answer))
