"""Stages that ask one LLM with prompt templates."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib.resources.abc import Traversable
from typing import Any

from r2med.data.dataset import Dataset
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.runtime.setup import Setup
from r2med.foundation.runtime.stages import Stage
from r2med.models.llm.chat import ChatModel
from r2med.models.llm.journaled import open_chat
from r2med.models.llm.llm_cards import LLMCard, sampling_of
from r2med.models.prompts.templates import find_set, kind_of, log_origin, open_templates


@dataclass(frozen=True)
class OpenedLLM:
    """What a stage asks: an LLM with its card, and the set of templates."""

    chat: ChatModel
    card: LLMCard
    prompts: Traversable | None
    """The set of templates. Missing templates are those of this package."""


class PromptedStage(Stage):
    """A stage that asks one LLM with templates. A subclass has the setting `prompts`."""

    @abstractmethod
    def llm_card(self, setup: Setup) -> LLMCard:
        """Return the card of the LLM."""

    def opened(self, runtime: Runtime) -> OpenedLLM:
        """Return the LLM and the templates. Nothing is asked, and no key is needed until an answer is missing."""
        key = self, "llm", runtime.store.labels, runtime.setup.repeat
        return runtime.part(key, lambda: self.open_llm(runtime))

    def open_llm(self, runtime: Runtime) -> OpenedLLM:
        """Open the LLM and find the templates. Raises UserError if there is no such LLM or set."""
        card = self.llm_card(runtime.setup)
        named: str = getattr(self, "prompts", "")
        return OpenedLLM(open_chat(card, runtime), card, find_set(named or runtime.setup.prompts))

    def asks(self, runtime: Runtime) -> bool:
        """Return True: it asks an LLM."""
        return True

    def varies(self, runtime: Runtime) -> bool:
        """Return True if another run can give another result. An LLM in this process at temperature 0 cannot."""
        opened = self.opened(runtime)
        temperature = sampling_of(opened.card).temperature
        return opened.chat.varies(temperature) or any(part.varies(runtime) for part in self.inside(runtime))

    def key(self, dataset: Dataset, runtime: Runtime) -> dict[str, Any]:
        """Return everything that a score of any such stage depends on. Each kind of stage adds its templates."""
        opened, settings = self.opened(runtime), self.settings()
        settings.pop("prompts", None)  # the same templates in another folder are the same
        return {
            **settings,
            "model": opened.chat.key(),
            "sampling": asdict(sampling_of(opened.card)),
            "context_length": opened.card.context_length,
            "kind": kind_of(dataset),
        }

    def check(self, datasets: Sequence[Dataset], runtime: Runtime) -> None:
        """Raise UserError for a fault that would stop the stage on one of these datasets. No LLM is called."""
        prompts, kinds = self.opened(runtime).prompts, {kind_of(dataset) for dataset in datasets}
        open_templates(prompts, kinds, every=True)
        for dataset in datasets:
            self.key(dataset, runtime)
        log_origin(str(self), prompts, kinds, self.template_names)

    @property
    def template_names(self) -> list[str]:
        """The names of the templates that the stage uses, without a kind."""
        return ["system", self.name]
