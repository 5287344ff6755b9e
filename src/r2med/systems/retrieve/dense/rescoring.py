"""Rank documents that something cheaper proposed by the scores of exact search."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from r2med.foundation.engine import cores, map_threads
from r2med.models.encoders.encoder import Vectors
from r2med.systems.retrieve.dense.exact_scores import Block, Exact, ExactScorer, Rows
from r2med.systems.retrieve.ties import best

HELD_BYTES = 1 << 28
"""Vectors that are no mapped files and are held at a time."""


def score_proposed(
    queries: Vectors,
    blocks: Iterable[Block],
    proposed: Sequence[Rows],
    k: int,
    ranks: npt.NDArray[np.int32],
    *,
    cosine: bool,
) -> list[tuple[Rows, Vectors]]:
    """Return the k best (rows, exact scores) of the rows proposed for each query, in no particular order."""
    if not proposed:
        return []
    scorer = ExactScorer(np.ascontiguousarray(queries, np.float32), cosine)
    lines = np.repeat(np.arange(len(proposed)), [len(rows) for rows in proposed])
    rows = np.concatenate(proposed).astype(np.int32)
    scores, start, end = np.empty(len(rows)), 0, 0

    def score_held() -> None:
        held = np.flatnonzero((rows >= start) & (rows < end))
        parts = np.array_split(held, cores())
        for part, found in zip(parts, map_threads(lambda each: _scored(scorer, lines, rows, each), parts), strict=True):
            scores[part] = found
        scorer.release()

    for first, block in blocks:
        scorer.hold(first, block)
        end = first + len(block)
        if scorer.held_bytes > HELD_BYTES:
            score_held()
            start = end
    score_held()
    ends = np.cumsum([len(each) for each in proposed])[:-1]
    hits = zip(proposed, np.split(scores.astype(np.float32), ends), strict=True)
    return [(each[kept], of[kept]) for each, of in hits for kept in [best(of, k, ranks[each])]]


def _scored(scorer: ExactScorer, lines: npt.NDArray[np.int64], rows: Rows, part: npt.NDArray[np.int64]) -> Exact:
    return scorer.score(lines[part], rows[part])
