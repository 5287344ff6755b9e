"""Search each query with the model that was trained without its group: folds:DIR."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

from r2med.data import Dataset
from r2med.data.runs.run import Run
from r2med.foundation.core.cost import total
from r2med.foundation.core.plan import Plan, PlannedData
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.runtime.stages import Stage
from r2med.foundation.store import Store
from r2med.systems.retrieve.dense.dense_retriever import Dense
from r2med.systems.retrieve.fold_models import BoundFolds, FoldStage, joined_runs
from r2med.systems.retrieve.retriever import Retriever, Searched, Searcher, SearchQuery
from r2med.systems.retrieve.stored_search import cached_search, indexed, search_with
from r2med.systems.retrieve.vectors.vector_retriever import VectorSearch


class FoldSearch(FoldStage, VectorSearch, kind="retrieve"):
    """Search each query with the model that was trained without it: a folder with a model for each fold (folds:DIR)."""

    part: ClassVar[type[Stage]] = Dense

    def plan(self, data: Sequence[PlannedData], runtime: Runtime) -> list[Plan]:
        """Return the plans of all models of a repeat."""
        models = self.models(runtime)
        return [plan for part in self.parts(models)[models.seed].values() for plan in part.plan(data, runtime)]

    def bind(self, runtime: Runtime) -> FoldRetriever:
        """Return the retriever with the model of each fold. Weights are loaded for the first text."""
        models = self.models(runtime)
        return FoldRetriever(self, models, self.bound_parts(models, runtime))


@dataclass(frozen=True)
class FoldRetriever(BoundFolds[FoldSearch, Retriever]):
    """The models of folds, which search together."""

    def index(self, dataset: Dataset, store: Store) -> FoldSearcher:
        """Return a searcher. A model encodes the corpus when the first query of its fold is searched."""
        return FoldSearcher(self, dataset, store)


class FoldSearcher(Searcher):
    """Search over one corpus with the models of folds."""

    def __init__(self, retriever: FoldRetriever, dataset: Dataset, store: Store) -> None:
        self._retriever = retriever
        self._dataset = dataset
        self._store = store
        self._indexed: dict[int, Searcher] = {}
        self._live: dict[int, Searcher] = {}

    def search(self, queries: Sequence[SearchQuery], k: int) -> Searched:
        """Return the k best documents of each query, by the model of its fold."""
        found: list[tuple[list[int], Searched]] = []
        for fold, lines in self._retriever.models.lines(queries).items():
            found.append((lines, self._search(fold, [queries[line] for line in lines], k)))
        asked = [query.query.id for query in queries]
        runs: list[tuple[list[int], Run]] = [(lines, searched.run) for lines, searched in found]
        cost, prepared = (total(getattr(each, name) for _, each in found) for name in ("cost", "prepared"))
        return Searched(joined_runs(asked, runs), cost, prepared)

    def live(self) -> FoldSearcher:
        """Return a searcher that saves no run. It still knows only the queries of the file of folds."""
        searcher = copy.copy(self)
        searcher._live = {fold: self._index(fold).live() for fold in self._retriever.parts}
        return searcher

    def _index(self, fold: int) -> Searcher:
        if fold not in self._indexed:
            self._indexed[fold] = indexed(self._retriever.parts[fold], self._dataset, self._store)
        return self._indexed[fold]

    def _search(self, fold: int, queries: Sequence[SearchQuery], k: int) -> Searched:
        if self._live:
            return search_with(self._live[fold], self._dataset.corpus, queries, k)
        part, index = self._retriever.parts[fold], partial(self._index, fold)
        return cached_search(part, self._dataset, queries, k, self._store, index=index)
