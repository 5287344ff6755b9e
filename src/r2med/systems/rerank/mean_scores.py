"""Order candidates by the mean of the scores that an LLM gave them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np
from pydantic import Field

from r2med.systems.rerank.card_calls import ask_for_scores
from r2med.systems.rerank.judge import JudgeStage, NewOrder, Pool
from r2med.systems.rerank.judge_calls import Asker, Read
from r2med.systems.rerank.parse_scores import MAX_SCORE
from r2med.systems.rerank.reranking import Scores, kept_in_place


class ScoringStage(JudgeStage):
    """An LLM reranker that gives scores to candidates."""

    if TYPE_CHECKING:
        weight: float  # Each method declares it, after the settings that come before it in the names of records.
    first: Literal["scaled", "raw"] = Field(
        "scaled",
        description="scores of the previous stage: scaled to 0 to 1, or raw, which needs cosines: other scores then "
        "only order documents with equal LLM scores",
    )
    ties: Literal["first", "id"] = Field(
        "first",
        description="order of equal scores: first: that of the previous stage; id: by document id, as in trec_eval",
    )

    def notices(self, pools: Sequence[Pool]) -> Iterator[str]:
        """Yield a sentence if raw scores of the previous stage cannot be mixed in."""
        if self.first == "raw" and self.weight < 1 and not all(_are_cosines(pool) for pool in pools):
            yield "the previous stage's scores are not cosines, so they only order documents with equal LLM scores"

    def by_mean_scores(
        self,
        asker: Asker,
        pools: Sequence[Pool],
        asked: Sequence[tuple[int, list[int], int]],
        read: Read[dict[int, float]],
    ) -> list[NewOrder]:
        """Return orders by weight · mean score / highest score + (1 - weight) · first-stage score.

        Each entry of `asked` is (index of the pool, candidates, sample). A card has its own way
        to read scores.
        """
        sums = [np.zeros(len(pool)) for pool in pools]
        counts = [np.zeros(len(pool)) for pool in pools]
        questions = [pools[query].question(group, sample) for query, group, sample in asked]
        card = self.reranker_card
        answers = ask_for_scores(asker, questions, card) if card else asker.ask(questions, read)
        for (query, group, _), scores in zip(asked, answers, strict=True):
            for index, score in (scores or {}).items():
                sums[query][group[index]] += score
                counts[query][group[index]] += 1
        with np.errstate(invalid="ignore"):  # The mean is NaN for a candidate that no call scored.
            means = [np.asarray(total / count) for total, count in zip(sums, counts, strict=True)]
        highest = card.highest if card else MAX_SCORE
        return [self._mixed(pool, scores, highest) for pool, scores in zip(pools, means, strict=True)]

    def _mixed(self, pool: Pool, means: Scores, highest: float) -> NewOrder:
        """Return the order by mixed scores. Documents that no call scored keep their positions.

        If there are such documents, the order does not follow from scores, so no scores are returned.
        """
        first = pool.first
        if self.first == "raw":
            first = pool.raw if _are_cosines(pool) else np.zeros(len(pool))
        scores = self.weight * means / highest + (1 - self.weight) * first
        order = kept_in_place(scores, pool.ids if self.ties == "id" else None)
        return order, None if np.isnan(scores).any() else scores


def _are_cosines(pool: Pool) -> bool:
    """Return True if the scores of the previous stage can be cosines. Rounding may lift one slightly above 1."""
    return not len(pool) or bool(np.abs(pool.raw).max() <= 1 + 1e-3)
