"""A judge of answers: an LLM that compares them with references, nuggets and cited passages.

Before it judges anything, it gets planted controls whose right verdicts are known (`answer_controls.py`). Its answers
come from the journal where it has them, so nothing is asked twice.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Annotated, Any, TypeVar

from r2med.foundation.core.cost import NOTHING, Cost
from r2med.foundation.engine.tracing import Span, item_spans
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.store import digest
from r2med.models.ask.answers import LLMAnswer, Text, one_of
from r2med.models.ask.ask import framed, warn_of_identifiers
from r2med.models.ask.json_answers import ask_json, json_question
from r2med.models.llm.costs import CostPreview, listed_kinds
from r2med.models.llm.journaled import JournaledChat, open_chat
from r2med.models.llm.llm_cards import LLMCard, families, resolve_llm
from r2med.models.prompts.fitting import Fitter
from r2med.models.prompts.templates import Template

SYSTEM = "You are a careful physician who grades answers. You answer with one JSON object and nothing else."
TRIES = 3
RIGHT = "right"
JUDGE_PROMPTS = ("grade-answer", "match-nuggets", "support-sentence")

Outcome = TypeVar("Outcome")


class AnswerGrade(LLMAnswer):
    """The grade of an answer. The reason comes first, so that the grade follows from it."""

    why: Text
    grade: Annotated[str, one_of(RIGHT, "partly", "wrong", "nothing")]


@dataclass
class AnswerJudge:
    """An opened judge. It counts its cost and what it could not judge."""

    card: LLMCard
    chat: JournaledChat
    reader: LLMCard
    """The LLM whose answers are judged."""
    cost: Cost = NOTHING
    asked: int = 0
    failures: Counter[str] = field(default_factory=Counter)
    """Kind of failure -> number of questions without a usable answer."""
    cut: int = 0
    """Number of questions whose text was too long for the judge, so that it saw only the first part."""
    previews: list[CostPreview] | None = None
    """In a rehearsal, what each call of `ask` would cost. Nothing is asked then, and no question has an outcome."""

    @classmethod
    def open(cls, name: str, reader: LLMCard, runtime: Runtime) -> AnswerJudge:
        """Return the judge of this name. Nothing is asked. Raises UserError if there is no such LLM."""
        card = resolve_llm(name, runtime.setup)
        return cls(card, open_chat(card, runtime), reader)

    def key(self) -> dict[str, Any]:
        """Return everything that the verdicts depend on."""
        prompts = digest([SYSTEM, *(template(name).text for name in JUDGE_PROMPTS)])[:12]
        return {"llm": self.card.spec, **self.chat.key(), "prompts": prompts}

    @property
    def shared_families(self) -> tuple[str, ...]:
        """The families of LLMs to which both judge and reader belong."""
        return tuple(family for family in families(self.card) if family in families(self.reader))

    def ask(
        self,
        prompt: str,
        items: Sequence[Mapping[str, str]],
        answer: type[LLMAnswer],
        read: Callable[[int, Any], Outcome],
        within: Sequence[Span | None] = (),
    ) -> list[Outcome | None]:
        """Ask about every item. A failed item is counted, and its outcome is None.

        `read` raises ValueError if an answer is not usable. It is then asked for again. `within` are the spans of the
        judged answers in a trace, one for each item.
        """
        fitter, text = Fitter(self.card, SYSTEM), template(prompt)
        questions = {number: json_question(fitter, text, values, answer) for number, values in enumerate(items)}
        if self.previews is not None:
            requests = [each.request(self.card) for each in questions.values() if each.fits]
            unfit = len(questions) - len(requests)
            self.previews.append(CostPreview.of(self.chat, self.card, requests, unfit=unfit))
            return [None] * len(items)
        warn_of_identifiers("answer", self.chat, (" ".join(values.values()) for values in items))
        answers = {number: span for number, span in enumerate(within) if span is not None}
        facts = {number: {} if within else {"r2med.control": True} for number in questions}
        with item_spans(prompt, "EVALUATOR", facts, self.chat.trace, answers) as spans:
            asked = ask_json(questions, read, self.chat, self.card, TRIES, spans=spans)
        self.cost += asked.cost
        self.asked += len(items)
        self.failures.update(asked.failures.values())
        self.cut += sum(prompt.cut for prompt in asked.prompts.values())
        return [asked.outcomes.get(number) for number in range(len(items))]

    def verdicts(
        self, items: Sequence[tuple[str, str, str]], within: Sequence[Span | None] = ()
    ) -> list[tuple[bool, str] | None]:
        """Judge items (question, reference, answer). Return True for a right answer, and the reason of the judge."""
        fields = [
            {"question": question, "reference": reference, "text": framed(answer) or "(empty)"}
            for question, reference, answer in items
        ]
        return self.ask("grade-answer", fields, AnswerGrade, lambda _, said: (said.grade == RIGHT, said.why), within)

    def notices(self) -> Iterator[str]:
        """Yield what a reader of the scores should know about the judge, one sentence each."""
        if shared := self.shared_families:
            yield (
                f"{self.card.spec} judges the answers of {self.reader.spec}, and both belong to the family "
                f"{', '.join(shared)}. Judges tend to favour the texts of their own family."
            )
        if failed := self.failures.total():
            kinds = listed_kinds(self.failures)
            yield f"{self.card.spec} gave no usable answer to {failed:,} of {self.asked:,} questions ({kinds})."
        if self.cut:
            yield f"{self.card.spec} saw only the first part of {self.cut:,} texts, because they were too long for it."


def template(name: str) -> Template:
    """Return one of the prompts of this room."""
    file = files("r2med.assessment.answers") / "prompts" / f"{name}.txt"
    return Template(str(file), file.read_text("utf-8"))
