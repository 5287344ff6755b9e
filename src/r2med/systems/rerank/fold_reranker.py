"""Rerank the documents of each query with the cross-encoder that was trained without its group: folds:DIR."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from r2med.data.dataset import Dataset
from r2med.data.runs.run import Run
from r2med.foundation.core.cost import total
from r2med.foundation.core.plan import Plan, PlannedData
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.runtime.stages import Bound, bound
from r2med.foundation.store import Store
from r2med.systems.rerank.cross import CrossEncoder, PairStage
from r2med.systems.rerank.reranking import Reranked, Reranker
from r2med.systems.retrieve.fold_models import FoldModels, joined_runs
from r2med.systems.retrieve.retriever import SearchQuery


class FoldRerank(PairStage, kind="rerank"):
    """Rerank with the cross-encoder that was trained without the query: a folder with one for each fold (folds:DIR)."""

    def models(self, runtime: Runtime) -> FoldModels:
        """Return the models in the folder, with those of a repeat."""
        return FoldModels(self.name, runtime.setup.repeat)

    def parts(self, models: FoldModels) -> list[dict[int, CrossEncoder]]:
        """Return for each seed: fold -> the reranker of its model. Raises UserError if a model is missing."""
        settings = self.model_dump(exclude={"name"})
        return [{fold: CrossEncoder(name=spec, **settings) for fold, spec in specs.items()} for specs in models.specs]

    def plan(self, data: Sequence[PlannedData], runtime: Runtime) -> list[Plan]:
        """Return the plan of one model: each query is read by one of them."""
        models = self.models(runtime)
        first = next(iter(self.parts(models)[models.seed].values()))
        return first.plan(data, runtime)

    def bind(self, runtime: Runtime) -> FoldReranker:
        """Return the reranker with the model of each fold. No weights are loaded yet."""
        models = self.models(runtime)
        seeds = [{fold: bound(part, runtime) for fold, part in parts.items()} for parts in self.parts(models)]
        return FoldReranker(self, models, seeds)


@dataclass(frozen=True)
class FoldReranker(Bound[FoldRerank]):
    """The cross-encoders of folds, which rerank together."""

    models: FoldModels
    seeds: Sequence[Mapping[int, Reranker]]
    """For each seed: fold -> the reranker of its model."""

    @property
    def parts(self) -> Mapping[int, Reranker]:
        """Fold -> the reranker of its model, of the seed of this repeat."""
        return self.seeds[self.models.seed]

    @property
    def varies(self) -> bool:
        """True if there are models of several seeds: each repeat asks those of another seed."""
        return len(self.seeds) > 1

    @property
    def inner(self) -> tuple[Reranker, ...]:
        """The rerankers of the models."""
        return tuple(self.parts.values())

    @property
    def depth(self) -> int:
        """Number of candidates that are reranked for each query."""
        return self.stage.depth

    def key(self, dataset: Dataset) -> dict[str, Any]:
        """Return every setting that a score depends on: the models, and the fold of each query."""
        return {**self.stage.settings(), **self.models.key(self.seeds, dataset)}

    def check(self, datasets: Sequence[Dataset]) -> None:
        """Raise UserError if a query has no fold, or if the folds are of another dataset."""
        self.models.check(datasets)

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
