"""Recall of an approximate index: the share of the exact top documents that it finds, on a sample of queries."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from r2med.data.runs.ties import best
from r2med.models.encoders.encoder import Vectors
from r2med.systems.retrieve.exact.text_vectors import Positions, Rows

SAMPLE_QUERIES = 50
SAMPLE_SEED = 13
CUTOFFS = (10, 100, 1000)

Hits = Sequence[tuple[Rows, Vectors]]


def sampled(queries: int) -> Positions:
    """Return the positions of the sampled queries in ascending order. If there are few queries, all are sampled."""
    chosen = np.random.default_rng(SAMPLE_SEED).choice(queries, min(queries, SAMPLE_QUERIES), replace=False)
    return np.sort(chosen).astype(np.int64)


def mean_recall(approximate: Hits, exact: Hits, k: int, ranks: npt.NDArray[np.int32]) -> dict[str, float]:
    """Return for each cutoff up to k the mean share of the exact top documents that the approximate top contains."""
    return {
        f"recall@{cutoff}": float(
            np.mean(
                [
                    len(np.intersect1d(_top(few, cutoff, ranks), wanted := _top(all_of, cutoff, ranks))) / len(wanted)
                    for few, all_of in zip(approximate, exact, strict=True)
                ]
            )
        )
        for cutoff in [each for each in CUTOFFS if each <= k] or [k]
    }


def _top(hits: tuple[Rows, Vectors], cutoff: int, ranks: npt.NDArray[np.int32]) -> Rows:
    rows, scores = hits
    return rows[best(scores, cutoff, ranks[rows])]
