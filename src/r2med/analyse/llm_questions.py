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

from r2med.build.json_answers import ask_json, json_prompt, json_request
from r2med.cost import NOTHING, Cost
from r2med.llm.costs import Preview, listed_kinds
from r2med.llm.journaled import JournaledChat, open_chat
from r2med.llm.llm_cards import LLMCard, resolve_llm
from r2med.prompts.fitting import Fitted, Fitter
from r2med.prompts.templates import Template
from r2med.setup import Setup
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
        read: Callable[[int, Mapping[str, Any]], Outcome],
        note: str = "",
    ) -> list[Outcome | None]:
        """Ask about every item; None for what failed, which is counted.

        In a rehearsal nothing is asked, and `note` says what the number of calls does not tell.
        """
        if not items:
            return []
        file = files("r2med.analyse") / "prompts" / f"{template}.txt"
        text, fitter = Template(str(file), file.read_text("utf-8")), Fitter(self.card, SYSTEM)
        prompts = {number: json_prompt(fitter, text, values) for number, values in enumerate(items)}
        if self.rehearsal:
            requests = [json_request(prompt, self.card) for prompt in prompts.values() if isinstance(prompt, Fitted)]
            preview = Preview.of(self.chat, self.card, requests, unfit=len(prompts) - len(requests), note=note)
            self.previews[template] = reduce(add, [*filter(None, [self.previews.get(template)]), preview])
            return [None] * len(items)
        if not self.chat.is_local:
            texts = (" ".join(values.values()) for values in items)
            if warning := identifier_warning(f"{template} sends to {self.chat.name}", texts):
                log.warning("%s; Ctrl-C stops, --local-only refuses", warning)
        answers = ask_json(prompts, read, self.chat, self.card, TRIES)
        self.cost += answers.cost
        self.asked[template] += len(items)
        self.failures.setdefault(template, Counter()).update(answers.failures.values())
        return [answers.outcomes.get(number) for number in range(len(items))]

    def notes(self, *templates: str) -> Iterator[str]:
        """Yield what failed of these questions, and which LLM was asked."""
        for template in templates:
            failed = self.failures.get(template, Counter())
            if self.asked[template]:
                kinds = f"; {failed.total():,} brought nothing usable ({listed_kinds(failed)})" if failed else ""
                yield f"{self.card.spec} was asked {self.asked[template]:,} questions ({template}){kinds}."
