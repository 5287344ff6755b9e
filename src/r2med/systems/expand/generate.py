"""Expansion by an LLM. Methods differ in their cards, but share the code for samples and rounds of refinement."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from r2med.data import Dataset
from r2med.foundation.core.needs import Needs, Size
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.runtime.stages import Stage, key_of, modules_of
from r2med.models.llm.chat import ChatRequest
from r2med.models.llm.llm_needs import INSTRUCTION_TOKENS, llm_needs
from r2med.models.prompts.fitting import Fitter
from r2med.systems.expand.expansion import Expansion
from r2med.systems.expand.generated_settings import GeneratedSettings
from r2med.systems.expand.method_cards import METHODS
from r2med.systems.expand.query_list import LIST_VERSION
from r2med.systems.expand.recorded import RECORDED, Recorded, open_recorded
from r2med.systems.expand.text_writer import TextWriter
from r2med.systems.retrieve.bm25 import BM25


class Generated(GeneratedSettings, kind="expand", takes="llm"):
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

    def needs(self, size: Size, runtime: Runtime) -> list[Needs]:
        """Return the calls of an LLM, and the searches that it reads; nothing of both with recorded texts."""
        if self.is_recorded(runtime):
            return [Needs(str(self), note=RECORDED)]
        prompts, shown = self.samples * size.queries, self.card.passages.depth * size.document_tokens
        prompt = INSTRUCTION_TOKENS + size.query_tokens
        read = prompts * (prompt + (shown if self.shows_passages else 0) + self.rounds * (prompt + shown))
        card, calls = self.llm_card(runtime.setup), prompts * (1 + self.rounds)
        texts = llm_needs(str(self), card, runtime.setup, calls, read)
        first = self.first.needs(size, runtime) if self.shows_passages else []
        return [texts, *first, *(self.by.needs(size, runtime) if self.rounds else [])]

    def open_recorded(self, runtime: Runtime) -> Recorded | None:
        """Return the reader of recorded texts. None if an LLM is called."""
        # Recorded texts do not depend on the retriever that found the passages.
        without_by = self.model_copy(update={"by": BM25()}) if self.card.passages_by == "system" else self
        return open_recorded(
            without_by,
            self.llm or self.name,
            self.how_joined,
            runtime.setup,
            asked=self.card.asked,
            cleaning=self.cleaning,
            whole=self.card.whole,
            own=self.own_llm is not None,
        )

    def varies(self, runtime: Runtime) -> bool:
        """Return True if another run can give other texts: the LLM varies, or a search whose passages it reads."""
        if self.is_recorded(runtime):
            return False
        between = bool(self.rounds) and self.by.varies(runtime)
        return super().varies(runtime) or between or (self.shows_passages and self.first.varies(runtime))

    def modules(self, runtime: Runtime) -> tuple[str, ...]:
        """Return the modules of the retrievers that search for it."""
        if self.is_recorded(runtime):
            return ()
        return tuple(module for stage in (self.by, self.first) for module in modules_of(stage, runtime))

    def key(self, dataset: Dataset, runtime: Runtime) -> dict[str, Any]:
        """Return every setting that a score depends on. Templates are given by their digest."""
        if recorded := self.recorded(runtime):
            return recorded.key(dataset)
        by = {"by": key_of(self.by, dataset, runtime)} if self.rounds else {}
        candidates = {"candidates": key_of(self.first, dataset, runtime)} if self.shows_passages else {}
        lists = {"lists": LIST_VERSION} if self.card.answer == "queries" else {}
        return {
            **super().key(dataset, runtime),
            "source": "generated",
            "method": self.card.key(),
            "templates": self._writer(dataset, runtime).prompts.digest,
            **candidates,
            **by,
            **lists,
        }

    def check(self, datasets: Sequence[Dataset], runtime: Runtime) -> None:
        """Raise UserError for a fault on one of these datasets: missing texts, wrong templates, or no room."""
        if recorded := self.recorded(runtime):
            recorded.check(datasets)
            return
        super().check(datasets, runtime)
        Fitter(self.opened(runtime).card, system="")

    @property
    def template_names(self) -> list[str]:
        """The names of the templates that it uses, without a kind."""
        system = ["system"] if self.card.system else []
        examples = ["examples"] if "examples" in self.card.fields else []
        refine = [self.card.refine] if self.rounds else []
        return [*system, self.card.prompt, *examples, *refine]

    def example(self, dataset: Dataset, runtime: Runtime) -> ChatRequest | None:
        """Return the first request about the first query. Passages of the corpus stand for those that are found."""
        return None if self.is_recorded(runtime) else self._writer(dataset, runtime).example()

    def expand(self, dataset: Dataset, runtime: Runtime) -> Expansion:
        """Return the queries with the texts that an LLM writes for them, or has written before."""
        if recorded := self.recorded(runtime):
            return recorded.expand(dataset)
        return self._writer(dataset, runtime).expansion()

    def _writer(self, dataset: Dataset, runtime: Runtime) -> TextWriter:
        return TextWriter(self, self.opened(runtime), dataset, runtime)
