"""What an LLM says of a question: what it asks for, whether it obeys the rules of the benchmark, its body system."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

from pydantic import Field

from r2med.ask.answer_forms import REMARK, TRUTH, Form, one_of
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


class LabelKind(AskingQuestions, kind="build", needs="llm"):
    """Let an LLM say whether a question asks for an examination, a diagnosis or a treatment; leave out all others."""

    template = "label-kind"
    answer: ClassVar[Form] = {
        "kind": one_of(*ANSWER_KINDS, "none"),
        # Which of them are right depends on the kind, so that all are sent, and those are checked.
        "answer_kind": replace(REMARK, schema=one_of(*dict.fromkeys(sum(ANSWER_KINDS.values(), ())), "none").schema),
    }

    name: str = "label-kind"
    keep: Words = Field(("EXM", "DIA", "TRT"), description="the kinds that go on")

    def read(self, item: Question, answer: Mapping[str, Any]) -> Question | Rejected:
        """Return the question with its kind."""
        kind = answer["kind"]
        if kind not in self.keep:
            return Rejected.of(item, "Other Kind", kind)
        return item.model_copy(update={"kind": f"{kind}/{one_of(*ANSWER_KINDS[kind]).read(answer['answer_kind'])}"})


class CheckRules(AskingQuestions, kind="build", needs="llm"):
    """Let an LLM check four rules: it takes reasoning, has one answer, can be asked openly, its answer is medical."""

    template = "check-rules"
    answer: ClassVar[Form] = {**dict.fromkeys(RULES, TRUTH), "why": REMARK}

    name: str = "check-rules"

    def fields(self, item: Question) -> Mapping[str, str]:
        """Return question, answer and options."""
        return {**super().fields(item), "options": "; ".join(item.options) or "none"}

    def read(self, item: Question, answer: Mapping[str, Any]) -> Question | Rejected:
        """Return the question, or the label of the first rule that it breaks."""
        broken = [label for field, label in RULES.items() if not answer[field]]
        if not broken:
            return item
        return Rejected.of(item, broken[0], "; ".join(filter(None, (*broken[1:], answer["why"]))))


class LabelBodySystem(AskingQuestions, kind="build", needs="llm"):
    """Let an LLM say which of twelve body systems a question is about; those whose source says it are not asked."""

    template = "label-body-system"
    answer: ClassVar[Form] = {"body_system": one_of(*BODY_SYSTEMS)}

    name: str = "label-body-system"

    def settled(self, item: Question) -> Question | None:
        """Return a question whose body system is one of ours already."""
        return item if item.body_system in BODY_SYSTEMS else None

    def fields(self, item: Question) -> Mapping[str, str]:
        """Return question, answer and the systems."""
        return {**super().fields(item), "systems": "\n".join(BODY_SYSTEMS)}

    def read(self, item: Question, answer: Mapping[str, Any]) -> Question:
        """Return the question with its body system."""
        return item.model_copy(update=answer)
