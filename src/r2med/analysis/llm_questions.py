"""The questions of an analysis to its LLM, by prompt: what they cost, and what failed. A rehearsal asks nothing."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

from r2med.foundation.core.plan import Plan
from r2med.foundation.runtime.runtime import Runtime
from r2med.models.ask.answers import LLMAnswer
from r2med.models.ask.ask import Ask, AskedItem, Tally
from r2med.models.llm.costs import listed_kinds
from r2med.models.llm.journaled import JournaledChat, open_chat
from r2med.models.llm.llm_cards import LLMCard, resolve_llm
from r2med.models.prompts.templates import packaged_template

Outcome = TypeVar("Outcome")


@dataclass
class Questions:
    """All questions to an LLM for one report."""

    runtime: Runtime
    labels: Callable[[], Sequence[str]] = tuple
    """Returns the labels of the datasets that the LLM is asked about."""
    rehearsal: bool = False
    tallies: defaultdict[str, Tally] = field(default_factory=lambda: defaultdict(Tally))
    """Name of a prompt -> what its questions cost, and how many failed."""
    previews: dict[str, Plan] = field(default_factory=dict)
    remarks: dict[str, list[str]] = field(default_factory=dict)
    """Name of a prompt -> further sentences for its notes."""

    @cached_property
    def card(self) -> LLMCard:
        """Card of the LLM. Raises UserError if there is no such LLM."""
        return resolve_llm(self.runtime.setup.llm, self.runtime.setup)

    @cached_property
    def chat(self) -> JournaledChat:
        """The opened LLM. Opening it sends no request."""
        return open_chat(self.card, self.runtime).about(*self.labels())

    def ask(
        self,
        prompt: str,
        items: Sequence[AskedItem],
        answer: type[LLMAnswer],
        read: Callable[[int, Any], Outcome],
    ) -> list[Outcome | None]:
        """Ask about every item and return the outcomes. A failed item is counted, and its outcome is None.

        A rehearsal returns the outcomes that the journal has already.
        """
        if not items:
            return []
        template = packaged_template("r2med.analysis", prompt)
        ask = Ask(prompt, self.chat, template, answer, tally=self.tallies[prompt])
        if self.rehearsal:
            preview, outcomes = ask.known(items, read)
            self.add_preview(prompt, preview)
        else:
            outcomes = ask.ask(items, read).outcomes
        return [outcomes.get(number) for number in range(len(items))]

    def add_preview(self, prompt: str, preview: Plan) -> None:
        """Add what further questions with a prompt would cost."""
        known = self.previews.get(prompt)
        self.previews[prompt] = known + preview if known else preview

    def notes(self, *prompts: str) -> Iterator[str]:
        """Yield for each of these prompts a sentence with the LLM, the number of requests and the failures."""
        for prompt in prompts:
            tally = self.tallies[prompt]
            failed = tally.failures
            if tally.asked:
                kinds = f"; {failed.total():,} had no usable answer ({listed_kinds(failed)})" if failed else ""
                yield f"{self.card.spec} was asked {tally.asked:,} × {prompt}{kinds}."
            yield from self.remarks.get(prompt, ())
