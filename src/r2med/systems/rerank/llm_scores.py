"""Groupwise and pointwise reranking: an LLM scores candidates in groups or alone, and their mean scores decide."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np
from pydantic import Field

from r2med.foundation.store import digest
from r2med.systems.rerank.llm_answers import SCORES
from r2med.systems.rerank.llm_calls import Asker
from r2med.systems.rerank.llm_reranker import LLMRerankerStage, NewOrder, QueryCandidates
from r2med.systems.rerank.reranking import Scores, kept_in_place

LLM_WEIGHT = 0.8
"""Weight of the LLM's score.

With 0.8, the whole range of first-stage scores is worth 2.5 of the LLM's ten points. So the first stage decides between
passages that the LLM scores about equally, but it never lifts a useless passage above a good one.
"""


class ScoringStage(LLMRerankerStage):
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

    def notices(self, queries: Sequence[QueryCandidates]) -> Iterator[str]:
        """Yield a sentence if raw scores of the previous stage cannot be mixed in."""
        if self.first == "raw" and self.weight < 1 and not all(_are_cosines(candidates) for candidates in queries):
            yield "the previous stage's scores are not cosines, so they only order documents with equal LLM scores"

    def by_mean_scores(
        self, asker: Asker, queries: Sequence[QueryCandidates], asked: Sequence[tuple[int, list[int], int]]
    ) -> list[NewOrder]:
        """Return orders by weight · mean score / highest score + (1 - weight) · first-stage score.

        Each entry of `asked` is (index of the query, candidates, sample).
        """
        sums = [np.zeros(len(candidates)) for candidates in queries]
        counts = [np.zeros(len(candidates)) for candidates in queries]
        answers = asker.scores([queries[query].question(group, sample) for query, group, sample in asked])
        for (query, group, _), scores in zip(asked, answers, strict=True):
            for index, score in (scores or {}).items():
                sums[query][group[index]] += score
                counts[query][group[index]] += 1
        with np.errstate(invalid="ignore"):  # The mean is NaN for a candidate that no call scored.
            means = [np.asarray(total / count) for total, count in zip(sums, counts, strict=True)]
        return [self._mixed(candidates, scores) for candidates, scores in zip(queries, means, strict=True)]

    def _mixed(self, candidates: QueryCandidates, means: Scores) -> NewOrder:
        """Return the order by mixed scores. Documents that no call scored keep their positions.

        If there are such documents, the order does not follow from scores, so no scores are returned.
        """
        first = candidates.first
        if self.first == "raw":
            first = candidates.raw if _are_cosines(candidates) else np.zeros(len(candidates))
        scores = self.weight * means / self.reranker_card.highest + (1 - self.weight) * first
        order = kept_in_place(scores, candidates.ids if self.ties == "id" else None)
        return order, None if np.isnan(scores).any() else scores


def _are_cosines(candidates: QueryCandidates) -> bool:
    """Return True if the scores of the previous stage can be cosines. Rounding may lift one slightly above 1."""
    return not len(candidates) or bool(np.abs(candidates.raw).max() <= 1 + 1e-3)


class Groupwise(ScoringStage):
    """Let an LLM score shuffled groups of candidates, and mix its scores with those of the previous stage."""

    answers: ClassVar[Sequence[str]] = ("scores",)

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

    def questions(self, count: int) -> list[int]:
        """Return the sizes of all groups."""
        return [end - start for start, end in self._parts(count)] * self.shuffles if count > 1 else []

    def orders(self, asker: Asker, queries: Sequence[QueryCandidates]) -> list[NewOrder]:
        """Return new orders by mean LLM score, mixed with the scores of the previous stage."""
        asked = [
            (query, group, shuffle)
            for query, candidates in enumerate(queries)
            if len(candidates) > 1
            for shuffle in range(self.shuffles)
            for group in self.dealt(candidates, shuffle)
        ]
        return self.by_mean_scores(asker, queries, asked)

    @property
    def shown_at_once(self) -> int:
        """The size of a group."""
        return self.size

    @property
    def is_shuffled(self) -> bool:
        """True if groups are random."""
        return self.groups == "random"

    def dealt(self, candidates: QueryCandidates, shuffle: int) -> list[list[int]]:
        """Return groups of candidates of nearly equal size, because a document alone has nothing to be compared with.

        A document's position in a shuffle is a hash of the seed, the query and the document. So the shuffle is the same
        on every machine and for every set of queries. It is also the same if another first stage returns the same
        candidates, and the journal then has the answers.
        """
        count = len(candidates)
        order = list(range(count))
        if self.groups == "random":
            order.sort(key=lambda index: digest([self.seed, shuffle, candidates.text, candidates.ids[index]]))
        return [order[start:end] for start, end in self._parts(count)]

    def _parts(self, count: int) -> list[tuple[int, int]]:
        """Return the start and end of each group."""
        parts = -(-count // self.size)
        return [(part * count // parts, (part + 1) * count // parts) for part in range(parts)]


class Pointwise(ScoringStage):
    """Let an LLM score each candidate alone, and mix its scores with those of the previous stage."""

    answers: ClassVar[Sequence[str]] = tuple(kind for kind in SCORES if kind != "scores")

    name: str = "pointwise"
    samples: int = Field(
        1, ge=1, le=100, description="number of times that each document is scored; the scores are averaged"
    )
    weight: float = Field(
        LLM_WEIGHT, ge=0, le=1, description="weight of the LLM's score; the previous stage gets the rest"
    )

    def questions(self, count: int) -> list[int]:
        """Return one passage for each question."""
        return [1] * count * self.samples if count > 1 else []

    def orders(self, asker: Asker, queries: Sequence[QueryCandidates]) -> list[NewOrder]:
        """Return new orders by mean LLM score, mixed with the scores of the previous stage."""
        asked = [
            (query, [candidate], sample)
            for query, candidates in enumerate(queries)
            if len(candidates) > 1
            for candidate in range(len(candidates))
            for sample in range(self.samples)
        ]
        return self.by_mean_scores(asker, queries, asked)
