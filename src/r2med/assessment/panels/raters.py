"""LLMs as raters: each item of a rubric is asked with the rubric's prompt."""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from r2med.assessment.panels.ratings import Rating
from r2med.assessment.rubrics.item import Item
from r2med.assessment.rubrics.rubric import WHY, Rubric
from r2med.foundation.core.cost import Cost
from r2med.foundation.core.errors import UserError
from r2med.foundation.core.needs import Needs
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.runtime.setup import Setup
from r2med.foundation.store import digest
from r2med.models.ask.ask import SYSTEM, Ask, AskedItem, Tally
from r2med.models.llm.chat import SAVED_FAILURES, ChatRequest
from r2med.models.llm.costs import listed_kinds
from r2med.models.llm.journaled import JournaledChat, open_chat
from r2med.models.llm.llm_cards import LLMCard, families, resolve_llm, sampling_of

UNUSABLE = SAVED_FAILURES | {"unreadable"}
"""Failures that are the rater's own. All others come from the server or the network."""


def refuse_lost(name: str, failures: Mapping[int, str], asked: int) -> None:
    """Raise UserError if questions failed on the way to an LLM: the same command can ask them again."""
    if lost := [kind for kind in failures.values() if kind not in UNUSABLE]:
        raise UserError(
            f"{name} did not answer {len(lost):,} of {asked:,} questions ({listed_kinds(Counter(lost))}): "
            "the answers so far are kept; type the same command again to go on"
        )


@dataclass(frozen=True)
class LLMRater:
    """An opened LLM that rates items of one rubric."""

    rubric: Rubric
    ask: Ask

    @classmethod
    def open(cls, name: str, rubric: Rubric, runtime: Runtime, prompt: Path | None = None) -> LLMRater:
        """Return the rater of this name. Nothing is asked. Raises UserError if there is no such LLM."""
        return cls.of(open_chat(resolve_llm(name, runtime.setup), runtime), rubric, prompt=prompt)

    @classmethod
    def of(
        cls, chat: JournaledChat, rubric: Rubric, tally: Tally | None = None, prompt: Path | None = None
    ) -> LLMRater:
        """Return the rater that asks an opened LLM. Several raters can share a tally."""
        return cls(rubric, Ask(chat, rubric.template(prompt), rubric.answer, tally=tally or Tally()))

    def about(self, *datasets: str) -> LLMRater:
        """Return this rater for items of some datasets. Saved answers get their labels."""
        return replace(self, ask=self.ask.about(*datasets))

    @property
    def card(self) -> LLMCard:
        """The card of the LLM."""
        return self.ask.chat.card

    @property
    def name(self) -> str:
        """The LLM as a user types it."""
        return self.card.spec

    @property
    def varies(self) -> bool:
        """True if it can give another rating in another repeat."""
        return self.ask.chat.varies(sampling_of(self.card).temperature)

    @property
    def cost(self) -> Cost:
        """What the answers cost so far."""
        return self.ask.tally.cost

    @property
    def prompt(self) -> str:
        """A digest of the prompt."""
        return digest([self.ask.template.text, SYSTEM])[:12]

    def shared_families(self, *others: LLMCard) -> tuple[str, ...]:
        """Return the families of LLMs to which both this one and one of the others belong."""
        known = {family for card in others for family in families(card)}
        return tuple(family for family in families(self.card) if family in known)

    def needs(self, items: Sequence[Item], setup: Setup) -> Needs:
        """Return what rating would cost. Nothing is asked."""
        return self.ask.needs([self._asked(item) for item in items], setup)

    def example(self, items: Sequence[Item]) -> ChatRequest | None:
        """Return the request about the first item."""
        return self.ask.example([self._asked(item) for item in items[:1]])

    def rate(self, items: Sequence[Item]) -> tuple[list[Rating | None], dict[int, str]]:
        """Rate every item. Return the ratings, None for no usable answer, and the kinds of failures by number.

        Raises UserError if the server fails: the answers so far are kept, and the same command goes on from there.
        """
        asked = [self._asked(item) for item in items]
        now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")

        def read(number: int, answer: object) -> Rating:
            assert isinstance(answer, self.rubric.answer)
            said = self.rubric.read(answer)
            return Rating(items[number].token, self.name, said, str(getattr(answer, WHY)), now)

        answers = self.ask.ask(asked, read)
        refuse_lost(self.name, answers.failures, len(items))
        return [answers.outcomes.get(number) for number in range(len(items))], answers.failures

    def says_yes(self, rating: Rating | None) -> bool | None:
        """Return True if a rating means yes; None if there is none."""
        return None if rating is None else self.rubric.says_yes(rating.answers)

    def _asked(self, item: Item) -> AskedItem:
        return AskedItem(
            {each.field: item.texts.get(each.field, "").strip() or each.absent for each in self.rubric.texts}
        )
