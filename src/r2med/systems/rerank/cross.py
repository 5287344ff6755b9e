"""Rerank candidates with a cross-encoder, in this process or behind a rerank API.

The model reads each candidate together with the query and returns a score. Candidates are sorted by this score.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

import numpy as np
from pydantic import Field

from r2med.data.dataset import Dataset
from r2med.data.dataset_cards import Instruction
from r2med.data.runs.run import Run
from r2med.foundation.core.cost import Cost
from r2med.foundation.core.plan import Plan, PlannedData, gpu_memory
from r2med.foundation.pages.cells import shown_dollars
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.runtime.stages import Bound, Stage, depth_field
from r2med.foundation.store import Store
from r2med.models.crossencoders.api_scorer import api_missing
from r2med.models.crossencoders.pair_scorer import PairScorer, ScoredPair, cost_of, modules_of_reranker, open_scorer
from r2med.models.crossencoders.rerank_apis import DOCUMENTS_PER_SEARCH, own_servers
from r2med.models.crossencoders.reranker_cards import RERANKERS, RerankerCard, is_served, resolve_reranker
from r2med.models.encoders.model_estimates import (
    PASSAGE_TOKENS,
    bytes_to_fetch,
    model_memory,
    own_weights,
    reading_seconds,
)
from r2med.systems.rerank.pair_scores import RankedQuery, pair_scores, seconds_per_pair
from r2med.systems.rerank.reranking import Reranked, candidates, query_text, reranked
from r2med.systems.retrieve.retriever import SearchQuery


class PairStage(Stage):
    """Settings of rerankers that score each candidate together with the query."""

    query: Literal["original", "expanded"] = Field(
        "original",
        description="expanded: documents are scored against the query together with its generated text",
    )
    depth: int = depth_field()


class CrossEncoder(PairStage, kind="rerank"):
    """Score each candidate together with the query by a cross-encoder, and sort by the score."""

    @classmethod
    def summary(cls, name: str) -> str:
        """Return a one-sentence description of the card's model."""
        card = RERANKERS.get(name)
        if card is None:
            return super().summary(name)
        return (
            f"Scores of {card.repository}, by its API."
            if card.is_api
            else f"Scores of the cross-encoder {card.repository}."
        )

    def plan(self, data: Sequence[PlannedData], runtime: Runtime) -> list[Plan]:
        """Return how many pairs would be scored and how much would be downloaded."""
        card = resolve_reranker(self.name) if _is_api(self.name) else None
        if card is not None:
            return [
                _api_plan(str(self), card, [(each.queries, min(self.depth, each.documents)) for each in data], runtime)
            ]
        pairs = sum(each.queries * min(self.depth, each.documents) for each in data)
        fetch, missing = bytes_to_fetch(self.name, RERANKERS, resolve_reranker, runtime.setup)
        known = seconds_per_pair(runtime.store, self.name)
        seconds = reading_seconds(RERANKERS, self.name, 2 * pairs, runtime.setup) if known is None else pairs * known
        work = f"scores {pairs:,} pairs of queries and documents{own_weights(self.name)}"
        return [Plan(str(self), work, fetch, seconds, missing, memory=model_memory(self.name, RERANKERS))]

    def bind(self, runtime: Runtime) -> PairReranker[Any]:
        """Return the reranker of a card, hf:ORG/NAME, path:DIR or py:MODULE:NAME. No weights are loaded yet."""
        return CrossReranker(self, runtime, resolve_reranker(self.name))


PairStageType = TypeVar("PairStageType", bound=PairStage)


@dataclass(frozen=True)
class PairReranker(Bound[PairStageType]):
    """Reranker that sorts candidates by the scores of a model for pairs.

    The model is not loaded while the cache has all scores.
    """

    runtime: Runtime
    _scorers: dict[Instruction, PairScorer] = field(default_factory=dict, init=False, compare=False, repr=False)

    @property
    @abstractmethod
    def memo_name(self) -> str:
        """The name of the cache of scores."""

    @property
    def model_name(self) -> str:
        """The name of the model's lock. Rerankers with the same model share it."""
        return self.memo_name

    @abstractmethod
    def open_scorer(self, dataset: Dataset) -> PairScorer:
        """Return the scorer for the instruction of a dataset. No weights are loaded yet."""

    def cost(self, scored: Sequence[ScoredPair]) -> Cost:
        """Return the cost of some scores."""
        return cost_of(scored)

    @property
    def depth(self) -> int:
        """Number of candidates that are reranked for each query."""
        return self.stage.depth

    def key(self, dataset: Dataset) -> dict[str, Any]:
        """Return every setting that a score depends on."""
        scorer = self._scorer(dataset)
        # The pin is not part of the scorer's key. Scores depend on the commit alone, so they stay valid when
        # the commit is pinned later.
        pinned = {} if getattr(scorer, "pinned", True) else {"pinned": False}
        return {**self.stage.settings(), **scorer.key(), **pinned}

    def rerank(self, dataset: Dataset, queries: Sequence[SearchQuery], run: Run, store: Store) -> Reranked:
        """Return the run with the first candidates of each query sorted by their scores."""
        ranked = [
            RankedQuery(query.query.id, query_text(query, self.stage.query), rows)
            for query, rows in zip(queries, candidates(run, self.depth), strict=True)
        ]
        if not any(len(query.rows) for query in ranked):
            return Reranked(run, notices=(f"{self.name}: the run has no documents, so there is nothing to rerank",))
        scorer, engine = self._scorer(dataset), self.runtime.engine
        with self.runtime.turn(("model", self.model_name)):  # not every model is safe in threads
            scored = pair_scores(ranked, scorer, dataset.corpus, store, self.memo_name, engine)
        scores = [np.asarray([pair.score for pair in line], dtype=np.float64) for line in scored]
        return Reranked(reranked(run, self.depth, scores), self.cost([pair for line in scored for pair in line]))

    def _scorer(self, dataset: Dataset) -> PairScorer:
        words = dataset.instruction
        if words not in self._scorers:
            self._scorers[words] = self.open_scorer(dataset)
        return self._scorers[words]


@dataclass(frozen=True)
class CrossReranker(PairReranker[CrossEncoder]):
    """Reranker that sorts candidates by a cross-encoder's scores."""

    card: RerankerCard

    @property
    def memo_name(self) -> str:
        """The name of the card."""
        return self.card.name

    @property
    def model_name(self) -> str:
        """The repository of the model."""
        return self.card.repository or self.card.name

    @property
    def optional_modules(self) -> tuple[str, ...]:
        """The modules that load the model."""
        return modules_of_reranker(self.card, self.runtime.setup)

    def open_scorer(self, dataset: Dataset) -> PairScorer:
        """Return the scorer of the card."""
        return open_scorer(self.card, dataset.instruction, self.runtime)

    def cost(self, scored: Sequence[ScoredPair]) -> Cost:
        """Return the cost of some scores at the prices of the card."""
        return cost_of(scored, self.card)


def _is_api(name: str) -> bool:
    card = RERANKERS.get(name)
    return card.is_api if card else is_served(name)


def _api_plan(name: str, card: RerankerCard, sizes: Sequence[tuple[int, int]], runtime: Runtime) -> Plan:
    """Return the plan of a reranker behind an API. `sizes` are the queries of each dataset and their candidates."""
    pairs = sum(queries * depth for queries, depth in sizes)
    searches = sum(queries * math.ceil(depth / DOCUMENTS_PER_SEARCH) for queries, depth in sizes)
    tokens = 2 * PASSAGE_TOKENS * pairs
    dollars = card.dollars(tokens, searches)
    price = f"about ${shown_dollars(dollars)}" if card.is_priced else "its price is not in the card"
    free = card.loader in own_servers()
    known = seconds_per_pair(runtime.store, card.name)
    work = f"scores {pairs:,} pairs of queries and documents by an API{'' if free else f', {price}'}"
    seconds = None if known is None else pairs * known / runtime.setup.concurrency
    return Plan(
        name,
        work,
        0.0,
        seconds,
        api_missing(card, runtime.setup),
        served=gpu_memory(card.parameters) if free else 0.0,
        prompt_tokens=tokens,
        dollars=dollars if card.is_priced and not free else None,
    )
