"""Use pipelines of PyTerrier as stages: pyterrier:MODULE:NAME retrieves, or reranks after another retriever.

`r2med.run` also takes them as objects. The module that makes a pipeline imports PyTerrier, not this one. A
pipeline of a module is known by the code of the user's modules. Results of one that was passed in are reused by later
processes only if it has an attribute `revision`, which shows that it has not changed.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from r2med.data.dataset import Dataset
from r2med.data.runs.run import Run, on_corpus
from r2med.foundation.core.cost import Cost
from r2med.foundation.core.errors import UserError
from r2med.foundation.core.plan import Plan, PlannedData
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.runtime.stages import Bound, Stage, depth_field
from r2med.foundation.store import Store
from r2med.models.encoders.model_cards import checked_python_path
from r2med.models.encoders.user_objects import PIPELINE_PREFIX, PythonObject, UserObjects, guarded
from r2med.systems.rerank.reranking import Reranked, Scores, candidates, reranked
from r2med.systems.retrieve.retriever import Searched, Searcher, SearchQuery

OWN_WORK = "runs a pipeline of PyTerrier, which has its own index and weights"

Rankings = dict[str, dict[str, float]]


@dataclass(frozen=True)
class UserPipeline:
    """A user's pipeline. Simultaneous questions wait for each other, because few pipelines are safe in threads."""

    python: PythonObject
    runtime: Runtime

    @classmethod
    def of(cls, name: str, runtime: Runtime) -> UserPipeline:
        """Return the pipeline of pyterrier:MODULE:NAME. Raises UserError if it does not exist."""
        path = checked_python_path(name.removeprefix(f"{PIPELINE_PREFIX}:"), "pipeline", PIPELINE_PREFIX)
        python = UserObjects.of(runtime).get(path)
        python.check_methods(["transform"])
        return cls(python, runtime)

    @property
    def name(self) -> str:
        """The name of the pipeline, as typed."""
        return f"{PIPELINE_PREFIX}:{self.python.path}"

    def rankings(self, rows: Sequence[tuple[Any, ...]], columns: tuple[str, ...]) -> Rankings:
        """Return the output: query id -> document id -> score. Raises UserError if a column is missing."""
        import pandas as pd

        with self.runtime.turn(("pipeline", self.python.path)):
            frame = guarded(lambda _: self.python.model(pd.DataFrame(rows, columns=columns)), [], self.name)
        needed = ["qid", "docno", "score"]
        if missing := [column for column in needed if column not in getattr(frame, "columns", ())]:
            raise UserError(f"{self.name} returned no column {missing[0]}: a pipeline returns qid, docno and score")
        rankings: Rankings = {}
        for query, document, score in frame[needed].itertuples(index=False):
            rankings.setdefault(str(query), {})[str(document)] = float(score)
        return rankings


class PipelineStage(Stage, kind="retrieve"):
    """Search with a pipeline of PyTerrier, which takes qid and query and returns docno and score."""

    def plan(self, data: Sequence[PlannedData], runtime: Runtime) -> list[Plan]:
        """Return the plan, without estimates: a pipeline has its own index and weights."""
        return [Plan(str(self), OWN_WORK)]

    def bind(self, runtime: Runtime) -> PipelineRetriever:
        """Return the retriever. The pipeline is imported when its key is asked for."""
        return PipelineRetriever(self, runtime)


@dataclass(frozen=True)
class PipelineRetriever(Bound[PipelineStage]):
    """Retrieves with a pipeline of PyTerrier."""

    runtime: Runtime

    @property
    def optional_modules(self) -> tuple[str, ...]:
        """The module of the tables that pipelines take and return."""
        return ("pandas",)

    def key(self, dataset: Dataset) -> dict[str, Any]:
        """Return the settings of the stage, and what is known about the pipeline."""
        return {**self.stage.settings(), **UserPipeline.of(self.stage.name, self.runtime).python.key()}

    def index(self, dataset: Dataset, store: Store) -> PipelineSearcher:
        """Return a searcher. The pipeline has its own index."""
        return PipelineSearcher(UserPipeline.of(self.stage.name, self.runtime), dataset)


@dataclass(frozen=True)
class PipelineSearcher(Searcher):
    """Searches with a pipeline of PyTerrier."""

    pipeline: UserPipeline
    dataset: Dataset

    def search(self, queries: Sequence[SearchQuery], k: int) -> Searched:
        """Return the k best documents of each query."""
        started = time.perf_counter()
        ids = [query.query.id for query in queries]
        topics = [(query.query.id, query.lexical_text) for query in queries]
        rankings = self.pipeline.rankings(topics, ("qid", "query"))
        run = on_corpus(Run.of(rankings), ids, self.dataset.corpus, k, self.pipeline.name)
        return Searched(run, Cost(seconds=time.perf_counter() - started))


class PipelineReranker(Stage, kind="rerank"):
    """Rerank with a pipeline of PyTerrier, which takes qid, query, docno, text, score, rank and returns new scores."""

    depth: int = depth_field()

    def plan(self, data: Sequence[PlannedData], runtime: Runtime) -> list[Plan]:
        """Return the plan, without estimates: a pipeline has its own index and weights."""
        return [Plan(str(self), OWN_WORK)]

    def bind(self, runtime: Runtime) -> BoundPipelineReranker:
        """Return the reranker."""
        return BoundPipelineReranker(self, runtime)


@dataclass(frozen=True)
class BoundPipelineReranker(Bound[PipelineReranker]):
    """Reranks candidates by the scores of a pipeline, which gets all candidates of a query together."""

    runtime: Runtime

    @property
    def depth(self) -> int:
        """Number of candidates per query that are reranked."""
        return self.stage.depth

    @property
    def optional_modules(self) -> tuple[str, ...]:
        """The module of the tables that pipelines take and return."""
        return ("pandas",)

    def key(self, dataset: Dataset) -> dict[str, Any]:
        """Return the settings of the stage, and what is known about the pipeline."""
        return {**self.stage.settings(), **UserPipeline.of(self.stage.name, self.runtime).python.key()}

    def rerank(self, dataset: Dataset, queries: Sequence[SearchQuery], run: Run, store: Store) -> Reranked:
        """Return the reranked run. Documents that the pipeline leaves out come last."""
        started = time.perf_counter()
        pipeline, corpus = UserPipeline.of(self.stage.name, self.runtime), dataset.corpus
        given, frame = [], []
        for query, rows, scores in zip(queries, candidates(run, self.depth), run.scores, strict=True):
            ids = corpus.ids(rows)
            ranked = zip(ids, corpus.texts(rows), scores[: len(rows)].tolist(), range(len(rows)), strict=True)
            frame += [(query.query.id, query.query.text, *columns) for columns in ranked]
            given.append((query.query.id, ids))
        rankings = pipeline.rankings(frame, ("qid", "query", "docno", "text", "score", "rank"))
        new = [_scores(rankings.get(query, {}), ids, pipeline.name) for query, ids in given]
        return Reranked(reranked(run, self.depth, new), Cost(seconds=time.perf_counter() - started))


def _scores(ranking: dict[str, float], candidates: Sequence[str], pipeline: str) -> Scores:
    """Return a score for each candidate. Candidates without one get lower scores, in their order."""
    if strangers := sorted(ranking.keys() - set(candidates)):
        raise UserError(
            f"{pipeline} returned {strangers[0]!r}, which is not a candidate: it can retrieve, but not rerank"
        )
    scores = np.array([ranking.get(document, np.nan) for document in candidates], dtype=np.float64)
    left_out = np.isnan(scores)
    lowest = scores[~left_out].min(initial=0.0)
    scores[left_out] = lowest - 1 - np.arange(np.count_nonzero(left_out))
    return scores
