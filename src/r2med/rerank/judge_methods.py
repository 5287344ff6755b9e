"""The three ways to ask an LLM about candidates: windows to be ordered, groups to be scored, each document alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from r2med.ask.json_in_text import Parsed
from r2med.rerank.judge import Asker, JudgeStage, NewOrder, Pool
from r2med.rerank.parse_order import parse_order
from r2med.rerank.parse_scores import HIGHEST, parse_score, parse_scores
from r2med.rerank.reranking import Scores, kept_in_place
from r2med.store import digest

WEIGHT = 0.8
"""What the LLM's opinion counts. From its best to its worst candidate the first stage is then worth 2.5 points of
ten: it decides between passages that the LLM finds about as good, and never lifts a useless one over a good one.
"""


class Listwise(JudgeStage):
    """Let an LLM put windows of candidates into order, from the bottom to the top.

    A window's best documents move on with it, as many as two windows share. So after one round the best `window - step`
    candidates are at the top in their order, if every answer is right, and after n rounds the best n times that many.
    """

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
        return _by_mean_scores(asker, pools, asked, parse_scores, self.weight)

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


class Pointwise(JudgeStage):
    """Let an LLM score each candidate alone, and mix its scores with those of the stage before."""

    prompt_fields: ClassVar[tuple[str, ...] | None] = ("query", "passages")

    name: str = "pointwise"
    samples: int = Field(1, ge=1, le=100, description="how often each document is scored, and averaged")
    weight: float = Field(WEIGHT, ge=0, le=1, description="what the LLM's opinion counts against the stage before")

    def orders(self, asker: Asker, pools: Sequence[Pool]) -> list[NewOrder]:
        """Return new orders by mean scores, mixed with those of the stage before."""
        asked = [
            (query, [candidate], sample)
            for query, pool in enumerate(pools)
            if len(pool) > 1
            for candidate in range(len(pool))
            for sample in range(self.samples)
        ]
        return _by_mean_scores(asker, pools, asked, _parse_alone, self.weight)


def _parse_alone(text: str, count: int) -> Parsed[dict[int, float]] | None:
    parsed = parse_score(text)
    return Parsed({0: parsed.value}, parsed.repairs) if parsed else None


def _by_mean_scores(
    asker: Asker,
    pools: Sequence[Pool],
    asked: Sequence[tuple[int, list[int], int]],
    parse: Callable[[str, int], Parsed[dict[int, float]] | None],
    weight: float,
) -> list[NewOrder]:
    """Return the orders by weight · mean score / 10 + (1 - weight) · first stage; ties stay as they were.

    `asked` are (number of the pool, candidates, sample).
    """
    sums = [np.zeros(len(pool)) for pool in pools]
    counts = [np.zeros(len(pool)) for pool in pools]
    questions = [pools[query].question(group, sample) for query, group, sample in asked]
    for (query, group, _), scores in zip(asked, asker.ask(questions, parse), strict=True):
        for index, score in (scores or {}).items():
            sums[query][group[index]] += score
            counts[query][group[index]] += 1
    with np.errstate(invalid="ignore"):  # NaN for a candidate that no call scored
        means = [np.asarray(total / count) for total, count in zip(sums, counts, strict=True)]
    return [_mixed(pool, scores, weight) for pool, scores in zip(pools, means, strict=True)]


def _mixed(pool: Pool, means: Scores, weight: float) -> NewOrder:
    """Return the order by mixed scores, in which documents that no call scored keep their places.

    Where there are such documents, the places they keep have nothing to do with scores: then the order is all there is.
    """
    scores = weight * means / HIGHEST + (1 - weight) * pool.first
    return kept_in_place(scores), None if np.isnan(scores).any() else scores
