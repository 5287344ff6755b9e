"""What a reranker is, and what it returns: the same documents, the top of them in a new order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from r2med.core.cost import Cost
from r2med.data.dataset import Dataset
from r2med.retrieve.retriever import SearchQuery
from r2med.retrieve.run import NO_DOCUMENT, Run
from r2med.retrieve.ties import best_first
from r2med.store import Store


@dataclass(frozen=True)
class Reranked:
    """A run in its new order, and what that took."""

    run: Run
    cost: Cost = field(default_factory=Cost)
    failures: int = 0
    """Calls that brought no order: their documents stay where the stage before had them."""
    failure_kinds: dict[str, int] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    """Query id -> how many of its calls failed, by kind, in words."""
    repairs: dict[str, int] = field(default_factory=dict)
    """What had to be mended in answers that could still be used, by kind: missing, repeated, invented, …"""
    notices: tuple[str, ...] = ()


class Reranker(Protocol):
    """Anything that puts candidates into a better order.

    One that asks an LLM has two methods more: `check(datasets)`, which raises UserError for what would stop it on one
    of them, and `preview(dataset, store)`, which returns what it would ask. Neither asks anything.
    """

    @property
    def name(self) -> str:
        """What one types to get it, its depth included; settings at their defaults are left out."""

    @property
    def depth(self) -> int:
        """How many candidates of each query it looks at."""

    def describe(self, dataset: Dataset) -> dict[str, Any]:
        """Return every setting a score depends on; it goes into keys and records. Nothing is asked or loaded."""

    def rerank(self, dataset: Dataset, queries: Sequence[SearchQuery], run: Run, store: Store) -> Reranked:
        """Return the run with its first `depth` documents in a new order and all others after them, as they were.

        `queries` are the run's, in its order, with what an expansion added. Documents are rows of the dataset's corpus.
        """


Rows = npt.NDArray[np.int32]
Scores = npt.NDArray[np.float64]

LARGEST = float(1 << 23)
"""Whole numbers up to here, and their neighbours, are apart in single precision."""


def candidates(run: Run, depth: int) -> list[Rows]:
    """Return the rows of each query's first documents, the best first."""
    return [line[line != NO_DOCUMENT][:depth] for line in run.rows]


def reranked(run: Run, depth: int, scores: Sequence[Scores]) -> Run:
    """Return a run whose first documents are ordered by new scores, one for each candidate; ties by document id."""
    ranks = run.documents.id_ranks()
    lines = []
    for rows, new in zip(candidates(run, depth), scores, strict=True):
        single = new.astype(np.float32)
        order = best_first(single, ranks[rows])
        lines.append((rows[order], single[order]))
    return _joined(run, lines)


def ordered(run: Run, orders: Sequence[Sequence[int]], scores: Sequence[Scores | None], depth: int) -> Run:
    """Return a run whose first documents come in a new order, given as indices of candidates.

    `scores` are those the order comes from, one for each candidate; None: an order without scores, so that they fall
    by one from each to the next. Documents with equal scores are put a hair's breadth apart, or whoever reads the run
    would order them by their ids.
    """
    lines = []
    for rows, order, new in zip(candidates(run, depth), orders, scores, strict=True):
        indices = np.asarray(order, dtype=np.int64)
        falling = np.arange(len(rows), 0, -1) if new is None else new[indices]
        lines.append((rows[indices], _apart(falling.astype(np.float32))))
    return _joined(run, lines)


def kept_in_place(scores: Scores) -> list[int]:
    """Return the order of candidates by score, where those without one (NaN) keep the place they have.

    A failed call says nothing about its documents: neither that they are good nor that they are bad. Ties keep the
    order of the stage before.
    """
    known = np.flatnonzero(~np.isnan(scores))
    order = np.arange(len(scores))
    order[known] = known[np.argsort(-scores[known], kind="stable")]
    return [int(index) for index in order]


def query_text(asked: SearchQuery, which: str) -> str:
    """Return what a reranker compares documents with: the query, or the query with what was generated for it."""
    if which == "expanded" and asked.generated:
        return "\n\n".join([asked.query.text, *asked.generated])
    return asked.query.text


def _apart(scores: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Return scores that fall from each to the next, each the nearest such number to what it was."""
    apart = scores.copy()
    for index in range(1, len(apart)):
        apart[index] = min(apart[index], np.nextafter(apart[index - 1], np.float32(-np.inf)))
    return apart


def _joined(run: Run, heads: Sequence[tuple[Rows, npt.NDArray[np.float32]]]) -> Run:
    """Return the run with new heads; tails keep their order, with scores that fall below the head's last."""
    rows = np.array(run.rows)
    scores = np.zeros(run.rows.shape, dtype=np.float32)
    for line, (head, new) in enumerate(heads):
        size, count = len(head), int(np.count_nonzero(run.rows[line] != NO_DOCUMENT))
        rows[line, :size] = head
        scores[line, :count] = _falling(new, count)
    return Run(run.queries, rows, scores, run.documents)


def _falling(head: npt.NDArray[np.float32], count: int) -> npt.NDArray[np.float32]:
    """Return scores for a whole ranking: the head's own, then whole numbers below its last one."""
    tail = count - len(head)
    last = float(np.floor(head[-1])) if len(head) else 0.0
    if tail and not abs(last) + tail < LARGEST:
        # Too large to count down from: then only the order is kept, in which ties of the head have been broken.
        return np.arange(count, 0, -1, dtype=np.float32)
    return np.concatenate([head, last - np.arange(1, tail + 1)]).astype(np.float32)
