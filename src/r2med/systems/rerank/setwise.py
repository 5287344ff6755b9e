"""Setwise reranking: an LLM picks the best passage of a set, and a heap of such sets brings the best ones up."""

from __future__ import annotations

import random
from collections.abc import Callable, Generator, Sequence
from typing import ClassVar, Literal

from pydantic import Field

from r2med.foundation.store import digest
from r2med.systems.rerank.llm_calls import NO_LABEL, Asker
from r2med.systems.rerank.llm_reranker import LLMRerankerStage, NewOrder, QueryCandidates

Sorting = Generator[list[int], int, list[int]]
"""Yields sets of candidates, is sent the index of the best one in the set, and returns the new order."""


class Setwise(LLMRerankerStage):
    """Let an LLM pick the best passage of a set, and sort the candidates by a heap of such sets."""

    answers: ClassVar[Sequence[str]] = ("label",)

    name: str = "setwise"
    children: int = Field(3, ge=1, le=99, description="passages that are compared with one other: the set has one more")
    top: int = Field(10, ge=1, le=1000, description="passages that are put into order; the others keep theirs")
    order: Literal["random", "heap"] = Field(
        "random", description="order in which a set is shown: random, or heap: the parent first, then its children"
    )
    seed: int = Field(42, ge=0, le=2**63 - 1, description="seed of the random order in which a set is shown")

    @property
    def shown_at_once(self) -> int:
        """The size of a set."""
        return self.children + 1

    @property
    def is_shuffled(self) -> bool:
        """True if the order of a set is random."""
        return self.order == "random"

    def questions(self, count: int) -> list[int]:
        """Return the sizes of the sets that are compared if the previous stage has no part in the order."""
        worth = random.Random(3).sample(range(count), count)
        return self._set_sizes(count, lambda members: members.index(max(members, key=worth.__getitem__)))

    def most_questions(self, count: int) -> list[int]:
        """Return them if every comparison goes down to the bottom of the heap: the first child is always the best."""
        return self._set_sizes(count, lambda members: 1)

    def _set_sizes(self, count: int, winner: Callable[[list[int]], int]) -> list[int]:
        """Return the sizes of the sets that are compared if `winner` chooses the place of the best one."""
        sorting, sizes = heapsort(count, self.children, self.top), []
        try:
            members = next(sorting)
            while True:
                sizes.append(len(members))
                members = sorting.send(winner(members))
        except StopIteration:
            return sizes

    def orders(self, asker: Asker, queries: Sequence[QueryCandidates]) -> list[NewOrder]:
        """Return new orders. The comparisons of a query wait for each other; all queries go forward together."""
        orders: list[list[int]] = [list(range(len(candidates))) for candidates in queries]
        sorting = {number: heapsort(len(each), self.children, self.top) for number, each in enumerate(queries)}
        waiting: dict[int, int | None] = dict.fromkeys(sorting)
        while waiting:
            compared: dict[int, list[int]] = {}
            for number, winner in waiting.items():
                try:
                    step = sorting[number]
                    compared[number] = next(step) if winner is None else step.send(winner)
                except StopIteration as done:
                    orders[number] = done.value
            shown = {number: self._shuffled(queries[number], members) for number, members in compared.items()}
            answers = asker.labels([queries[number].question(members) for number, members in shown.items()])
            waiting = {
                number: _winner(compared[number], shown[number], best)
                for number, best in zip(shown, answers, strict=True)
            }
        return [(order, None) for order in orders]

    def _shuffled(self, candidates: QueryCandidates, members: Sequence[int]) -> list[int]:
        """Return a set in the order in which it is shown. A random one depends on its passages only."""
        if self.order == "heap":
            return list(members)
        ids = sorted(candidates.ids[index] for index in members)
        return sorted(members, key=lambda index: digest([self.seed, candidates.text, ids, candidates.ids[index]]))


def _winner(compared: Sequence[int], shown: Sequence[int], best: int | None) -> int:
    """Return the place of the best passage of a set.

    If an answer names none, it is the parent, the first one, as in the authors' code. If there is no answer, it is the
    passage that the previous stage ranks best, so that failed calls change no order.
    """
    if best is None:
        return compared.index(min(compared))
    return 0 if best == NO_LABEL else compared.index(shown[best])


def heapsort(count: int, children: int, top: int) -> Sorting:
    """Sort the best `top` of `count` candidates with a heap in which a node has many children."""
    heap = list(range(count))

    def sift(node: int, size: int) -> Generator[list[int], int, None]:
        while (first := children * node + 1) < size:
            places = [node, *range(first, min(first + children, size))]
            best = places[(yield [heap[place] for place in places])]
            if best == node:
                return
            heap[node], heap[best] = heap[best], heap[node]
            node = best

    for node in range(count // children, -1, -1):
        yield from sift(node, count)
    best = []
    for size in range(count, max(0, count - top), -1):
        best.append(heap[0])
        heap[0] = heap[size - 1]
        if len(best) < min(top, count):
            yield from sift(0, size - 1)
    chosen = set(best)
    return [*best, *(index for index in range(count) if index not in chosen)]
