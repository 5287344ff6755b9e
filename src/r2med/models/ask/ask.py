"""`Ask`: one typed question to one LLM about many items. All questions that an LLM answers in JSON go this way.

An unreadable answer is asked for again, and counted as failed after the last try. Nothing is guessed. Texts of items
are foreign: a prompt puts them between <<< and >>>, and no text can end this frame itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar

from r2med.foundation.core.cost import NOTHING, Cost, total
from r2med.foundation.core.errors import UserError
from r2med.foundation.core.needs import Needs
from r2med.foundation.engine.reporting import part_of
from r2med.foundation.runtime.setup import Setup
from r2med.models.ask.answers import LLMAnswer
from r2med.models.ask.json_in_text import json_objects
from r2med.models.llm.chat import ChatRequest, Failure, Generation
from r2med.models.llm.costs import answers_cost, approximate_tokens, listed_kinds
from r2med.models.llm.journaled import JournaledChat
from r2med.models.llm.llm_cards import LLMCard, sampling_of
from r2med.models.llm.llm_needs import llm_needs
from r2med.models.prompts.fitting import Fitted, Fitter, ask_fitted
from r2med.models.prompts.templates import Template

SYSTEM = "You are a careful physician. You answer with one JSON object and nothing else."
TRIES = 3
"""Number of requests for an item before it counts as failed."""

Outcome = TypeVar("Outcome")


@dataclass(frozen=True)
class JsonQuestion:
    """A prompt and the model of its answer."""

    prompt: Fitted | Failure
    answer: type[LLMAnswer]

    @property
    def fits(self) -> bool:
        """Return True if the prompt fits the context of the LLM."""
        return isinstance(self.prompt, Fitted)

    def request(self, card: LLMCard, sample: int = 0) -> ChatRequest:
        """Return the request for a prompt that fits."""
        assert isinstance(self.prompt, Fitted)
        schema = self.answer.json_schema() if card.keeps_schema else ""
        return ChatRequest(self.prompt.messages, sampling_of(card), sample, schema=schema)


@dataclass
class JsonAnswers(Generic[Outcome]):
    """What came of each question, by its number: an outcome, or the kind of failure."""

    outcomes: dict[int, Outcome] = field(default_factory=dict)
    failures: dict[int, str] = field(default_factory=dict)
    costs: dict[int, Cost] = field(default_factory=dict)
    """The cost of each question that was asked."""
    prompts: dict[int, Fitted] = field(default_factory=dict)
    """The prompt of each question as it was sent last. The server may have found the first one too long."""

    @property
    def cost(self) -> Cost:
        """The cost of all requests."""
        return total(self.costs.values())


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
        questions = {number: self.question(item.fields, item.answer) for number, item in enumerate(items)}
        return ask_json(self.chat, questions, read, self.tally, self.tries)


def ask_json(
    chat: JournaledChat,
    questions: Mapping[int, JsonQuestion],
    read: Callable[[int, Any], Outcome],
    tally: Tally,
    tries: int = TRIES,
    *,
    otherwise: Callable[[int, str], Outcome | None] = lambda number, text: None,
    final: Collection[str] = (),
) -> JsonAnswers[Outcome]:
    """Ask every question up to `tries` times, and count the answers.

    `read` turns an answer into an outcome. It raises ValueError if the answer is not usable. `otherwise` may return the
    outcome of a text without a usable answer, which is then not asked again. Failures of the kinds `final` are not
    asked again either.
    """
    answers: JsonAnswers[Outcome] = JsonAnswers()
    for number, question in questions.items():
        if isinstance(question.prompt, Fitted):
            answers.prompts[number] = question.prompt
        else:
            answers.failures[number] = question.prompt.kind
    waiting, done = list(answers.prompts), len(answers.failures)
    for sample in range(tries if waiting else 0):

        def ask(prompts: Mapping[int, Fitted], sample: int = sample) -> list[Generation | Failure]:
            fitted = [replace(questions[number], prompt=prompt) for number, prompt in prompts.items()]
            return chat.complete([question.request(chat.card, sample) for question in fitted])

        with part_of(done, len(questions)):
            sent = ask_fitted({number: answers.prompts[number] for number in waiting}, ask)
        for number, (prompt, answer) in sent.items():
            answers.prompts[number] = prompt
            answers.costs[number] = answers.costs.get(number, NOTHING) + answers_cost([answer], chat.card)
            try:
                answers.outcomes[number] = _outcome(number, answer, questions[number].answer, read, otherwise)
                answers.failures.pop(number, None)
            except ValueError:
                answers.failures[number] = answer.kind if isinstance(answer, Failure) else "unreadable"
        waiting = [number for number in waiting if number in answers.failures and answers.failures[number] not in final]
        done = len(questions)  # progress does not go back when questions are asked again
    tally.add(answers, len(questions))
    return answers


def _outcome(
    number: int,
    answer: Generation | Failure,
    model: type[LLMAnswer],
    read: Callable[[int, Any], Outcome],
    otherwise: Callable[[int, str], Outcome | None],
) -> Outcome:
    """Return the outcome of an answer. Raises ValueError if it has no usable one."""
    text = "" if isinstance(answer, Failure) else answer.text
    for value in json_objects(text):
        try:
            return read(number, model.model_validate(value))
        except (ValueError, TypeError):
            continue
    outcome = otherwise(number, text) if text else None
    if outcome is None:
        raise ValueError("no usable answer")
    return outcome


def json_question(
    fitter: Fitter, template: Template, values: Mapping[str, str], answer: type[LLMAnswer]
) -> JsonQuestion:
    """Return a question. If the prompt is too long, the field `text` is cut."""
    text = values.get("text", "")

    def render(size: int) -> str:
        try:
            return template.render({**values, "text": text[:size]})
        except KeyError as error:
            known = ", ".join(f"{{{name}}}" for name in values)
            raise UserError(f"{template.file}: unknown field {{{error.args[0]}}}; known fields: {known}") from None

    prompt = fitter.fit(render, min(len(text), 200), len(text), "the question with the first words of the text")
    return JsonQuestion(prompt, answer)


def framed_fields(fields: Mapping[str, str]) -> dict[str, str]:
    """Return the values of the fields of a prompt so that none of them can end its frame."""
    return {name: framed(text) for name, text in fields.items()}


def framed(text: str) -> str:
    """Return a foreign text so that it cannot end its frame in the prompt."""
    return text.replace(">>>", "»").replace("<<<", "«")
