"""Stages at work in tests: a stage with its runtime, and a runtime whose LLM a test scripts."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from importlib.resources.abc import Traversable
from typing import Any

from r2med.data.dataset import Dataset
from r2med.data.runs.run import Run
from r2med.foundation.core.spec import parse_stage
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.runtime.stages import Stage, stage_of
from r2med.foundation.store import Store
from r2med.models.llm.chat import ChatModel
from r2med.models.llm.llm_cards import LLMCard
from r2med.models.prompts.prompted_stage import OpenedLLM
from r2med.systems.retrieve.retriever import SearchQuery


@dataclass(frozen=True)
class Ready:
    """A stage with the runtime in which it works. `store` takes the place of the runtime's store."""

    stage: Stage
    runtime: Runtime

    @property
    def name(self) -> str:
        return str(self.stage)

    @property
    def varies(self) -> bool:
        return self.stage.varies(self.runtime)

    def key(self, dataset: Dataset) -> dict[str, Any]:
        return self.stage.key(dataset, self.runtime)

    def check(self, datasets: Sequence[Dataset]) -> None:
        self.stage.check(datasets, self.runtime)

    def example(self, dataset: Dataset, store: Store | None = None) -> Any:
        return self.stage.example(dataset, self._in(store))

    def expand(self, dataset: Dataset, store: Store | None = None) -> Any:
        return self.stage.expand(dataset, self._in(store))

    def search(self, dataset: Dataset, queries: Sequence[SearchQuery], k: int, store: Store | None = None) -> Any:
        return self.stage.search(dataset, queries, k, self._in(store))

    def rerank(self, dataset: Dataset, queries: Sequence[SearchQuery], run: Run, store: Store | None = None) -> Any:
        return self.stage.rerank(dataset, queries, run, self._in(store))

    def _in(self, store: Store | None) -> Runtime:
        return self.runtime if store is None else self.runtime.with_store(store)


def ready_reranker(spec: str, runtime: Runtime) -> Ready:
    """Return the reranker that one types."""
    (call,) = parse_stage(spec)
    return Ready(stage_of(call, "rerank"), runtime)


class ScriptedRuntime(Runtime):
    """A runtime in which every stage that asks an LLM asks this one, with these templates."""

    def __init__(self, llm: ChatModel, card: LLMCard, prompts: Traversable | None = None, **settings: Any) -> None:
        super().__init__(**settings)
        self._scripted = OpenedLLM(llm, card, prompts)

    def part(self, key: Hashable, make: Callable[[], Any]) -> Any:
        is_llm = isinstance(key, tuple) and key[1:2] == ("llm",)
        return self._scripted if is_llm else super().part(key, make)
