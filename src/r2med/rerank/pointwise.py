"""Pointwise: every document is scored by a rubric in a call of its own, several times if one likes."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import Field

from r2med.rerank.judge import WEIGHT, Asker, JudgeStage, MeanScores, NewOrder, Pool
from r2med.rerank.parse_scores import parse_score


class Pointwise(JudgeStage):
    """Let an LLM score each candidate alone, and mix its scores with those of the stage before."""

    name: str = "pointwise"
    samples: int = Field(1, ge=1, le=100, description="how often each document is scored, and averaged")
    weight: float = Field(WEIGHT, ge=0, le=1, description="what the LLM's opinion counts against the stage before")

    def orders(self, asker: Asker, pools: Sequence[Pool]) -> list[NewOrder]:
        """Return new orders by mean scores, mixed with those of the stage before."""
        asked = [
            (query, candidate, sample)
            for query, pool in enumerate(pools)
            if len(pool) > 1
            for candidate in range(len(pool))
            for sample in range(self.samples)
        ]
        means = MeanScores(pools)
        questions = [pools[query].question([candidate], sample) for query, candidate, sample in asked]
        for (query, candidate, _), score in zip(asked, asker.ask(questions, parse_score), strict=True):
            if score is not None:
                means.add(query, candidate, score)
        return means.orders(self.weight)
