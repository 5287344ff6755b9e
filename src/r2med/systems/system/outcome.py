"""What a system found on a dataset, with the texts, the costs and the notices of its stages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from r2med.data.runs.run import Run
from r2med.foundation.core.cost import Cost, total
from r2med.systems.expand.expansion import Expansion
from r2med.systems.rerank.reranking import Reranked
from r2med.systems.retrieve.retriever import Searched, SearchReport


@dataclass(frozen=True)
class Outcome:
    """The results of running a system on a dataset, stage by stage."""

    run: Run
    expansion: Expansion
    searched: Searched
    reranked: tuple[Reranked, ...] = ()

    @property
    def cost(self) -> Cost:
        """The cost of all stages, including the preparation of the corpus."""
        return self.searched.prepared + self._own_cost

    @property
    def _own_cost(self) -> Cost:
        return self.expansion.cost + self.searched.cost + total(stage.cost for stage in self.reranked)

    @property
    def generated(self) -> dict[str, tuple[str, ...]]:
        """Query id -> texts that the expansion wrote, and those inside the search."""
        texts = {query.query.id: query.generated for query in self.expansion.queries if query.generated}
        return dict((SearchReport(texts=texts) + self.searched.report).texts)

    @property
    def traces(self) -> dict[str, Any]:
        """Query id -> the conversation of a search agent, or a list of them if several agents worked on the query."""
        return {query: list(made) if len(made) > 1 else made[0] for query, made in self._traces.items()}

    @property
    def _traces(self) -> Mapping[str, tuple[Any, ...]]:
        traces = {query: (trace,) for query, trace in self.expansion.traces.items()}
        return (SearchReport(traces=traces) + self.searched.report).traces

    def searched_as_part(self, notices: Iterable[str], *, expands: bool) -> Searched:
        """Return this outcome as a search of another system."""
        expansion = self.expansion
        cut = {"cut_texts": expansion.cut_texts} if expansion.cut_texts else {}
        wrote = SearchReport(
            expansion.failures,
            len(expansion.queries) if expands else 0,
            expansion.failure_kinds,
            expansion.failed,
            counts={**expansion.counts, **cut},
        )
        ordered = (
            SearchReport(stage.failures, stage.asked, stage.failure_kinds, stage.failed, stage.repairs)
            for stage in self.reranked
        )
        report = replace(
            sum(ordered, wrote + self.searched.report),
            notices=tuple(notices),
            texts=self.generated if expands else self.searched.report.texts,
            traces=self._traces,
        )
        # Calls of LLMs and searches take different times, so that quantiles over both would say nothing.
        return Searched(self.run, self._own_cost, self.searched.prepared, report)
