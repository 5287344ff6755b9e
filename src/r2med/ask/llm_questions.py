"""The LLM of analyses: asked in JSON through the journal, or, in a rehearsal, not at all; what it took is counted."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, reduce
from importlib.resources import files
from operator import add
from typing import Any, TypeVar

from r2med.ask.answers import Answer
from r2med.ask.json_answers import JsonQuestion, ask_json, json_question
from r2med.core.cost import NOTHING, Cost
from r2med.llm.costs import Preview, listed_kinds
from r2med.llm.journaled import JournaledChat, open_chat
from r2med.llm.llm_cards import LLMCard, resolve_llm
from r2med.prompts.fitting import Fitter
from r2med.prompts.templates import Template
from r2med.runtime.setup import Setup
from r2med.text.identifiers import identifier_warning

log = logging.getLogger("r2med")

SYSTEM = "You are a careful physician. You answer with one JSON object and nothing else."
TRIES = 3

Outcome = TypeVar("Outcome")


@dataclass
class Questions:
    """All that is asked for one report."""

    setup: Setup
    rehearsal: bool = False
    cost: Cost = NOTHING
    asked: Counter[str] = field(default_factory=Counter)
    failures: dict[str, Counter[str]] = field(default_factory=dict)
    """Template -> kind of failure -> how often."""
    previews: dict[str, Preview] = field(default_factory=dict)

    @cached_property
    def card(self) -> LLMCard:
        """The card of the LLM. Raises UserError if there is none."""
        return resolve_llm(self.setup.llm, self.setup)

    @cached_property
    def chat(self) -> JournaledChat:
        """The LLM; opening it asks nothing."""
        return open_chat(self.card, self.setup)

    def ask(
        self,
        template: str,
        items: Sequence[Mapping[str, str]],
        answer: Callable[[int], type[Answer]],
        read: Callable[[int, Any], Outcome],
        *,
        rehearsed: Sequence[Outcome] = (),
    ) -> list[Outcome | None]:
        """Ask about every item; None for what failed, which is counted.

        In a rehearsal nothing is asked: `rehearsed` are outcomes that stand for those that are not in the journal.
        """
        if not items:
            return []
        file = files("r2med.analysis") / "prompts" / f"{template}.txt"
        text, fitter = Template(str(file), file.read_text("utf-8")), Fitter(self.card, SYSTEM)
        questions = {n: json_question(fitter, text, values, answer(n)) for n, values in enumerate(items)}
        if self.rehearsal:
            known = self._rehearsed(template, questions, read)
            return [known.get(number, rehearsed[number] if rehearsed else None) for number in range(len(items))]
        if not self.chat.is_local:
            texts = (" ".join(values.values()) for values in items)
            if warning := identifier_warning(f"{template} sends to {self.chat.name}", texts):
                log.warning("%s; Ctrl-C stops, --local-only refuses", warning)
        answers = ask_json(questions, read, self.chat, self.card, TRIES)
        self.cost += answers.cost
        self.asked[template] += len(items)
        self.failures.setdefault(template, Counter()).update(answers.failures.values())
        return [answers.outcomes.get(number) for number in range(len(items))]

    def _rehearsed(
        self, template: str, questions: Mapping[int, JsonQuestion], read: Callable[[int, Any], Outcome]
    ) -> dict[int, Outcome]:
        """Count what would be asked, and return what the journal answers already."""
        requests = {number: each.request(self.card) for number, each in questions.items() if each.fits}
        unfit = len(questions) - len(requests)
        preview = Preview.of(self.chat, self.card, list(requests.values()), unfit=unfit)
        self.previews[template] = reduce(add, [*filter(None, [self.previews.get(template)]), preview])
        open_requests = set(self.chat.unanswered(list(requests.values())))
        answered = {number: questions[number] for number, each in requests.items() if each not in open_requests}
        return ask_json(answered, read, self.chat, self.card, tries=1).outcomes

    def notes(self, *templates: str) -> Iterator[str]:
        """Yield what failed of these questions, and which LLM was asked."""
        for template in templates:
            failed = self.failures.get(template, Counter())
            if self.asked[template]:
                kinds = f"; {failed.total():,} brought nothing usable ({listed_kinds(failed)})" if failed else ""
                yield f"{self.card.spec} was asked {self.asked[template]:,} × {template}{kinds}."
