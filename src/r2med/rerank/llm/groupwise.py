"""Groupwise: candidates are dealt into groups, and the documents of a group are scored side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from r2med.rerank.llm.answers import read_scores
from r2med.rerank.llm.asking import Asker
from r2med.rerank.llm.mixing import Means, mixed
from r2med.rerank.llm.reranker import Placing, Pool
from r2med.rerank.llm.settings import WEIGHT, Settings
from r2med.store import digest


@dataclass(frozen=True)
class GroupwiseSettings(Settings):
    """Variants of groupwise reranking."""

    size: int = 20
    """Documents in a group at most."""
    shuffles: int = 1
    """How often groups are dealt and scored anew; scores are averaged."""
    weight: float = WEIGHT
    groups: str = "random"
    """sorted: neighbours in the order so far make a group. Published figures have random groups ahead, 52.3 to 49.8."""
    seed: int = 42

    def __post_init__(self) -> None:
        super().__post_init__()
        self.at_least(size=1, shuffles=1)
        self.share("weight")
        self.one_of("groups", "random", "sorted")


def dealt(pool: Pool, settings: GroupwiseSettings, shuffle: int) -> list[list[int]]:
    """Return groups of places, of sizes as equal as can be: one passage alone has nothing to be compared with.

    A document's place in a shuffle is a hash of the seed, the query and the document: the same on every machine,
    whatever other queries there are, and for the same candidates in another order: their answers are found again.
    """
    count = len(pool)
    order = list(range(count))
    if settings.groups == "random":
        order.sort(key=lambda place: digest([settings.seed, shuffle, pool.text, pool.ids[place]]))
    parts = -(-count // settings.size)
    return [order[part * count // parts : (part + 1) * count // parts] for part in range(parts)]


def by_groups(asker: Asker, pools: Sequence[Pool], settings: GroupwiseSettings) -> list[Placing]:
    """Return new orders by mean scores, mixed with those of the stage before."""
    asked = [
        (query, places, shuffle)
        for query, pool in enumerate(pools)
        if len(pool) > 1
        for shuffle in range(settings.shuffles)
        for places in dealt(pool, settings, shuffle)
    ]
    means = Means(pools)
    questions = [pools[query].question(places, sample=shuffle) for query, places, shuffle in asked]
    for (query, places, _), found in zip(asked, asker.ask(questions, read_scores), strict=True):
        for number, score in (found or {}).items():
            means.add(query, places[number], score)
    return [mixed(pool, scores, settings.weight) for pool, scores in zip(pools, means.scores(), strict=True)]
