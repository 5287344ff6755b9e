"""Listwise reranking: an LLM puts windows of candidates into order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal, Self, assert_never

from pydantic import Field, model_validator

from r2med.systems.rerank.llm_answers import ORDERS
from r2med.systems.rerank.llm_calls import Asker
from r2med.systems.rerank.llm_reranker import LLMRerankerStage, NewOrder, QueryCandidates


class Listwise(LLMRerankerStage):
    """Let an LLM put windows of candidates into order, from the bottom to the top.

    The best documents of a window move up into the next window. If every answer is right, one round puts the best
    `window - step` candidates at the top, in the right order. Each further round does the same for the next `window -
    step` candidates.
    """

    answers: ClassVar[Sequence[str]] = tuple(ORDERS)

    name: str = "listwise"
    window: int = Field(20, ge=2, le=1000, description="number of documents in a window")
    step: int = Field(10, ge=1, le=1000, description="number of documents that the window moves up at a time")
    rounds: int = Field(1, ge=1, le=100, description="number of passes from the bottom to the top")

    @model_validator(mode="after")
    def _leaves_none_out(self) -> Self:
        if self.step > self.window:
            raise ValueError(
                f"step={self.step} with window={self.window} would leave documents out; step must be at most window"
            )
        return self

    @model_validator(mode="after")
    def _fills_a_window(self) -> Self:
        if self.reranker_card.last_window == "none" and self.depth < self.window:
            raise ValueError(
                f"depth {self.depth} with window={self.window} would rerank nothing, because {self.name} shows whole "
                f"windows only; give {self.name}@{self.window} or a smaller window"
            )
        return self

    @property
    def shown_at_once(self) -> int:
        """The size of a window."""
        return self.window

    def questions(self, count: int) -> list[int]:
        """Return the sizes of all windows."""
        path = windows(count, self.window, self.step, self.reranker_card.last_window)
        return [end - start for start, end in path] * self.rounds

    def orders(self, asker: Asker, queries: Sequence[QueryCandidates]) -> list[NewOrder]:
        """Return new orders.

        The windows of one query are asked one after the other. All queries are asked in parallel.
        """
        orders = [list(range(len(candidates))) for candidates in queries]
        last = self.reranker_card.last_window
        paths = [windows(len(candidates), self.window, self.step, last) for candidates in queries]
        for turn in range(max(map(len, paths), default=0) * self.rounds):
            live = [
                (query, *path[turn % len(path)]) for query, path in enumerate(paths) if turn < len(path) * self.rounds
            ]
            answers = asker.orders([queries[query].question(orders[query][start:end]) for query, start, end in live])
            for (query, start, end), order in zip(live, answers, strict=True):
                if order is not None:
                    orders[query][start:end] = [orders[query][start + index] for index in order]
        return [(order, None) for order in orders]


def windows(
    count: int, size: int, step: int, last: Literal["whole", "smaller", "none"] = "whole"
) -> list[tuple[int, int]]:
    """Return the start and end of each window, from the bottom to the top.

    If the steps do not end at the top, the top window has the full size (`whole`), holds only what is left
    (`smaller`), or does not exist (`none`).
    """
    if count < 2:
        return []
    regular = [(start, start + size) for start in range(count - size, -1, -step)]
    if regular and regular[-1][0] == 0:
        return regular
    match last:
        case "whole":
            return [*regular, (0, min(size, count))]
        case "smaller":
            return [*regular, (0, regular[-1][1] - step if regular else min(size, count))]
        case "none":
            return regular
        case other:
            assert_never(other)
