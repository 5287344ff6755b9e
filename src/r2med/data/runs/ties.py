"""Tie rule: among documents with equal scores, the higher document id comes first, as in trec_eval.

All rankings are cut and sorted by the functions of this module. `ranks` are the ranks of the documents in ascending
order of their ids, as `Corpus.id_ranks` returns them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

TIE_RULE = "document id, descending"
"""Part of the key of every stored search. Keys of records leave it out, as they leave out all defaults.

Change it together with the functions below, and then add it to `System.key`.
"""

SAMPLE_SCORES = 4096
"""Number of scores in the sample that estimates the k-th best.

Partitioning all 60,000 scores takes four times as long.
"""


def best_first(scores: npt.NDArray[Any], ranks: npt.NDArray[np.int32]) -> npt.NDArray[np.int64]:
    """Return the positions of the scores in the order of the ranking."""
    return np.lexsort((-ranks, -scores))


def best(scores: npt.NDArray[np.float32], k: int, ranks: npt.NDArray[np.int32]) -> npt.NDArray[np.int64]:
    """Return the positions of the k best scores, in no particular order."""
    cut = len(scores) - k
    if cut <= 0:
        return np.arange(len(scores))
    positions = np.flatnonzero(scores >= guessed_best(scores, k))
    if len(positions) < k:  # The estimate from the sample was too high.
        positions = np.arange(len(scores))
    shortlist = scores[positions]
    threshold = kth_best(shortlist, k)
    above = positions[shortlist > threshold]
    level = positions[shortlist == threshold]
    if len(above) + len(level) > k:
        level = level[best_first(scores[level], ranks[level])[: k - len(above)]]
    return np.concatenate((above, level))


def kth_best(scores: npt.NDArray[np.float32], k: int) -> float:
    """Return the k-th largest score, or minus infinity if there are fewer."""
    return float(np.partition(scores, len(scores) - k)[len(scores) - k]) if len(scores) >= k else -np.inf


def guessed_best(scores: npt.NDArray[np.float32], k: int) -> npt.NDArray[np.float32]:
    """Return a score that at least k scores of a line very likely reach, estimated from an evenly spaced sample."""
    step = max(1, scores.shape[-1] // SAMPLE_SCORES)
    sample, expected = scores[..., ::step], k / step
    # Three standard deviations above the expected number of the k best in the sample, if they are spread at random.
    place = sample.shape[-1] - int(expected + 3 * np.sqrt(expected) + 3)
    if step < 2 or place < 0:
        return np.full(scores.shape[:-1], -np.inf, np.float32)
    return np.asarray(np.partition(sample, place, axis=-1)[..., place])
