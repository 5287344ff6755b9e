"""Cross-encoders as rerankers: every candidate is read together with the query, and sorted by the score."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from r2med.crossencoders.contracts import PairScorer
from r2med.crossencoders.open import PREFIXES, card_of, open_scorer
from r2med.crossencoders.reranker_cards import RerankerCard, rerankers
from r2med.data.dataset import Dataset
from r2med.data.dataset_cards import Instruction
from r2med.encoders.model_cards import ANY_DATASET
from r2med.errors import UserError, nearest
from r2med.rerank.contracts import Reranked, Reranker
from r2med.rerank.order import candidates, query_text, reranked
from r2med.rerank.pair_scores import Asked, scores_of
from r2med.retrieve.retriever import SearchQuery
from r2med.retrieve.run import Run
from r2med.setup import Setup
from r2med.spec import Call
from r2med.store import Store

__all__ = ["PREFIXES", "CrossReranker", "build", "known"]

QUERIES = ("original", "expanded")


def known() -> list[str]:
    """Return the names of all cards."""
    return list(rerankers())


def build(call: Call, options: Setup, depth: int) -> Reranker:
    """Return the reranker of a call: a card's name, hf:ORG/NAME, path:DIR or py:MODULE:NAME."""
    if call.arguments:
        raise UserError(f"{call.name} does not know what {call.arguments[0]!r} is: settings are written KEY=VALUE")
    query = call.typed({"query": str}).get("query", QUERIES[0])
    if query not in QUERIES:
        raise UserError(f"{call.name}: no query={query}{nearest(query, QUERIES)}: {' or '.join(QUERIES)}")
    return CrossReranker(call.name, card_of(call.name), options, depth, query)


class CrossReranker:
    """Orders candidates by a cross-encoder's scores; nothing is loaded while the cache has them all."""

    def __init__(self, typed: str, card: RerankerCard, options: Setup, depth: int, query: str = QUERIES[0]) -> None:
        if depth < 1:
            raise UserError(f"{typed}@{depth}: a reranker looks at one candidate or more")
        self._typed, self._card, self._options = typed, card, options
        self._depth, self._query = depth, query
        self._scorers: dict[Instruction, PairScorer] = {}

    @property
    def name(self) -> str:
        """What one types to get it."""
        settings = (("query", self._query),) if self._query != QUERIES[0] else ()
        return str(Call(self._typed, settings=settings, depth=self._depth))

    @property
    def depth(self) -> int:
        """How many candidates of each query it looks at."""
        return self._depth

    def describe(self, dataset: Dataset) -> dict[str, Any]:
        """Return every setting a score depends on."""
        scored = self._scorer(dataset).describe()
        return {"reranker": "cross-encoder", **scored, "query": self._query, "depth": self._depth}

    def rerank(self, dataset: Dataset, queries: Sequence[SearchQuery], run: Run, store: Store) -> Reranked:
        """Return the run with the first candidates of each query sorted by their scores."""
        asked = [
            Asked(query.query.id, query_text(query, self._query), rows)
            for query, rows in zip(queries, candidates(run, self._depth), strict=True)
        ]
        if not any(len(query.rows) for query in asked):
            return Reranked(run, notices=(f"{self.name}: the run has no documents, there is nothing to rerank",))
        found = scores_of(asked, self._scorer(dataset), dataset.corpus, store, self._card.name)
        every = [scored for line in found for scored in line]
        return Reranked(
            reranked(run, self._depth, [np.asarray([s.score for s in line], dtype=np.float64) for line in found]),
            usage={
                "pairs": float(len(every)),
                "tokens": float(sum(scored.tokens for scored in every)),
                "truncated": float(sum(scored.truncated for scored in every)),
            },
            seconds=sum(scored.seconds for scored in every),
        )

    def _scorer(self, dataset: Dataset) -> PairScorer:
        words = (dataset.card.instruction if dataset.card else None) or ANY_DATASET
        if words not in self._scorers:
            self._scorers[words] = open_scorer(self._card, words, self._options)
        return self._scorers[words]
