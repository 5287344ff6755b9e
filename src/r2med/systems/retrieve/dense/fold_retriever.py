"""Search each query with the model that was trained without its group: folds:DIR."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from r2med.data import Dataset
from r2med.foundation.core.cost import total
from r2med.foundation.core.needs import Needs, Size
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.runtime.stages import Stage
from r2med.systems.retrieve.dense.dense_retriever import Dense, VectorSettings
from r2med.systems.retrieve.fold_models import FoldStage, joined_runs
from r2med.systems.retrieve.retriever import Searched, SearchQuery
from r2med.systems.retrieve.stored_search import stored_search


class FoldSearch(FoldStage, VectorSettings, kind="retrieve"):
    """Search each query with the model that was trained without it: a folder with a model for each fold (folds:DIR)."""

    part: ClassVar[type[Stage]] = Dense

    def needs(self, size: Size, runtime: Runtime) -> list[Needs]:
        """Return the needs of all models of a repeat."""
        return [need for part in self.stages(runtime).values() for need in part.needs(size, runtime)]

    def search(self, dataset: Dataset, queries: Sequence[SearchQuery], k: int, runtime: Runtime) -> Searched:
        """Return the k best documents of each query. A model encodes the corpus when a query of its fold is searched.

        Single questions are searched too, but only those of the file of folds.
        """
        stages = self.stages(runtime)
        parts: list[tuple[list[int], Searched]] = []
        for fold, lines in self.models(runtime).lines(queries).items():
            of_fold = [queries[line] for line in lines]
            parts.append((lines, stored_search(stages[fold], dataset, of_fold, k, runtime)))
        run = joined_runs([query.query.id for query in queries], [(lines, searched.run) for lines, searched in parts])
        cost, prepared = (total(getattr(searched, name) for _, searched in parts) for name in ("cost", "prepared"))
        return Searched(run, cost, prepared)
