"""An LLM's scores mixed with those of the stage before: weight · LLM / 10 + (1 - weight) · first stage."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from r2med.rerank.llm.answers import HIGHEST
from r2med.rerank.llm.reranker import Placing, Pool
from r2med.rerank.order import Scores, kept_in_place


class Means:
    """The mean of all scores that each candidate of each query got; NaN for one that got none."""

    def __init__(self, pools: Sequence[Pool]) -> None:
        self._sums = [np.zeros(len(pool)) for pool in pools]
        self._counts = [np.zeros(len(pool)) for pool in pools]

    def add(self, query: int, place: int, score: float) -> None:
        """Take in one score of one candidate."""
        self._sums[query][place] += score
        self._counts[query][place] += 1

    def scores(self) -> list[Scores]:
        """Return the means, query by query."""
        with np.errstate(invalid="ignore"):
            return [np.asarray(total / count) for total, count in zip(self._sums, self._counts, strict=True)]


def mixed(pool: Pool, means: Scores, weight: float) -> Placing:
    """Return the order by mixed scores; ties stay as they were, and so do documents that no call scored.

    Where there are such documents, the places they keep have nothing to do with scores: then the order is all there is.
    """
    scores = weight * means / HIGHEST + (1 - weight) * pool.first
    return kept_in_place(scores), None if np.isnan(scores).any() else scores
