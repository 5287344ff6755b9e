"""Listwise: windows slide from the bottom of the candidates to the top, and each is put into a new order.

A window's best documents move on with it, as many as two windows share. So after one round the best `window - step`
candidates are at the top in their order, if every answer is right, and after n rounds the best n times that many.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from pydantic import Field, model_validator

from r2med.rerank.judge import Asker, JudgeStage, NewOrder, Pool
from r2med.rerank.parse_order import parse_order


class Listwise(JudgeStage):
    """Let an LLM put windows of candidates into order, from the bottom to the top."""

    name: str = "listwise"
    window: int = Field(20, ge=2, le=1000, description="documents in a window")
    step: int = Field(10, ge=1, le=1000, description="how far the window moves up at a time")
    rounds: int = Field(1, ge=1, le=100, description="how often it goes from the bottom to the top")

    @model_validator(mode="after")
    def _leaves_none_out(self) -> Self:
        if self.step > self.window:
            raise ValueError(
                f"step={self.step} with window={self.window} would leave documents out: a step is no longer"
            )
        return self

    def orders(self, asker: Asker, pools: Sequence[Pool]) -> list[NewOrder]:
        """Return new orders. Windows of a query wait for each other; all queries go forward together."""
        orders = [list(range(len(pool))) for pool in pools]
        paths = [windows(len(pool), self.window, self.step) for pool in pools]
        for turn in range(max(map(len, paths), default=0) * self.rounds):
            live = [
                (query, *path[turn % len(path)]) for query, path in enumerate(paths) if turn < len(path) * self.rounds
            ]
            questions = [pools[query].question(orders[query][start:end]) for query, start, end in live]
            for (query, start, end), order in zip(live, asker.ask(questions, parse_order), strict=True):
                if order is not None:
                    orders[query][start:end] = [orders[query][start + index] for index in order]
        return [(order, None) for order in orders]


def windows(count: int, size: int, step: int) -> list[tuple[int, int]]:
    """Return where windows start and end, from the bottom up; the last is at the top, and whole."""
    if count < 2:
        return []
    starts = [*range(count - size, 0, -step), 0]
    return [(start, min(start + size, count)) for start in starts]
