"""What a reranker is, and what it returns: the same documents, the top of them in a new order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from r2med.data.dataset import Dataset
from r2med.retrieve.retriever import SearchQuery
from r2med.retrieve.run import Run
from r2med.store import Store

DEPTH = 100
"""Candidates that are looked at where a name does not say how many."""


@dataclass(frozen=True)
class Reranked:
    """A run in its new order, and what that took."""

    run: Run
    failures: int = 0
    """Calls that brought no order: their documents stay where the stage before had them."""
    failure_kinds: dict[str, int] = field(default_factory=dict)
    repairs: dict[str, int] = field(default_factory=dict)
    """What had to be mended in answers that could still be used, by kind: missing, repeated, invented, …"""
    llm: dict[str, float] = field(default_factory=dict)
    """What an LLM took (requests, tokens, cost_usd, …); empty for other models."""
    usage: dict[str, float] = field(default_factory=dict)
    """What a cross-encoder used (pairs, tokens, truncated, …)."""
    seconds: float = 0.0
    """What all of it takes without a cache, one query after the other: calls' latencies or the encoder's time."""
    notices: tuple[str, ...] = ()


class Reranker(Protocol):
    """Anything that puts candidates into a better order."""

    @property
    def name(self) -> str:
        """What one types to get it, its depth included; settings at their defaults are left out."""

    @property
    def depth(self) -> int:
        """How many candidates of each query it looks at."""

    def describe(self, dataset: Dataset) -> dict[str, Any]:
        """Return every setting a score depends on; it goes into keys and records."""

    def rerank(self, dataset: Dataset, queries: Sequence[SearchQuery], run: Run, store: Store) -> Reranked:
        """Return the run with its first `depth` documents in a new order and all others after them, as they were.

        `queries` are the run's, in its order, with what an expansion added. Documents are rows of the dataset's corpus.
        """
