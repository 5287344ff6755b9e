"""Use pipelines of PyTerrier as stages: pyterrier:MODULE:NAME retrieves, or reranks after another retriever.

`r2med.run` also takes them as objects. The module that makes a pipeline imports PyTerrier, not this one. Results of a
pipeline are reused by later processes only if it has an attribute `revision`, which shows that it has not changed.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from r2med.core.cost import Cost
from r2med.core.errors import UserError
from r2med.core.stage_plan import PlannedData, StagePlan
from r2med.core.stages import Opened, Stage, depth_field
from r2med.data.dataset import Dataset
from r2med.encoders.custom import PIPELINE, PythonObject, guarded, python_object
from r2med.encoders.model_cards import checked_python_path
from r2med.rerank.reranking import Reranked, Scores, candidates, reranked
from r2med.retrieve.candidates import on_corpus
from r2med.retrieve.retriever import Searched, SearchQuery
from r2med.retrieve.run import Run
from r2med.runtime.runtime import Runtime
from r2med.store import Store

OWN_WORK = "runs a pipeline of PyTerrier, which has its own index and weights"

Rankings = dict[str, dict[str, float]]

_TURN = threading.Lock()
"""Questions that come at once are searched one after the other: nobody promises that a pipeline bears threads."""


class Pipeline(Stage, kind="retrieve"):
    """Search with a pipeline of PyTerrier, which takes qid and query and returns docno and score."""

    def plan(self, data: Sequence[PlannedData], runtime: Runtime) -> list[StagePlan]:
        """Return that the pipeline works by itself."""
        return [StagePlan(str(self), OWN_WORK)]

    def open(self, runtime: Runtime) -> Pipeline:
        """Return the stage itself. The pipeline is imported when it is described."""
        return self

    def describe(self, dataset: Dataset) -> dict[str, Any]:
        """Return what is known of the pipeline."""
        return {**self.settings(), **_pipeline(self.name).describe()}

    def index(self, dataset: Dataset, store: Store) -> PipelineSearcher:
        """Return a searcher. The pipeline has its own index."""
        return PipelineSearcher(_pipeline(self.name), dataset)


@dataclass(frozen=True)
class PipelineSearcher:
    """Searches with a pipeline of PyTerrier."""

    pipeline: PythonObject
    dataset: Dataset

    def search(self, queries: Sequence[SearchQuery], k: int) -> Searched:
        """Return the k best documents of each query."""
        started = time.perf_counter()
        ids = [query.query.id for query in queries]
        topics = [(query.query.id, query.lexical_text) for query in queries]
        rankings = _asked(self.pipeline, topics, ("qid", "query"))
        run = on_corpus(Run.of(rankings), ids, self.dataset.corpus, k, _name(self.pipeline))
        return Searched(run, Cost(seconds=time.perf_counter() - started))

    def live(self) -> PipelineSearcher:
        """Return the searcher itself, since it stores nothing about a query."""
        return self


class PipelineReranker(Stage, kind="rerank"):
    """Rerank with a pipeline of PyTerrier, which takes qid, query, docno, text, score, rank and returns new scores."""

    depth: int = depth_field()

    def plan(self, data: Sequence[PlannedData], runtime: Runtime) -> list[StagePlan]:
        """Return that the pipeline works by itself."""
        return [StagePlan(str(self), OWN_WORK)]

    def open(self, runtime: Runtime) -> OpenedPipeline:
        """Return the reranker."""
        return OpenedPipeline(self)


@dataclass(frozen=True)
class OpenedPipeline(Opened[PipelineReranker]):
    """Reranks candidates by the scores of a pipeline, which gets all candidates of a query together."""

    @property
    def depth(self) -> int:
        """Number of candidates per query that are reranked."""
        return self.stage.depth

    def describe(self, dataset: Dataset) -> dict[str, Any]:
        """Return what is known of the pipeline."""
        return {**self.stage.settings(), **_pipeline(self.stage.name).describe()}

    def rerank(self, dataset: Dataset, queries: Sequence[SearchQuery], run: Run, store: Store) -> Reranked:
        """Return the reranked run. Documents that the pipeline leaves out come last."""
        started = time.perf_counter()
        pipeline, corpus = _pipeline(self.stage.name), dataset.corpus
        given, frame = [], []
        for query, rows, scores in zip(queries, candidates(run, self.depth), run.scores, strict=True):
            ids = corpus.ids(rows)
            ranked = zip(ids, corpus.texts(rows), scores[: len(rows)].tolist(), range(len(rows)), strict=True)
            frame += [(query.query.id, query.query.text, *columns) for columns in ranked]
            given.append((query.query.id, ids))
        rankings = _asked(pipeline, frame, ("qid", "query", "docno", "text", "score", "rank"))
        new = [_scores(rankings.get(query, {}), ids, pipeline) for query, ids in given]
        return Reranked(reranked(run, self.depth, new), Cost(seconds=time.perf_counter() - started))


def _scores(ranking: dict[str, float], candidates: Sequence[str], pipeline: PythonObject) -> Scores:
    """Return a score for each candidate. Candidates without one get lower scores, in their order."""
    if strangers := sorted(ranking.keys() - set(candidates)):
        raise UserError(
            f"{_name(pipeline)} returned {strangers[0]!r}, which is not a candidate: it can retrieve, but not rerank"
        )
    scores = np.array([ranking.get(document, np.nan) for document in candidates], dtype=np.float64)
    left_out = np.isnan(scores)
    lowest = scores[~left_out].min(initial=0.0)
    scores[left_out] = lowest - 1 - np.arange(np.count_nonzero(left_out))
    return scores


def _name(pipeline: PythonObject) -> str:
    return f"{PIPELINE}:{pipeline.path}"


def _pipeline(name: str) -> PythonObject:
    """Return the pipeline of pyterrier:MODULE:NAME. Raises UserError if it does not exist."""
    path = name.removeprefix(f"{PIPELINE}:")
    return python_object(checked_python_path(path, "pipeline", PIPELINE), ["transform"])


def _asked(pipeline: PythonObject, rows: Sequence[tuple[Any, ...]], columns: tuple[str, ...]) -> Rankings:
    """Return what a pipeline makes of a frame: query id -> document id -> score. Raises UserError if that is none."""
    import pandas as pd

    with _TURN:
        frame = guarded(lambda _: pipeline.model(pd.DataFrame(rows, columns=columns)), [], _name(pipeline))
    needed = ["qid", "docno", "score"]
    if missing := [column for column in needed if column not in getattr(frame, "columns", ())]:
        raise UserError(f"{_name(pipeline)} returned no column {missing[0]}: a pipeline returns qid, docno and score")
    rankings: Rankings = {}
    for query, document, score in frame[needed].itertuples(index=False):
        rankings.setdefault(str(query), {})[str(document)] = float(score)
    return rankings
