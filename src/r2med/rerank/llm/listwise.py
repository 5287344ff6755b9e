"""Listwise: windows slide from the bottom of the candidates to the top, and each is put into a new order.

A window's best documents move on with it, as many as two windows share. So after one round the best `window - step`
candidates are at the top in their order, if every answer is right, and after n rounds the best n times that many.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from r2med.errors import UserError
from r2med.rerank.llm.answers import read_permutation
from r2med.rerank.llm.asking import Asker
from r2med.rerank.llm.reranker import Placing, Pool
from r2med.rerank.llm.settings import Settings


@dataclass(frozen=True)
class ListwiseSettings(Settings):
    """Variants of listwise reranking."""

    window: int = 20
    step: int = 10
    """How far the window moves up at a time."""
    rounds: int = 1
    """How often it goes from the bottom to the top."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.at_least(window=2, step=1, rounds=1)
        if self.step > self.window:
            raise UserError(
                f"step={self.step} with window={self.window} would leave documents out: a step is no longer"
            )


def windows(count: int, size: int, step: int) -> list[tuple[int, int]]:
    """Return where windows start and end, from the bottom up; the last is at the top, and whole."""
    if count < 2:
        return []
    starts = [*range(count - size, 0, -step), 0]
    return [(start, min(start + size, count)) for start in starts]


def by_windows(asker: Asker, pools: Sequence[Pool], settings: ListwiseSettings) -> list[Placing]:
    """Return new orders. Windows of a query wait for each other; all queries go forward together."""
    orders = [list(range(len(pool))) for pool in pools]
    ways = [windows(len(pool), settings.window, settings.step) * settings.rounds for pool in pools]
    for turn in range(max(map(len, ways), default=0)):
        live = [(query, *way[turn]) for query, way in enumerate(ways) if turn < len(way)]
        questions = [pools[query].question(orders[query][start:end]) for query, start, end in live]
        for (query, start, end), found in zip(live, asker.ask(questions, read_permutation), strict=True):
            if found is not None:
                orders[query][start:end] = [orders[query][start + place] for place in found]
    return [(order, None) for order in orders]
