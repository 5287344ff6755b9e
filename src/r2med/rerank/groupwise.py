"""Groupwise: candidates are dealt into groups, and the documents of a group are scored side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pydantic import Field

from r2med.rerank.judge import WEIGHT, Asker, JudgeStage, MeanScores, NewOrder, Pool
from r2med.rerank.parse_scores import parse_scores
from r2med.store import digest


class Groupwise(JudgeStage):
    """Let an LLM score shuffled groups of candidates, and mix its scores with those of the stage before."""

    name: str = "groupwise"
    size: int = Field(20, ge=1, le=1000, description="documents in a group at most")
    shuffles: int = Field(1, ge=1, le=100, description="how often groups are dealt and scored anew, and averaged")
    weight: float = Field(WEIGHT, ge=0, le=1, description="what the LLM's opinion counts against the stage before")
    # Published figures have random groups ahead, 52.3 to 49.8.
    groups: Literal["random", "sorted"] = Field(
        "random", description="sorted: neighbours in the order so far make a group"
    )
    seed: int = Field(42, ge=0, le=2**63 - 1, description="of the shuffles")

    def orders(self, asker: Asker, pools: Sequence[Pool]) -> list[NewOrder]:
        """Return new orders by mean scores, mixed with those of the stage before."""
        asked = [
            (query, group, shuffle)
            for query, pool in enumerate(pools)
            if len(pool) > 1
            for shuffle in range(self.shuffles)
            for group in self.dealt(pool, shuffle)
        ]
        means = MeanScores(pools)
        questions = [pools[query].question(group, sample=shuffle) for query, group, shuffle in asked]
        for (query, group, _), scores in zip(asked, asker.ask(questions, parse_scores), strict=True):
            for index, score in (scores or {}).items():
                means.add(query, group[index], score)
        return means.orders(self.weight)

    def dealt(self, pool: Pool, shuffle: int) -> list[list[int]]:
        """Return groups of candidates, of sizes as equal as can be: one alone has nothing to be compared with.

        A document's place in a shuffle is a hash of the seed, the query and the document: the same on every machine,
        whatever other queries there are, and for the same candidates in another order: their answers are found again.
        """
        count = len(pool)
        order = list(range(count))
        if self.groups == "random":
            order.sort(key=lambda index: digest([self.seed, shuffle, pool.text, pool.ids[index]]))
        parts = -(-count // self.size)
        return [order[part * count // parts : (part + 1) * count // parts] for part in range(parts)]
