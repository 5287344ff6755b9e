"""The three LLM reranking methods: order windows, score groups, or score each document alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal, Self, assert_never

from pydantic import Field, model_validator

from r2med.foundation.store import digest
from r2med.models.ask.json_in_text import Parsed
from r2med.systems.rerank.card_calls import ask_for_orders
from r2med.systems.rerank.judge import JudgeStage, NewOrder, Pool
from r2med.systems.rerank.judge_calls import Asker, of_text
from r2med.systems.rerank.mean_scores import ScoringStage
from r2med.systems.rerank.parse_order import parse_order
from r2med.systems.rerank.parse_scores import parse_score, parse_scores

LLM_WEIGHT = 0.8
"""Weight of the LLM's score.

With 0.8, the whole range of first-stage scores is worth 2.5 of the LLM's ten points. So the first stage decides between
passages that the LLM scores about equally, but it never lifts a useless passage above a good one.
"""


class Listwise(JudgeStage):
    """Let an LLM put windows of candidates into order, from the bottom to the top.

    The best documents of a window move up into the next window. If every answer is right, one round puts the best
    `window - step` candidates at the top, in the right order. Each further round does the same for the next `window -
    step` candidates.
    """

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
        card = self.reranker_card
        if card is not None and card.last_window == "none" and self.depth < self.window:
            raise ValueError(
                f"depth {self.depth} with window={self.window} would rerank nothing, because {self.name} shows whole "
                f"windows only; give {self.name}@{self.window} or a smaller window"
            )
        return self

    @property
    def shown_at_once(self) -> int:
        """The size of a window."""
        return self.window

    def orders(self, asker: Asker, pools: Sequence[Pool]) -> list[NewOrder]:
        """Return new orders.

        The windows of one query are asked one after the other. All queries are asked in parallel.
        """
        orders = [list(range(len(pool))) for pool in pools]
        card = self.reranker_card
        paths = [self._windows(len(pool)) for pool in pools]
        for turn in range(max(map(len, paths), default=0) * self.rounds):
            live = [
                (query, *path[turn % len(path)]) for query, path in enumerate(paths) if turn < len(path) * self.rounds
            ]
            questions = [pools[query].question(orders[query][start:end]) for query, start, end in live]
            answers = ask_for_orders(asker, questions, card) if card else asker.ask(questions, of_text(parse_order))
            for (query, start, end), order in zip(live, answers, strict=True):
                if order is not None:
                    orders[query][start:end] = [orders[query][start + index] for index in order]
        return [(order, None) for order in orders]

    def questions(self, candidates: int) -> list[int]:
        """Return the size of each window."""
        return [end - start for start, end in self._windows(candidates)] * self.rounds

    def _windows(self, candidates: int) -> list[tuple[int, int]]:
        card = self.reranker_card
        return windows(candidates, self.window, self.step, card.last_window if card else "whole")


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


class Groupwise(ScoringStage):
    """Let an LLM score shuffled groups of candidates, and mix its scores with those of the previous stage."""

    name: str = "groupwise"
    size: int = Field(20, ge=1, le=1000, description="maximum number of documents in a group")
    shuffles: int = Field(
        1, ge=1, le=100, description="number of times that new groups are formed and scored; the scores are averaged"
    )
    weight: float = Field(
        LLM_WEIGHT, ge=0, le=1, description="weight of the LLM's score; the previous stage gets the rest"
    )
    # Random groups are better in the published results: 52.3 against 49.8.
    groups: Literal["random", "sorted"] = Field(
        "random", description="sorted: a group contains neighbours of the current order"
    )
    seed: int = Field(42, ge=0, le=2**63 - 1, description="seed of the shuffles")

    def orders(self, asker: Asker, pools: Sequence[Pool]) -> list[NewOrder]:
        """Return new orders by mean LLM score, mixed with the scores of the previous stage."""
        asked = [
            (query, group, shuffle)
            for query, pool in enumerate(pools)
            if len(pool) > 1
            for shuffle in range(self.shuffles)
            for group in self.dealt(pool, shuffle)
        ]
        return self.by_mean_scores(asker, pools, asked, of_text(parse_scores))

    @property
    def shown_at_once(self) -> int:
        """The size of a group."""
        return self.size

    def dealt(self, pool: Pool, shuffle: int) -> list[list[int]]:
        """Return groups of candidates of nearly equal size, because a document alone has nothing to be compared with.

        A document's position in a shuffle is a hash of the seed, the query and the document. So the shuffle is the same
        on every machine and for every set of queries. It is also the same if another first stage returns the same
        candidates, and the journal then has the answers.
        """
        count = len(pool)
        order = list(range(count))
        if self.groups == "random":
            order.sort(key=lambda index: digest([self.seed, shuffle, pool.text, pool.ids[index]]))
        return [order[start:end] for start, end in self._bounds(count)]

    def questions(self, candidates: int) -> list[int]:
        """Return the size of each group."""
        sizes = [end - start for start, end in self._bounds(candidates)] if candidates > 1 else []
        return sizes * self.shuffles

    def _bounds(self, count: int) -> list[tuple[int, int]]:
        parts = -(-count // self.size)
        return [(part * count // parts, (part + 1) * count // parts) for part in range(parts)]


class Pointwise(ScoringStage):
    """Let an LLM score each candidate alone, and mix its scores with those of the previous stage."""

    prompt_fields: ClassVar[tuple[str, ...] | None] = ("query", "passages")

    name: str = "pointwise"
    samples: int = Field(
        1, ge=1, le=100, description="number of times that each document is scored; the scores are averaged"
    )
    weight: float = Field(
        LLM_WEIGHT, ge=0, le=1, description="weight of the LLM's score; the previous stage gets the rest"
    )

    def orders(self, asker: Asker, pools: Sequence[Pool]) -> list[NewOrder]:
        """Return new orders by mean LLM score, mixed with the scores of the previous stage."""
        asked = [
            (query, [candidate], sample)
            for query, pool in enumerate(pools)
            if len(pool) > 1
            for candidate in range(len(pool))
            for sample in range(self.samples)
        ]
        return self.by_mean_scores(asker, pools, asked, of_text(_parse_alone))

    def questions(self, candidates: int) -> list[int]:
        """Return 1 for each candidate and sample."""
        return [1] * candidates * self.samples if candidates > 1 else []


def _parse_alone(text: str, count: int) -> Parsed[dict[int, float]] | None:
    parsed = parse_score(text)
    return Parsed({0: parsed.value}, parsed.repairs) if parsed else None
