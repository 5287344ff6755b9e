"""Rerank candidates with a cross-encoder, in this process or behind a rerank API.

The model reads each candidate together with the query and returns a score. Candidates are sorted by this score.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from pydantic import Field

from r2med.data.dataset import Dataset
from r2med.data.runs.run import Run
from r2med.foundation.core.cost import Cost
from r2med.foundation.core.plan import Plan, PlannedData, gpu_memory
from r2med.foundation.pages.cells import shown_dollars
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.runtime.stages import Stage, depth_field
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
    """Rerankers that sort candidates by the score of each with the query.

    The model is not loaded while the store has all scores.
    """

    query: Literal["original", "expanded"] = Field(
        "original",
        description="expanded: documents are scored against the query together with its generated text",
    )
    depth: int = depth_field()

    def memo_name(self, runtime: Runtime) -> str:
        """Return the name of the file of scores in the store."""
        raise NotImplementedError(f"{type(self).__name__} has no memo_name()")

    def lock_name(self, runtime: Runtime) -> str:
        """Return the name of the model's lock. Rerankers with the same model share it."""
        return self.memo_name(runtime)

    def open_scorer(self, dataset: Dataset, runtime: Runtime) -> PairScorer:
        """Return the scorer for the instruction of a dataset. No weights are loaded yet."""
        raise NotImplementedError(f"{type(self).__name__} has no open_scorer()")

    def cost(self, scored: Sequence[ScoredPair], runtime: Runtime) -> Cost:
        """Return the cost of some scores."""
        return cost_of(scored)

    def key(self, dataset: Dataset, runtime: Runtime) -> dict[str, Any]:
        """Return every setting that a score depends on."""
        scorer = self._scorer(dataset, runtime)
        # The pin is not part of the scorer's key. Scores depend on the commit alone, so they stay valid when
        # the commit is pinned later.
        pinned = {} if getattr(scorer, "pinned", True) else {"pinned": False}
        return {**self.settings(), **scorer.key(), **pinned}

    def rerank(self, dataset: Dataset, queries: Sequence[SearchQuery], run: Run, runtime: Runtime) -> Reranked:
        """Return the run with the first candidates of each query sorted by their scores."""
        ranked = [
            RankedQuery(query.query.id, query_text(query, self.query), rows)
            for query, rows in zip(queries, candidates(run, self.depth), strict=True)
        ]
        if not any(len(query.rows) for query in ranked):
            return Reranked(run, notices=(f"{self}: the run has no documents, so there is nothing to rerank",))
        scorer, name = self._scorer(dataset, runtime), self.memo_name(runtime)
        with runtime.turn(("model", self.lock_name(runtime))):  # not every model is safe in threads
            scored = pair_scores(ranked, scorer, dataset.corpus, runtime.store, name, runtime.engine)
        scores = [np.asarray([pair.score for pair in line], dtype=np.float64) for line in scored]
        pairs = [pair for line in scored for pair in line]
        return Reranked(reranked(run, self.depth, scores), self.cost(pairs, runtime))

    def _scorer(self, dataset: Dataset, runtime: Runtime) -> PairScorer:
        return runtime.part((self, "scorer", dataset.instruction), lambda: self.open_scorer(dataset, runtime))


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

    def card(self, runtime: Runtime) -> RerankerCard:
        """Return the card of a name, hf:ORG/NAME, path:DIR or py:MODULE:NAME."""
        return runtime.part((self.name, "reranker card"), lambda: resolve_reranker(self.name))

    def memo_name(self, runtime: Runtime) -> str:
        """Return the name of the card."""
        return self.card(runtime).name

    def lock_name(self, runtime: Runtime) -> str:
        """Return the repository of the model."""
        return self.card(runtime).repository or self.card(runtime).name

    def modules(self, runtime: Runtime) -> tuple[str, ...]:
        """Return the modules that load the model."""
        return modules_of_reranker(self.card(runtime), runtime.setup)

    def open_scorer(self, dataset: Dataset, runtime: Runtime) -> PairScorer:
        """Return the scorer of the card."""
        return open_scorer(self.card(runtime), dataset.instruction, runtime)

    def cost(self, scored: Sequence[ScoredPair], runtime: Runtime) -> Cost:
        """Return the cost of some scores at the prices of the card."""
        return cost_of(scored, self.card(runtime))


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
