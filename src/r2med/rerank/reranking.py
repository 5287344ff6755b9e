"""What a reranker is, and what it returns: the same documents, the top of them in a new order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from r2med.cost import Cost
from r2med.data.dataset import Dataset
from r2med.retrieve.retriever import SearchQuery
from r2med.retrieve.run import Run
from r2med.store import Store


@dataclass(frozen=True)
class Reranked:
    """A run in its new order, and what that took."""

    run: Run
    cost: Cost = field(default_factory=Cost)
    failures: int = 0
    """Calls that brought no order: their documents stay where the stage before had them."""
    failure_kinds: dict[str, int] = field(default_factory=dict)
    repairs: dict[str, int] = field(default_factory=dict)
    """What had to be mended in answers that could still be used, by kind: missing, repeated, invented, …"""
    notices: tuple[str, ...] = ()


class Reranker(Protocol):
    """Anything that puts candidates into a better order.

    One that asks an LLM has two methods more: `check(datasets)`, which raises UserError for what would stop it on one
    of them, and `preview(dataset, store)`, which returns what it would ask. Neither asks anything.
    """

    @property
    def name(self) -> str:
        """What one types to get it, its depth included; settings at their defaults are left out."""

    @property
    def depth(self) -> int:
        """How many candidates of each query it looks at."""

    def describe(self, dataset: Dataset) -> dict[str, Any]:
        """Return every setting a score depends on; it goes into keys and records. Nothing is asked or loaded."""

    def rerank(self, dataset: Dataset, queries: Sequence[SearchQuery], run: Run, store: Store) -> Reranked:
        """Return the run with its first `depth` documents in a new order and all others after them, as they were.

        `queries` are the run's, in its order, with what an expansion added. Documents are rows of the dataset's corpus.
        """
