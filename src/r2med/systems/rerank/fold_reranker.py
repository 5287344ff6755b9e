"""Rerank the documents of each query with the cross-encoder that was trained without its group: folds:DIR."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from r2med.data.dataset import Dataset
from r2med.data.runs.run import Run
from r2med.foundation.core.cost import total
from r2med.foundation.core.needs import Needs, Size
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.runtime.stages import Stage
from r2med.systems.rerank.cross import CrossEncoder, PairStage
from r2med.systems.rerank.reranking import Reranked
from r2med.systems.retrieve.fold_models import FoldStage, joined_runs
from r2med.systems.retrieve.retriever import SearchQuery


class FoldRerank(FoldStage, PairStage, kind="rerank"):
    """Rerank with the cross-encoder that was trained without the query: a folder with one for each fold (folds:DIR)."""

    part: ClassVar[type[Stage]] = CrossEncoder

    def needs(self, size: Size, runtime: Runtime) -> list[Needs]:
        """Return the needs of one model: each query is read by one of them."""
        return next(iter(self.stages(runtime).values())).needs(size, runtime)

    def rerank(self, dataset: Dataset, queries: Sequence[SearchQuery], run: Run, runtime: Runtime) -> Reranked:
        """Return the run with the first candidates of each query in the order of its fold's model."""
        stages = self.stages(runtime)
        parts: list[tuple[list[int], Reranked]] = []
        for fold, lines in self.models(runtime).lines(queries).items():
            of_fold = [queries[line] for line in lines]
            part = Run(tuple(run.queries[line] for line in lines), run.rows[lines], run.scores[lines], run.documents)
            parts.append((lines, stages[fold].rerank(dataset, of_fold, part, runtime)))
        if not parts:
            return Reranked(run)
        runs = [(lines, reranked.run) for lines, reranked in parts]
        notices = tuple(dict.fromkeys(notice for _, reranked in parts for notice in reranked.notices))
        return Reranked(joined_runs(run.queries, runs), total(part.cost for _, part in parts), notices=notices)
