"""Ask the LLM of the analyses in JSON, through the journal, and count the cost. In a rehearsal nothing is asked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, reduce
from importlib.resources import files
from operator import add
from typing import Any, TypeVar

from r2med.foundation.core.cost import NOTHING, Cost
from r2med.foundation.engine.tracing import item_spans
from r2med.foundation.runtime.runtime import Runtime
from r2med.models.ask.answers import LLMAnswer
from r2med.models.ask.ask import warn_of_identifiers
from r2med.models.ask.json_answers import JsonQuestion, ask_json, json_question
from r2med.models.llm.costs import CostPreview, listed_kinds
from r2med.models.llm.journaled import JournaledChat, open_chat
from r2med.models.llm.llm_cards import LLMCard, resolve_llm
from r2med.models.prompts.fitting import Fitter
from r2med.models.prompts.templates import Template

SYSTEM = "You are a careful physician. You answer with one JSON object and nothing else."
TRIES = 3

ReadAnswer = TypeVar("ReadAnswer")


@dataclass
class Questions:
    """All questions to an LLM for one report."""

    runtime: Runtime
    rehearsal: bool = False
    cost: Cost = NOTHING
    asked: Counter[str] = field(default_factory=Counter)
    failures: dict[str, Counter[str]] = field(default_factory=dict)
    """Template -> kind of failure -> count."""
    previews: dict[str, CostPreview] = field(default_factory=dict)

    @cached_property
    def card(self) -> LLMCard:
        """Card of the LLM. Raises UserError if there is no such LLM."""
        return resolve_llm(self.runtime.setup.llm, self.runtime.setup)

    @cached_property
    def chat(self) -> JournaledChat:
        """The opened LLM. Opening it sends no request."""
        return open_chat(self.card, self.runtime)

    def ask(
        self,
        template: str,
        items: Sequence[Mapping[str, str]],
        answer: Callable[[int], type[LLMAnswer]],
        read: Callable[[int, Any], ReadAnswer],
        *,
        rehearsed: Sequence[ReadAnswer] = (),
    ) -> list[ReadAnswer | None]:
        """Ask about every item and return the outcomes. A failed item is counted, and its outcome is None.

        In a rehearsal nothing is asked. `rehearsed` are then the outcomes of items that the journal does not answer.
        """
        if not items:
            return []
        file = files(__package__) / "prompts" / f"{template}.txt"
        text, fitter = Template(str(file), file.read_text("utf-8")), Fitter(self.card, SYSTEM)
        questions = {n: json_question(fitter, text, values, answer(n)) for n, values in enumerate(items)}
        if self.rehearsal:
            known = self._rehearsed(template, questions, read)
            return [known.get(number, rehearsed[number] if rehearsed else None) for number in range(len(items))]
        warn_of_identifiers(template, self.chat, (" ".join(values.values()) for values in items))
        with item_spans(template, "CHAIN", {number: {} for number in questions}, self.chat.trace) as spans:
            answers = ask_json(questions, read, self.chat, self.card, TRIES, spans=spans)
        self.cost += answers.cost
        self.asked[template] += len(items)
        self.failures.setdefault(template, Counter()).update(answers.failures.values())
        return [answers.outcomes.get(number) for number in range(len(items))]

    def _rehearsed(
        self, template: str, questions: Mapping[int, JsonQuestion], read: Callable[[int, Any], ReadAnswer]
    ) -> dict[int, ReadAnswer]:
        """Count the requests that would be sent, and return the outcomes that the journal already has."""
        requests = {number: each.request(self.card) for number, each in questions.items() if each.fits}
        unfit = len(questions) - len(requests)
        preview = CostPreview.of(self.chat, self.card, list(requests.values()), unfit=unfit)
        self.previews[template] = reduce(add, [*filter(None, [self.previews.get(template)]), preview])
        open_requests = set(self.chat.unanswered(list(requests.values())))
        answered = {number: questions[number] for number, each in requests.items() if each not in open_requests}
        return ask_json(answered, read, self.chat, self.card, tries=1).outcomes

    def notes(self, *templates: str) -> Iterator[str]:
        """Yield for each of these templates a sentence with the LLM, the number of requests and the failures."""
        for template in templates:
            failed = self.failures.get(template, Counter())
            if self.asked[template]:
                kinds = f"; {failed.total():,} had no usable answer ({listed_kinds(failed)})" if failed else ""
                yield f"{self.card.spec} was asked {self.asked[template]:,} × {template}{kinds}."
