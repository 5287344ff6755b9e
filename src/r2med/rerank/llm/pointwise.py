"""Pointwise: every document is scored by a rubric in a call of its own, several times if one likes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from r2med.rerank.llm.answers import read_score
from r2med.rerank.llm.asking import Asker
from r2med.rerank.llm.mixing import Means, mixed
from r2med.rerank.llm.reranker import Placing, Pool
from r2med.rerank.llm.settings import WEIGHT, Settings


@dataclass(frozen=True)
class PointwiseSettings(Settings):
    """Variants of pointwise reranking."""

    samples: int = 1
    """How often each document is scored; scores are averaged."""
    weight: float = WEIGHT

    def __post_init__(self) -> None:
        super().__post_init__()
        self.at_least(samples=1)
        self.share("weight")


def by_points(asker: Asker, pools: Sequence[Pool], settings: PointwiseSettings) -> list[Placing]:
    """Return new orders by mean scores, mixed with those of the stage before."""
    asked = [
        (query, place, sample)
        for query, pool in enumerate(pools)
        if len(pool) > 1
        for place in range(len(pool))
        for sample in range(settings.samples)
    ]
    means = Means(pools)
    questions = [pools[query].question([place], sample) for query, place, sample in asked]
    for (query, place, _), found in zip(asked, asker.ask(questions, read_score), strict=True):
        if found is not None:
            means.add(query, place, found)
    return [mixed(pool, scores, settings.weight) for pool, scores in zip(pools, means.scores(), strict=True)]
