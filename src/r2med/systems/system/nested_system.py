"""A whole system in brackets, used as a retriever: [hyde(o3-mini) → bm25]+[bge → bge-reranker@100]."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from r2med.data.dataset import Dataset
from r2med.foundation.core.errors import UserError
from r2med.foundation.core.plan import Plan, PlannedData
from r2med.foundation.core.spec import Call, joined_stages
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.runtime.setup import Setup
from r2med.foundation.runtime.stages import Bound, Stage, derived
from r2med.foundation.store import Store
from r2med.systems.expand.recorded import Recorded
from r2med.systems.retrieve.retriever import Searched, Searcher, SearchQuery
from r2med.systems.system.declared_system import declared
from r2med.systems.system.system import System
from r2med.systems.system.system_specs import completed


class NestedSystem(Stage, kind="retrieve"):
    """Search with a whole system, as a part of another one: [hyde(o3-mini) → bm25]+bge."""

    retriever: Any = derived()
    expander: Any = derived()
    rerankers: tuple[Any, ...] = derived(())

    @classmethod
    def parse(cls, call: Call) -> Stage:
        """Return the stage of a system in brackets. Brackets around a retriever alone are that retriever."""
        if call.depth is not None or call.arguments or call.settings:
            raise UserError(f"{call}: a system in brackets has no depth and no settings of its own")
        retriever, expander, rerankers = declared(completed(call.system or (), Setup()), call.name)
        if expander is None and not rerankers:
            return retriever
        name = f"[{joined_stages(filter(None, (expander, retriever, *rerankers)))}]"
        return cls(name=name, retriever=retriever, expander=expander, rerankers=rerankers)

    @property
    def stages(self) -> tuple[Stage, ...]:
        """The expansion, if there is one, the retriever and the rerankers."""
        return tuple(filter(None, (self.expander, self.retriever, *self.rerankers)))

    def settings(self) -> dict[str, Any]:
        """Return the declared values of all stages."""
        return {"stage": "system", "stages": [stage.settings() for stage in self.stages]}

    def own_queries(self) -> Stage | None:
        """Return this stage if it expands queries itself, so that an expansion before it has no effect."""
        return self if self.expander is not None else self.retriever.own_queries()

    def plan(self, data: Sequence[PlannedData], runtime: Runtime) -> list[Plan]:
        """Return the plans of all stages."""
        return [plan for stage in self.stages for plan in stage.plan(data, runtime)]

    def bind(self, runtime: Runtime) -> NestedRetriever:
        """Return the retriever."""
        return NestedRetriever(self, System(self.retriever, self.expander, self.rerankers, runtime))


@dataclass(frozen=True)
class NestedRetriever(Bound[NestedSystem]):
    """A system that searches as a part of another one."""

    system: System

    @cached_property
    def inner(self) -> tuple[Any, ...]:
        """The stages of the system."""
        return self.system.bound_stages

    @property
    def searches_with(self) -> Any:
        """The retriever inside, whose index is prepared."""
        return self.system.bound_retriever

    @property
    def is_replayed(self) -> bool:
        """True: the store keeps the search inside, the scores of rerankers and the answers of LLMs."""
        return True

    @property
    def chooses_forms(self) -> bool:
        """True if the retriever inside does. An expansion inside expands the text that it is given."""
        return self.system.expander is None and self.system.bound_retriever.chooses_forms

    def key(self, dataset: Dataset) -> dict[str, Any]:
        """Return every setting that a score depends on, with a digest of recorded texts."""
        recorded = [each.expand(dataset, self.system.runtime.store).digest for each in self.inner if _is_recorded(each)]
        texts = {"generations": recorded} if recorded else {}
        return {"stage": "system", **self.system.stage_keys(dataset), **texts}

    def index(self, dataset: Dataset, store: Store) -> NestedSearcher:
        """Return a searcher. The corpus is indexed when it is first searched."""
        return NestedSearcher(self.system, dataset, store)


def _is_recorded(stage: object) -> bool:
    return isinstance(stage, Recorded)


@dataclass(frozen=True)
class NestedSearcher(Searcher):
    """A system over one corpus."""

    system: System
    dataset: Dataset
    store: Store

    def search(self, queries: Sequence[SearchQuery], k: int) -> Searched:
        """Return the k best documents of each query after all stages, with the costs of all stages."""
        return self.system.search(self.dataset, queries, k, self.store)

    def live(self) -> NestedSearcher:
        """Return a searcher that saves nothing about a question."""
        return NestedSearcher(self.system, self.dataset, self.store.with_policy("live"))
