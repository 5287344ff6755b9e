"""Order candidates by the mean of the scores that an LLM gave them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from r2med.rerank.card_calls import ask_for_scores
from r2med.rerank.judge import JudgeStage, NewOrder, Pool
from r2med.rerank.judge_calls import Asker, Read
from r2med.rerank.parse_scores import MAX_SCORE
from r2med.rerank.reranking import Scores, kept_in_place


class ScoringStage(JudgeStage):
    """An LLM reranker that gives scores to candidates."""

    def by_mean_scores(
        self,
        asker: Asker,
        pools: Sequence[Pool],
        asked: Sequence[tuple[int, list[int], int]],
        read: Read[dict[int, float]],
        weight: float,
    ) -> list[NewOrder]:
        """Return orders by weight · mean score / highest score + (1 - weight) · first-stage score.

        Ties keep their order. Each entry of `asked` is (index of the pool, candidates, sample). A card has its own way
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
        return [_mixed(pool, scores, weight, highest) for pool, scores in zip(pools, means, strict=True)]


def _mixed(pool: Pool, means: Scores, weight: float, highest: float) -> NewOrder:
    """Return the order by mixed scores. Documents that no call scored keep their positions.

    If there are such documents, the order does not follow from scores, so no scores are returned.
    """
    scores = weight * means / highest + (1 - weight) * pool.first
    return kept_in_place(scores), None if np.isnan(scores).any() else scores
