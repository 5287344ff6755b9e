"""Exact top k of an array of scores, the boundary included: a tie there goes to the higher document id."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt


def best(scores: npt.NDArray[np.float32], k: int, ranks: npt.NDArray[np.int32]) -> npt.NDArray[np.int64]:
    """Return the positions of the k best scores, in no particular order."""
    cut = len(scores) - k
    if cut <= 0:
        return np.arange(len(scores))
    threshold = np.partition(scores, cut)[cut]
    above = np.flatnonzero(scores > threshold)
    level = np.flatnonzero(scores == threshold)
    if len(above) + len(level) > k:
        level = level[np.argsort(-ranks[level])[: k - len(above)]]
    return np.concatenate((above, level))


def best_positive(
    scores: npt.NDArray[np.float32], k: int, ranks: npt.NDArray[np.int32]
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.float32]]:
    """Return (rows, scores) of the k best scores above 0: the documents that share a word with the query."""
    rows: npt.NDArray[Any] = best(scores, k, ranks)
    rows = rows[scores[rows] > 0]
    return rows.astype(np.int32), scores[rows]
