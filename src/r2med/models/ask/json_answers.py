"""Ask an LLM for answers in JSON.

An unreadable answer is asked for again, and counted as failed after the last try. Nothing is guessed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar

from r2med.foundation.core.cost import NOTHING, Cost
from r2med.foundation.core.errors import UserError
from r2med.foundation.engine.reporting import part_of
from r2med.models.ask.answers import LLMAnswer
from r2med.models.ask.json_in_text import json_objects
from r2med.models.llm.chat import ChatRequest, Failure, Generation
from r2med.models.llm.costs import answers_cost
from r2med.models.llm.journaled import JournaledChat
from r2med.models.llm.llm_cards import LLMCard, sampling_of
from r2med.models.prompts.fitting import Fitted, Fitter, ask_fitted
from r2med.models.prompts.templates import Template

ReadAnswer = TypeVar("ReadAnswer")


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
class JsonAnswers(Generic[ReadAnswer]):
    """The outcome or the kind of failure of each question, by its number, and the cost of all requests."""

    outcomes: dict[int, ReadAnswer] = field(default_factory=dict)
    failures: dict[int, str] = field(default_factory=dict)
    cost: Cost = NOTHING
    costs: dict[int, Cost] = field(default_factory=dict)
    """The cost of each question that was asked."""
    prompts: dict[int, Fitted] = field(default_factory=dict)
    """The prompt of each question as it was sent last. The server may have found the first one too long."""


def ask_json(
    questions: Mapping[int, JsonQuestion],
    read: Callable[[int, Any], ReadAnswer],
    chat: JournaledChat,
    card: LLMCard,
    tries: int,
    otherwise: Callable[[int, str], ReadAnswer | None] = lambda number, text: None,
    final: Collection[str] = (),
) -> JsonAnswers[ReadAnswer]:
    """Ask every question up to `tries` times.

    `read` turns an answer into an outcome. It raises ValueError if the answer is not usable. `otherwise` may return the
    outcome of a text without a usable answer, which is then not asked again. Failures of the kinds `final` are not
    asked again either.
    """
    asked: JsonAnswers[ReadAnswer] = JsonAnswers()
    unfit = {number: each.prompt for number, each in questions.items() if isinstance(each.prompt, Failure)}
    asked.failures = {number: failure.kind for number, failure in unfit.items()}
    asked.prompts = {number: each.prompt for number, each in questions.items() if isinstance(each.prompt, Fitted)}
    waiting = list(asked.prompts)
    for sample in range(tries if waiting else 0):
        before = len(questions) if sample else len(unfit)  # progress does not go back when questions are asked again

        def ask(prompts: Mapping[int, Fitted], sample: int = sample) -> list[Generation | Failure]:
            asking = {number: replace(questions[number], prompt=prompt) for number, prompt in prompts.items()}
            return chat.complete([each.request(card, sample) for each in asking.values()])

        with part_of(before, len(questions)):
            answered = ask_fitted({number: asked.prompts[number] for number in waiting}, ask)
        asked.prompts |= {number: prompt for number, (prompt, _) in answered.items()}
        asked.cost += answers_cost([answer for _, answer in answered.values()], card)
        for number, (_, answer) in answered.items():
            asked.costs[number] = asked.costs.get(number, NOTHING) + answers_cost([answer], card)
            _take_in(asked, number, answer, questions[number].answer, read)
            text = answer.text if isinstance(answer, Generation) and number in asked.failures else ""
            if text and (outcome := otherwise(number, text)) is not None:
                asked.outcomes[number] = outcome
                del asked.failures[number]
        waiting = [n for n in waiting if n not in asked.outcomes and asked.failures[n] not in final]
    return asked


def _take_in(
    asked: JsonAnswers[ReadAnswer],
    number: int,
    answer: Generation | Failure,
    model: type[LLMAnswer],
    read: Callable[[int, Any], ReadAnswer],
) -> None:
    asked.failures[number] = answer.kind if isinstance(answer, Failure) else "unreadable"
    for value in json_objects(answer.text) if isinstance(answer, Generation) else ():
        try:
            asked.outcomes[number] = read(number, model.model_validate(value))
        except (ValueError, TypeError):
            continue
        del asked.failures[number]
        return


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
