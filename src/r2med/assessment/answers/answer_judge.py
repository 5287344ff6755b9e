"""A judge of answers: one LLM with three questions. Is an answer right, which nuggets does it say, what supports it?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from r2med.assessment.answers.nugget_matching import MatchedNuggets
from r2med.assessment.panels.raters import LLMRater
from r2med.assessment.rubrics.rubric import RUBRICS
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.store import digest
from r2med.models.ask.ask import SYSTEM, Ask, Tally
from r2med.models.llm.journaled import JournaledChat, open_chat
from r2med.models.llm.llm_cards import LLMCard, resolve_llm
from r2med.models.prompts.templates import packaged_template


@dataclass(frozen=True)
class JudgeOfAnswers:
    """The questions to an opened LLM that judges answers. They share one tally."""

    grades: LLMRater
    citations: LLMRater
    nuggets: Ask

    @classmethod
    def open(cls, name: str, runtime: Runtime) -> JudgeOfAnswers:
        """Return the judge of this name. Nothing is asked. Raises UserError if there is no such LLM."""
        return cls.of(open_chat(resolve_llm(name, runtime.setup), runtime))

    @classmethod
    def of(cls, chat: JournaledChat) -> JudgeOfAnswers:
        """Return a judge that asks an opened LLM."""
        tally = Tally()
        prompt = packaged_template("r2med.assessment.answers", "match-nuggets")
        return cls(
            LLMRater.of(chat, RUBRICS["answer-grade"], tally),
            LLMRater.of(chat, RUBRICS["citation"], tally),
            Ask(chat, prompt, MatchedNuggets, tally=tally),
        )

    @property
    def card(self) -> LLMCard:
        """The card of the LLM."""
        return self.grades.card

    @property
    def name(self) -> str:
        """The LLM as a user types it."""
        return self.grades.name

    @property
    def varies(self) -> bool:
        """True if it can say something else in another repeat."""
        return self.grades.varies

    @property
    def tally(self) -> Tally:
        """What all questions cost so far."""
        return self.nuggets.tally

    def key(self) -> dict[str, Any]:
        """Return everything that the verdicts depend on."""
        asks = (self.grades.ask, self.nuggets, self.citations.ask)
        prompts = digest([SYSTEM, *(ask.template.text for ask in asks)])[:12]
        return {"llm": self.name, **self.nuggets.chat.key(), "prompts": prompts}
