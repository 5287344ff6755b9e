"""A whole system in brackets, used as a retriever: [hyde(o3-mini) → bm25]+[bge → bge-reranker@100]."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from r2med.data.dataset import Dataset
from r2med.foundation.core.errors import UserError
from r2med.foundation.core.needs import Needs, Size
from r2med.foundation.core.spec import Call, joined_stages
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.runtime.setup import Setup
from r2med.foundation.runtime.stages import Stage, derived
from r2med.systems.retrieve.retriever import Searched, SearchQuery
from r2med.systems.system.declared_system import completed, declared
from r2med.systems.system.system import System


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

    def needs(self, size: Size, runtime: Runtime) -> list[Needs]:
        """Return the needs of all stages."""
        found = [(stage, need) for stage in self.inside(runtime) for need in stage.needs(size, runtime)]
        return [replace(need, candidates_of=str(self)) if stage.kind == "rerank" else need for stage, need in found]

    def system(self, runtime: Runtime) -> System:
        """Return the system, which searches as a part of another one."""
        return System(self.retriever, self.expander, self.rerankers, runtime)

    def inside(self, runtime: Runtime) -> tuple[Stage, ...]:
        """Return the stages of the system."""
        return self.system(runtime).main_stages

    def indexing(self) -> Stage:
        """Return the retriever inside, whose index is prepared."""
        retriever: Stage = self.retriever
        return retriever.indexing()

    def is_replayed(self, runtime: Runtime) -> bool:
        """Return True: the store keeps the search inside, the scores of rerankers and the answers of LLMs."""
        return True

    def chooses_forms(self, runtime: Runtime) -> bool:
        """Return True if the retriever inside does. An expansion inside expands the text that it is given."""
        return self.expander is None and self.retriever.chooses_forms(runtime)

    def key(self, dataset: Dataset, runtime: Runtime) -> dict[str, Any]:
        """Return every setting that a score depends on, with a digest of recorded texts."""
        system = self.system(runtime)
        recorded = [stage.expand(dataset, runtime).digest for stage in system.recorded]
        texts = {"generations": recorded} if recorded else {}
        return {"stage": "system", **system.stage_keys(dataset), **texts}

    def search(self, dataset: Dataset, queries: Sequence[SearchQuery], k: int, runtime: Runtime) -> Searched:
        """Return the k best documents of each query after all stages, with the costs of all stages."""
        return self.system(runtime).search(dataset, queries, k)
