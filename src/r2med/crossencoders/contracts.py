"""What scores pairs: a query and a document in, a score out, and every setting it depends on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

Pair = tuple[str, str]
"""A query and a document."""


class Scored(NamedTuple):
    """A pair's score, and what it took."""

    score: float
    tokens: int = 0
    truncated: bool = False
    """Whether the document, or even the query, was cut at the model's limit."""
    seconds: float = 0.0
    """This pair's share of the time that was spent on those scored with it."""


class PairScorer(Protocol):
    """A model that knows the dataset's instruction words; its weights are loaded with the first pair."""

    def describe(self) -> dict[str, Any]:
        """Return all that a score depends on besides the two texts; it is part of a key."""

    def score(self, pairs: Sequence[Pair]) -> list[Scored]:
        """Return one finite score per pair, in their order; raises NotFiniteError with the place of one that is not."""
