"""Expansion by an LLM. Methods differ in their cards, but share the code for samples and rounds of refinement."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from r2med.foundation.core.plan import Plan, PlannedData
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.runtime.stages import Bound, Stage, bound
from r2med.models.llm.call_plans import with_calls
from r2med.models.llm.journaled import open_chat
from r2med.models.prompts.prompt_sets import find_set
from r2med.systems.expand.generated_settings import GeneratedSettings
from r2med.systems.expand.llm_expander import LLMExpander
from r2med.systems.expand.method_cards import METHODS
from r2med.systems.expand.recorded import RECORDED, open_recorded, plan_texts
from r2med.systems.retrieve.bm25 import BM25


class Generated(GeneratedSettings, kind="expand", needs="llm"):
    """Let an LLM write what a relevant document could say, and search with that text."""

    @classmethod
    def defaults(cls, name: str) -> Mapping[str, Any]:
        """Return the default settings from the card of a method."""
        card = METHODS.card(name)
        return {**({"llm": ""} if card.llm else {}), **card.defaults}

    @classmethod
    def summary(cls, name: str) -> str:
        """Return the description of a method from its card."""
        return METHODS.card(name).summary

    @classmethod
    def notes(cls, name: str) -> tuple[str, ...]:
        """Return the facts on the card of a method, and where its authors publish their wording."""
        return METHODS.card(name).all_notes

    def feeding(self, retriever: Stage) -> Stage:
        """Return the same expansion for a retriever, which finds the passages if the card of the method says so."""
        if self.card.passages_by == "bm25" or "by" in self.model_fields_set:
            return self
        return self.model_copy(update={"by": retriever})

    def plan(self, data: Sequence[PlannedData], runtime: Runtime) -> list[Plan]:
        """Return the plan: LLM calls or recorded texts, and the searches."""
        texts = plan_texts(self, self.llm, runtime.setup, asked=self.card.asked, own=self.own_llm is not None)
        if texts.work == RECORDED:
            return [texts]
        calls = self.samples * (1 + self.rounds) * sum(each.queries for each in data)
        texts = with_calls(texts, self.llm_card(runtime.setup), calls, 0, runtime)
        if self.card.passages_by == "system" and "by" not in self.model_fields_set:
            return [texts]  # The plan of the system's retriever is listed in any case.
        first = BM25().plan(data, runtime) if "passages" in self.card.fields else []
        return [texts, *first, *(self.by.plan(data, runtime) if self.rounds else [])]

    def bind(self, runtime: Runtime) -> Bound[Any]:
        """Return the reader of recorded texts, or the expander that calls the LLM. No LLM is called yet."""
        # Recorded texts do not depend on the retriever that found the passages.
        without_by = self.model_copy(update={"by": BM25()}) if self.card.passages_by == "system" else self
        if recorded := open_recorded(
            without_by,
            self.llm or self.name,
            self.how_joined,
            runtime.setup,
            asked=self.card.asked,
            cleaning=self.cleaning,
            whole=self.card.whole,
            own=self.own_llm is not None,
        ):
            return recorded
        card = self.llm_card(runtime.setup)
        prompts = find_set(self.prompts or runtime.setup.prompts)
        by = bound(self.by, runtime)
        first = by if self.card.passages_by == "system" else BM25().bind(runtime)
        return LLMExpander(self, open_chat(card, runtime), card, prompts, by, first)
