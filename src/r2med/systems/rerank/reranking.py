"""What a reranker returns: the same documents with the top of each ranking in a new order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from r2med.data.runs.run import NO_DOCUMENT, Run
from r2med.data.runs.ties import best_first
from r2med.foundation.core.cost import Cost
from r2med.systems.retrieve.retriever import SearchQuery


@dataclass(frozen=True)
class Reranked:
    """A run in its new order, with its costs, failures and repairs."""

    run: Run
    """The run in its new order."""
    cost: Cost = field(default_factory=Cost)
    """The cost of reranking."""
    failures: int = 0
    """Number of questions without a usable order. Their documents keep the positions of the previous stage."""
    asked: int = 0
    """Number of questions, each about one document or one list. A question may take several calls."""
    failure_kinds: dict[str, int] = field(default_factory=dict)
    """Kind of failure -> number of calls."""
    failed: dict[str, str] = field(default_factory=dict)
    """Query id -> text that says how many of its calls failed, by kind."""
    repairs: dict[str, int] = field(default_factory=dict)
    """Number of repairs in answers that could still be used, by kind: missing, repeated, invented, …"""
    notices: tuple[str, ...] = ()
    """Remarks for the user, one sentence each."""
    prompt: str = ""
    """The prompt that an LLM reranker read, if its authors publish another: ours, or that of a set."""


Rows = npt.NDArray[np.int32]
Scores = npt.NDArray[np.float64]

MAX_EXACT_SCORE = float(1 << 23)
"""Largest whole number whose neighbours are still distinct in single precision."""


def candidates(run: Run, depth: int) -> list[Rows]:
    """Return the rows of each query's first documents, the best first."""
    return [line[line != NO_DOCUMENT][:depth] for line in run.rows]


def reranked(run: Run, depth: int, scores: Sequence[Scores]) -> Run:
    """Return a run whose first documents are ordered by new scores, one per candidate.

    Ties are ordered by document id.
    """
    ranks = run.documents.id_ranks()
    lines = []
    for rows, new in zip(candidates(run, depth), scores, strict=True):
        single = new.astype(np.float32)
        order = best_first(single, ranks[rows])
        lines.append((rows[order], single[order]))
    return _joined(run, lines)


def ordered(run: Run, orders: Sequence[Sequence[int]], scores: Sequence[Scores | None], depth: int) -> Run:
    """Return a run whose first documents have a new order, given as indices of candidates.

    `scores` has the scores that the order comes from, one per candidate. If it is None, the scores decrease by one per
    rank. Equal scores are made slightly different. Otherwise a program that reads the run would order these documents
    by id.
    """
    lines = []
    for rows, order, new in zip(candidates(run, depth), orders, scores, strict=True):
        indices = np.asarray(order, dtype=np.int64)
        falling = np.arange(len(rows), 0, -1) if new is None else new[indices]
        lines.append((rows[indices], _apart(falling.astype(np.float32))))
    return _joined(run, lines)


def kept_in_place(scores: Scores, ids: Sequence[str] | None = None) -> list[int]:
    """Return the order of candidates by score. Candidates without a score (NaN) keep their positions.

    A failed call does not say that its documents are good or bad. Ties keep the order of the previous stage. With
    `ids`, they are ordered by document id, descending, as trec_eval orders them.
    """
    known = np.flatnonzero(~np.isnan(scores))
    order = np.arange(len(scores))
    by_id = known
    if ids is not None:
        by_id = np.array(sorted(known.tolist(), key=lambda index: ids[index], reverse=True), dtype=np.int64)
    order[known] = by_id[np.argsort(-scores[by_id], kind="stable")]
    return [int(index) for index in order]


def query_text(asked: SearchQuery, which: str) -> str:
    """Return the text that a reranker compares with documents: the query, or the query with its generated text."""
    if which == "expanded" and asked.generated:
        return "\n\n".join([asked.query.text, *asked.generated])
    return asked.query.text


def _apart(scores: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Return strictly decreasing scores, each as near as possible to its old value."""
    apart = scores.copy()
    for index in range(1, len(apart)):
        apart[index] = min(apart[index], np.nextafter(apart[index - 1], np.float32(-np.inf)))
    return apart


def _joined(run: Run, heads: Sequence[tuple[Rows, npt.NDArray[np.float32]]]) -> Run:
    """Return the run with a new head for each ranking. The other documents keep their order and get lower scores."""
    rows = np.array(run.rows)
    scores = np.zeros(run.rows.shape, dtype=np.float32)
    for line, (head, new) in enumerate(heads):
        size, count = len(head), int(np.count_nonzero(run.rows[line] != NO_DOCUMENT))
        rows[line, :size] = head
        scores[line, :count] = _falling(new, count)
    return Run(run.queries, rows, scores, run.documents)


def _falling(head: npt.NDArray[np.float32], count: int) -> npt.NDArray[np.float32]:
    """Return scores for a whole ranking: first the head's scores, then whole numbers below its last score."""
    tail = count - len(head)
    last = float(np.floor(head[-1])) if len(head) else 0.0
    if tail and not abs(last) + tail < MAX_EXACT_SCORE:
        # The scores are too large to count down from. So only the order is kept, with the ties of the head already
        # broken.
        return np.arange(count, 0, -1, dtype=np.float32)
    return np.concatenate([head, last - np.arange(1, tail + 1)]).astype(np.float32)
