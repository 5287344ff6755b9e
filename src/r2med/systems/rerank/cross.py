"""Rerank candidates with a cross-encoder, in this process or behind a rerank API.

The model reads each candidate together with the query and returns a score. Candidates are sorted by this score.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from pydantic import Field

from r2med.data.dataset import Dataset
from r2med.data.runs.run import Run
from r2med.foundation.core.cost import Cost
from r2med.foundation.core.needs import Needs, Size, gpu_memory
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.runtime.stages import Stage, depth_field
from r2med.models.crossencoders.api_scorer import api_missing
from r2med.models.crossencoders.pair_scorer import PairScorer, ScoredPair, cost_of, modules_of_reranker, open_scorer
from r2med.models.crossencoders.rerank_apis import DOCUMENTS_PER_SEARCH, own_servers
from r2med.models.crossencoders.reranker_cards import RERANKERS, RerankerCard, is_served, resolve_reranker
from r2med.models.encoders.model_estimates import MOST_TOKENS, model_needs
from r2med.systems.rerank.pair_scores import RankedQuery, pair_scores
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

    def needs(self, size: Size, runtime: Runtime) -> list[Needs]:
        """Return how many pairs would be scored and how much would be downloaded or paid."""
        depth = min(self.depth, size.documents)
        pairs, tokens = size.queries * depth, size.queries * depth * (size.query_tokens + size.document_tokens)
        if not _is_api(self.name):
            model = model_needs(str(self), self.name, RERANKERS, resolve_reranker, tokens, runtime.setup)
            return [replace(model, pairs=pairs)]
        card = resolve_reranker(self.name)
        free, searches = card.loader in own_servers(), size.queries * math.ceil(depth / DOCUMENTS_PER_SEARCH)
        bill, most = (card.dollars(read, searches) for read in (tokens, MOST_TOKENS * tokens))
        return [
            Needs(
                str(self),
                pairs=pairs,
                read=tokens,
                dollars=bill if card.is_priced and not free else None,
                most_dollars=most if card.is_priced and not free else None,
                seconds=None,
                served=gpu_memory(card.parameters) if free else 0.0,
                missing=api_missing(card, runtime.setup),
            )
        ]

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
