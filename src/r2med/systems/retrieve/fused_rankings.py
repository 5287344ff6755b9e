"""Add up several rankings of a query, for fusions of retrievers and for queries that are searched part by part."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from r2med.data import Corpus
from r2med.data.runs.run import NO_DOCUMENT, Run
from r2med.data.runs.ties import best

Floats = npt.NDArray[np.float64]
FusionMethod = Literal["rrf", "minmax", "zscore", "sum"]

RRF_K = 60
"""Cormack, Clarke and Büttcher (2009) found 60. Larger values flatten the first ranks."""

DEFAULT_DEPTH = 1000
"""Default number of documents used from each search. It is larger if the final ranking needs more."""


def _reciprocal_rank(scores: Floats) -> Floats:
    return 1.0 / (RRF_K + 1 + np.arange(len(scores)))


def _min_max(scores: Floats) -> Floats:
    spread = scores.max() - scores.min()
    return (scores - scores.min()) / spread if spread > 0 else np.ones_like(scores)


def _z_score(scores: Floats) -> Floats:
    # Shifted so that the last found document is worth 0, the same as a document that is not found. With plain z-scores,
    # a document that a part ranks low would be worth less than one that it does not find at all.
    deviation = scores.std()
    z = (scores - scores.mean()) / deviation if deviation > 0 else np.ones_like(scores)
    return np.asarray(z - min(z.min(), 0.0))


def _as_it_is(scores: Floats) -> Floats:
    return scores


METHODS: Mapping[FusionMethod, Callable[[Floats], Floats]] = {
    "rrf": _reciprocal_rank,
    "minmax": _min_max,
    "zscore": _z_score,
    "sum": _as_it_is,
}
"""Ranked scores of one query -> worth of each document. A document that a search did not find is worth 0."""

METHODS_MEANING = (
    "rrf: reciprocal rank. minmax: scores scaled to 0 to 1. zscore: z-scores, shifted so that the last found document "
    "counts 0, like one that is not found. sum: the scores themselves"
)


class WeightedRanking(NamedTuple):
    """One ranking of a query, and how it is added to others. With a negative weight, its documents lose worth."""

    line: int
    """Position of the query."""
    rows: npt.NDArray[np.int32]
    scores: npt.NDArray[np.float32]
    method: FusionMethod
    weight: float


def fuse_rankings(queries: Sequence[str], rankings: Iterable[WeightedRanking], k: int, corpus: Corpus) -> Run:
    """Return the k documents of each query with the highest total worth."""
    worths: list[dict[int, float]] = [{} for _ in queries]
    for line, rows, scores, method, weight in rankings:
        hits = rows[rows != NO_DOCUMENT].tolist()
        if not hits:
            continue
        worth = worths[line]
        amounts = METHODS[method](scores[: len(hits)].astype(np.float64)).tolist()
        for row, amount in zip(hits, amounts, strict=True):
            worth[row] = worth.get(row, 0.0) + weight * amount
    ranks = corpus.id_ranks()
    return Run.ranked(queries, [_best(worth, k, ranks) for worth in worths], corpus)


def _best(
    worth: Mapping[int, float], k: int, ranks: npt.NDArray[np.int32]
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.float32]]:
    rows = np.fromiter(worth, np.int32, len(worth))
    scores = np.fromiter(worth.values(), np.float64, len(worth)).astype(np.float32)
    kept = best(scores, k, ranks[rows])
    return rows[kept], scores[kept]
