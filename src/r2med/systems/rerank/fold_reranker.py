"""Rerank the documents of each query with the cross-encoder that was trained without its group: folds:DIR."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from r2med.data.dataset import Dataset
from r2med.data.runs.run import Run
from r2med.foundation.core.cost import total
from r2med.foundation.core.plan import Plan, PlannedData
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.runtime.stages import Stage
from r2med.foundation.store import Store
from r2med.systems.rerank.cross import CrossEncoder, PairStage
from r2med.systems.rerank.reranking import Reranked, Reranker
from r2med.systems.retrieve.fold_models import BoundFolds, FoldStage, joined_runs
from r2med.systems.retrieve.retriever import SearchQuery


class FoldRerank(FoldStage, PairStage, kind="rerank"):
    """Rerank with the cross-encoder that was trained without the query: a folder with one for each fold (folds:DIR)."""

    part: ClassVar[type[Stage]] = CrossEncoder

    def plan(self, data: Sequence[PlannedData], runtime: Runtime) -> list[Plan]:
        """Return the plan of one model: each query is read by one of them."""
        models = self.models(runtime)
        first = next(iter(self.parts(models)[models.seed].values()))
        return first.plan(data, runtime)

    def bind(self, runtime: Runtime) -> FoldReranker:
        """Return the reranker with the model of each fold. No weights are loaded yet."""
        models = self.models(runtime)
        return FoldReranker(self, models, self.bound_parts(models, runtime))


@dataclass(frozen=True)
class FoldReranker(BoundFolds[FoldRerank, Reranker]):
    """The cross-encoders of folds, which rerank together."""

    @property
    def depth(self) -> int:
        """Number of candidates that are reranked for each query."""
        return self.stage.depth

    def rerank(self, dataset: Dataset, queries: Sequence[SearchQuery], run: Run, store: Store) -> Reranked:
        """Return the run with the first candidates of each query in the order of its fold's model."""
        done: list[tuple[list[int], Reranked]] = []
        for fold, lines in self.models.lines(queries).items():
            asked = [queries[line] for line in lines]
            part = Run(tuple(run.queries[line] for line in lines), run.rows[lines], run.scores[lines], run.documents)
            done.append((lines, self.parts[fold].rerank(dataset, asked, part, store)))
        if not done:
            return Reranked(run)
        runs = [(lines, each.run) for lines, each in done]
        notices = tuple(dict.fromkeys(notice for _, each in done for notice in each.notices))
        return Reranked(joined_runs(run.queries, runs), total(each.cost for _, each in done), notices=notices)
