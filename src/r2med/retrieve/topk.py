"""Exact top k of a score array, the boundary included: a tie there goes to the higher document id."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt


def top_k(
    scores: npt.NDArray[np.float32], k: int, ranks: npt.NDArray[np.int32]
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.float32]]:
    """Return (rows, scores) of the k best positive scores, in no particular order."""
    place = len(scores) - k
    threshold = np.partition(scores, place)[place] if place > 0 else 0
    if threshold <= 0:  # fewer than k documents share a word with the query
        rows = np.flatnonzero(scores > 0)
    else:
        above = np.flatnonzero(scores > threshold)
        level = np.flatnonzero(scores == threshold)
        if len(above) + len(level) > k:
            level = level[np.argsort(-ranks[level])[: k - len(above)]]
        rows = np.concatenate((above, level))
    return rows.astype(np.int32), scores[rows]
