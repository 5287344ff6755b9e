"""Measures of diversity: how well the top of a ranking covers the aspects of the answer to a query.

- `alpha-nDCG@k`: as in ndeval, with α = 0.5. A document gains 0.5 ** n for each of its aspects, where n is the number
  of documents above it with this aspect. The ideal ranking is built greedily, and all aspects have the same weight.
  Equal scores of a run are ordered by id, as by `ndeval -traditional`; ndeval itself orders a run by its ranks.
- `weighted-alpha-nDCG@k`: the same, with each gain multiplied by the weight of the aspect, as in BRIGHT-Pro.
- `A-Recall@k`: the weight of the aspects with a document among the first k, as a share of all weights (BRIGHT-Pro).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt

from r2med.data.dataset import Aspects, QueryAspect
from r2med.data.runs.run import Run
from r2med.evaluation.measure.measures import ASPECT_MEASURES, Measure

ALPHA = 0.5
"""How much a further document of an aspect loses. ndeval and BRIGHT-Pro use this value."""


def aspect_values(
    aspects: Aspects,
    run: Run | Mapping[str, Mapping[str, float]],
    queries: Sequence[str],
    measures: Iterable[Measure] = ASPECT_MEASURES,
) -> dict[Measure, npt.NDArray[np.float64]]:
    """Return the values of queries by measures of aspects. A query without aspects or without a ranking counts 0."""
    answers = [_AnswerAspects.of(aspects.get(query, {})) for query in queries]
    ran = run if isinstance(run, Run) else Run.of(run)
    ranked = dict(zip(ran.queries, ran.id_lists(), strict=True))
    supported = [
        {rank: document for rank, document in enumerate(ranked.get(query, ()), 1) if document in answer.documents}
        for query, answer in zip(queries, answers, strict=True)
    ]
    values = {}
    for measure in measures:
        compute = partial(_COMPUTE[measure.family], measure.cutoff or 0)
        values[measure] = np.array(list(map(compute, answers, supported)), dtype=np.float64)
    return values


@dataclass(frozen=True)
class _AnswerAspects:
    """The aspects of the answer to one query."""

    weights: Mapping[str, float]
    """Aspect -> its weight, as the dataset states it."""
    documents: Mapping[str, Collection[str]]
    """Document -> the aspects that it supports."""

    @classmethod
    def of(cls, aspects: Mapping[str, QueryAspect]) -> _AnswerAspects:
        """Return the answer with these aspects."""
        documents: dict[str, set[str]] = {}
        for name, aspect in aspects.items():
            for document in aspect.documents:
                documents.setdefault(document, set()).add(name)
        return cls({name: aspect.weight for name, aspect in aspects.items()}, documents)

    def dcg(self, ranking: Mapping[int, str], weights: Mapping[str, float]) -> float:
        """Return the discounted gain of a ranking: rank, from 1 -> document, in the order of ranks."""
        left = dict(weights)
        total = 0.0
        for rank, document in ranking.items():
            total += self._gain(document, left) / math.log2(rank + 1)
            self._take(document, left)
        return total

    def ideal(self, weights: Mapping[str, float], cutoff: int) -> dict[int, str]:
        """Return the greedy ideal ranking. Of equal gains the highest id comes first, as in ndeval."""
        left, unused = dict(weights), set(self.documents)
        ranking: dict[int, str] = {}
        for rank in range(1, min(cutoff, len(unused)) + 1):
            best = max(unused, key=lambda document: (self._gain(document, left), document))
            ranking[rank] = best
            unused.remove(best)
            self._take(best, left)
        return ranking

    def _gain(self, document: str, left: Mapping[str, float]) -> float:
        # fsum is exact, so that two documents with the same aspects tie in any order of them.
        return math.fsum(left[aspect] for aspect in self.documents[document])

    def _take(self, document: str, left: dict[str, float]) -> None:
        for aspect in self.documents[document]:
            left[aspect] *= 1 - ALPHA


def _alpha_ndcg(cutoff: int, answer: _AnswerAspects, ranking: Mapping[int, str], weights: Mapping[str, float]) -> float:
    best = answer.dcg(answer.ideal(weights, cutoff), weights)
    return answer.dcg(_first(cutoff, ranking), weights) / best if best else 0.0


def _unweighted(cutoff: int, answer: _AnswerAspects, ranking: Mapping[int, str]) -> float:
    return _alpha_ndcg(cutoff, answer, ranking, dict.fromkeys(answer.weights, 1.0))


def _weighted(cutoff: int, answer: _AnswerAspects, ranking: Mapping[int, str]) -> float:
    return _alpha_ndcg(cutoff, answer, ranking, answer.weights)


def _aspect_recall(cutoff: int, answer: _AnswerAspects, ranking: Mapping[int, str]) -> float:
    found = {aspect for document in _first(cutoff, ranking).values() for aspect in answer.documents[document]}
    total = math.fsum(answer.weights.values())
    return math.fsum(answer.weights[aspect] for aspect in found) / total if total else 0.0


def _first(cutoff: int, ranking: Mapping[int, str]) -> dict[int, str]:
    return {rank: document for rank, document in ranking.items() if rank <= cutoff}


_COMPUTE = {"alpha-nDCG": _unweighted, "weighted-alpha-nDCG": _weighted, "A-Recall": _aspect_recall}
