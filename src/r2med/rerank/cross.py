"""Cross-encoders as rerankers: every candidate is read together with the query, and sorted by the score."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from pydantic import Field

from r2med.crossencoders.pair_scorer import PairScorer, cost_of, open_scorer
from r2med.crossencoders.reranker_cards import RERANKERS, RerankerCard, resolve_reranker
from r2med.data.dataset import Dataset
from r2med.data.dataset_cards import Instruction
from r2med.rerank.pair_scores import RankedQuery, pair_scores
from r2med.rerank.reranking import Reranked, candidates, query_text, reranked
from r2med.retrieve.retriever import SearchQuery
from r2med.retrieve.run import Run
from r2med.setup import Setup
from r2med.stages import Stage, depth_field
from r2med.store import Store


class CrossEncoder(Stage, kind="rerank"):
    """Score each candidate together with the query by a cross-encoder, and sort by the score."""

    query: Literal["original", "expanded"] = Field(
        "original", description="expanded: documents are scored against the query with what was generated for it"
    )
    depth: int = depth_field()

    @classmethod
    def summary(cls, name: str) -> str:
        """Return what the model of a card is."""
        card = RERANKERS.get(name)
        return f"Scores of the cross-encoder {card.repository}." if card else super().summary(name)

    def open(self, setup: Setup) -> CrossReranker:
        """Return the reranker of a card, hf:ORG/NAME, path:DIR or py:MODULE:NAME; no weights are loaded yet."""
        return CrossReranker(self, resolve_reranker(self.name), setup)


@dataclass(frozen=True)
class CrossReranker:
    """Orders candidates by a cross-encoder's scores; nothing is loaded while the cache has them all."""

    stage: CrossEncoder
    card: RerankerCard
    setup: Setup
    _scorers: dict[Instruction, PairScorer] = field(default_factory=dict, compare=False, repr=False)

    @property
    def name(self) -> str:
        """What one types to get it."""
        return str(self.stage)

    @property
    def depth(self) -> int:
        """How many candidates of each query it looks at."""
        return self.stage.depth

    def describe(self, dataset: Dataset) -> dict[str, Any]:
        """Return every setting a score depends on."""
        return {**self.stage.settings(), **self._scorer(dataset).describe()}

    def rerank(self, dataset: Dataset, queries: Sequence[SearchQuery], run: Run, store: Store) -> Reranked:
        """Return the run with the first candidates of each query sorted by their scores."""
        ranked = [
            RankedQuery(query.query.id, query_text(query, self.stage.query), rows)
            for query, rows in zip(queries, candidates(run, self.depth), strict=True)
        ]
        if not any(len(query.rows) for query in ranked):
            return Reranked(run, notices=(f"{self.name}: the run has no documents, there is nothing to rerank",))
        scored = pair_scores(ranked, self._scorer(dataset), dataset.corpus, store, self.card.name)
        scores = [np.asarray([pair.score for pair in line], dtype=np.float64) for line in scored]
        return Reranked(reranked(run, self.depth, scores), cost_of([pair for line in scored for pair in line]))

    def _scorer(self, dataset: Dataset) -> PairScorer:
        words = dataset.instruction
        if words not in self._scorers:
            self._scorers[words] = open_scorer(self.card, words, self.setup)
        return self._scorers[words]
