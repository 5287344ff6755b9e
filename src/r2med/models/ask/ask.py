"""`Ask`: one typed question to one LLM about many items. All questions that an LLM answers in JSON go this way.

Texts of items are foreign: a prompt puts them between <<< and >>>, and no text can end this frame itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from r2med.foundation.core.cost import NOTHING, Cost
from r2med.foundation.core.needs import Needs
from r2med.foundation.runtime.setup import Setup
from r2med.models.ask.answers import LLMAnswer
from r2med.models.ask.json_answers import JsonAnswers, JsonQuestion, ask_json, json_question
from r2med.models.llm.chat import ChatRequest
from r2med.models.llm.costs import approximate_tokens, listed_kinds
from r2med.models.llm.journaled import JournaledChat
from r2med.models.llm.llm_needs import llm_needs
from r2med.models.prompts.fitting import Fitter
from r2med.models.prompts.templates import Template

SYSTEM = "You are a careful physician. You answer with one JSON object and nothing else."
TRIES = 3
"""Number of requests for an item before it counts as failed."""

Outcome = TypeVar("Outcome")


@dataclass(frozen=True)
class AskedItem:
    """What an LLM is asked about: the texts of the prompt's fields."""

    fields: Mapping[str, str]
    answer: type[LLMAnswer] | None = None
    """The model of the answer about this item, if it has one of its own."""


@dataclass
class Tally:
    """What questions cost, and how many had no usable answer. Several questions can share one."""

    cost: Cost = NOTHING
    asked: int = 0
    failures: Counter[str] = field(default_factory=Counter)
    """Kind of failure -> number of items without a usable answer."""
    cut: int = 0
    """Number of items of which the LLM saw only the first part, because they were too long for it."""

    def add(self, answers: JsonAnswers[Any], count: int) -> None:
        """Count the answers to some items."""
        self.cost += answers.cost
        self.asked += count
        self.failures.update(answers.failures.values())
        self.cut += sum(prompt.cut for prompt in answers.prompts.values())

    def notices(self, who: str) -> Iterator[str]:
        """Yield what a reader of the answers should know, one sentence each."""
        if failed := self.failures.total():
            kinds = listed_kinds(self.failures)
            yield f"{who} gave no usable answer to {failed:,} of {self.asked:,} questions ({kinds})."
        if self.cut:
            yield f"{who} saw only the first part of {self.cut:,} texts, because they were too long for it."


@dataclass
class Ask:
    """One question to one LLM: its prompt and the model of its answers."""

    chat: JournaledChat
    template: Template
    answer: type[LLMAnswer]
    tries: int = TRIES
    tally: Tally = field(default_factory=Tally)

    def about(self, *datasets: str) -> Ask:
        """Return this question for items of some datasets. Saved answers get their labels."""
        return replace(self, chat=self.chat.about(*datasets))

    def question(self, fields: Mapping[str, str], answer: type[LLMAnswer] | None = None) -> JsonQuestion:
        """Return the question about one item. If the prompt is too long, the field `text` is cut."""
        fitter = Fitter(self.chat.card, SYSTEM)
        return json_question(fitter, self.template, framed_fields(fields), answer or self.answer)

    def questions(self, items: Sequence[AskedItem]) -> dict[int, JsonQuestion]:
        """Return the question about each item, by its number."""
        return {number: self.question(item.fields, item.answer) for number, item in enumerate(items)}

    def needs(self, items: Sequence[AskedItem], setup: Setup) -> Needs:
        """Return the calls about some items. An item without a usable answer is asked about again, `tries` times."""
        fixed = approximate_tokens(SYSTEM) + approximate_tokens(self.template.text)
        read = sum(fixed + sum(map(approximate_tokens, item.fields.values())) for item in items)
        most = self.tries * len(items), self.tries * read
        return llm_needs(self.chat.card.spec, self.chat.card, setup, len(items), read, most)

    def example(self, items: Sequence[AskedItem]) -> ChatRequest | None:
        """Return the request about the first item; None if there is none, or if it does not fit."""
        questions = [self.question(item.fields, item.answer) for item in items[:1]]
        return next((question.request(self.chat.card) for question in questions if question.fits), None)

    def ask(self, items: Sequence[AskedItem], read: Callable[[int, Any], Outcome]) -> JsonAnswers[Outcome]:
        """Ask about every item. `read` raises ValueError if an answer is not usable. It is then asked for again."""
        return put(self.chat, self.questions(items), read, self.tally, self.tries)


def put(
    chat: JournaledChat,
    questions: Mapping[int, JsonQuestion],
    read: Callable[[int, Any], Outcome],
    tally: Tally,
    tries: int = TRIES,
    *,
    otherwise: Callable[[int, str], Outcome | None] = lambda number, text: None,
    final: Collection[str] = (),
) -> JsonAnswers[Outcome]:
    """Ask questions that are made already, and count them. `otherwise` and `final` are those of `ask_json`."""
    answers = ask_json(questions, read, chat, chat.card, tries, otherwise, final)
    tally.add(answers, len(questions))
    return answers


def framed_fields(fields: Mapping[str, str]) -> dict[str, str]:
    """Return the values of the fields of a prompt so that none of them can end its frame."""
    return {name: framed(text) for name, text in fields.items()}


def framed(text: str) -> str:
    """Return a foreign text so that it cannot end its frame in the prompt."""
    return text.replace(">>>", "»").replace("<<<", "«")
