"""Deciding: near ties among candidates are scored exactly; compiled."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba.np.numpy_support import carray

from r2med.encoders.encoder import Vectors
from r2med.retrieve.dense.exact.arrays import Exact, Positions, Rows
from r2med.retrieve.dense.exact.candidate_kernels import CandidateArrays, floor_below, sort, thin
from r2med.retrieve.dense.exact.instructions import pointer
from r2med.retrieve.dense.exact.jit import compiled, compiled_sum
from r2med.retrieve.dense.exact.product_kernels import widen
from r2med.retrieve.dense.exact.rescoring import BlockAddresses
from r2med.retrieve.dense.exact.rounding import LEAST


class Found(NamedTuple):
    """Rows and scores that are found, a line a query; lines whose first k may not be their best, or that are unsure.

    Those have doubtful candidates, whose exact score may round to another float32 if it is added up in another order.
    A line may also have an infinite score.
    """

    rows: Rows
    scores: Vectors
    mixed: npt.NDArray[np.bool_]
    unsure: npt.NDArray[np.bool_]
    infinite: npt.NDArray[np.bool_]
    doubtful: npt.NDArray[np.bool_]


class QuerySide(NamedTuple):
    """Queries, their lengths, how large the products of unrelated vectors are, and what is asked for."""

    vectors: Vectors
    norms: Exact
    unrelated: Exact
    cosine: bool


class Deciding(NamedTuple):
    """The k best are sought of some candidates, which may be off by their margins, and where what is found goes.

    `sampled` of each query measure how far scores are off.
    """

    k: int
    lists: CandidateArrays
    margins: Exact
    side: QuerySide
    blocks: BlockAddresses
    sampled: int
    found: Found


@compiled
def decide(work: Deciding, start: int, end: int) -> None:
    """Put the candidates of lines in order, best first, score near ties exactly, and write down what is found."""
    k, lists, found = work.k, work.lists, work.found
    room = max(lists.lengths[start:end].max(), work.sampled)
    order, columns = np.empty((4, room), np.uint32), np.empty(room, np.int64)
    doubts = np.zeros((end - start, room), np.float32)
    query, buffer = np.empty(work.side.vectors.shape[1]), np.empty(work.side.vectors.shape[1], np.float32)
    worst, bound = 0.0, 0.0
    for line in range(start, end):
        sort(lists, line, order)
        if lists.lengths[line] >= k:
            lists.kth_best[line] = max(lists.kth_best[line], lists.scores[line, k - 1])
        floor = floor_below(lists.kth_best[line], work.margins[line])
        lists.lengths[line] = thin(lists, line, lists.lengths[line], floor)
        count = _sample(min(lists.lengths[line], k), columns[: work.sampled])
        worst = max(worst, _score_exactly(work, line, columns[:count], doubts[line - start], query, buffer))
    while max(LEAST, 3 * worst) > bound:
        bound = 4 / 3 * max(LEAST, 3 * worst)
        for line in range(start, end):
            scores, unrelated = lists.scores[line, : lists.lengths[line]], work.side.unrelated[line]
            count = _near_ties(scores, k, bound, unrelated, work.margins[line], columns)
            worst = max(worst, _score_exactly(work, line, columns[:count], doubts[line - start], query, buffer))
    for line in range(start, end):
        found.mixed[line] = _mixed(lists, line, k, doubts[line - start])
        for column in range(min(k, lists.lengths[line])):
            found.rows[line, column], found.scores[line, column] = lists.rows[line, column], lists.scores[line, column]
            found.infinite[line] |= not np.isfinite(lists.scores[line, column])
        for column in range(lists.lengths[line]):
            if doubts[line - start, column] != 0:
                found.unsure[line] = found.doubtful[line, column] = True


@compiled
def _sample(depth: int, columns: Positions) -> int:
    """Write some of the first columns, evenly apart; return how many."""
    for number in range(len(columns)):
        columns[number] = number * (depth - 1) // max(1, len(columns) - 1)
    return len(columns) if depth else 0


@compiled
def _near_ties(scores: Vectors, k: int, bound: float, unrelated: float, margin: float, columns: Positions) -> int:
    """Write the columns that rounding may have swapped with a neighbour, or over the cut; return how many."""
    count, near_before = 0, False
    cut = np.float64(scores[k - 1]) + margin if len(scores) > k else -np.inf
    for column in range(len(scores)):
        score = np.float64(scores[column])
        # Two deviations, and two steps of float32: beyond that the rounded scores differ, and in this order.
        near = (2 * bound + 2.0**-22) * (abs(score) + unrelated) + 2.0**-125
        near_next = column + 1 < len(scores) and abs(score - scores[column + 1]) <= near
        if near_next or near_before or score <= cut:
            columns[count] = column
            count += 1
        near_before = near_next
    return count


@compiled
def _mixed(lists: CandidateArrays, line: int, k: int, doubts: Vectors) -> bool:
    """Return whether some of the first k of a line may not belong before all the others."""
    least, most, length = np.float32(np.inf), np.float32(-np.inf), lists.lengths[line]
    for column in range(min(k, length)):
        least = min(least, lists.scores[line, column] - doubts[column])
    for column in range(k, length):
        most = max(most, lists.scores[line, column] + doubts[column])
    return bool(length > k and most >= least)


@compiled
def _score_exactly(
    work: Deciding, line: int, columns: Positions, doubts: Vectors, query: Exact, buffer: Vectors
) -> float:
    """Replace scores of a line by exact ones, in those columns that have others; return how far they were off at most.

    That is relative to the sums on the way to a score. Doubts say how far another float32 may be that a sum rounds to
    if it is added up in another order; 0 if there is none. Query and buffer are written over.
    """
    lists, side, blocks, worst = work.lists, work.side, work.blocks, 0.0
    rows, scores, exact, dimension = lists.rows[line], lists.scores[line], lists.exact[line], len(query)
    norm, unrelated = side.norms[line], side.unrelated[line]
    for at in range(dimension):
        query[at] = side.vectors[line, at]
    for column in columns:
        if exact[column]:
            continue
        block = _block_of(blocks, rows[column])
        address, numbers = blocks.addresses[block], (rows[column] - blocks.starts[block]) * dimension
        if blocks.halves[block]:
            widen(carray(pointer(address + 2 * numbers), dimension, np.uint16), buffer)
            score, size = _score(query, buffer)
        else:
            score, size = _score(query, carray(pointer(address + 4 * numbers), dimension, np.float32))
        size *= norm
        # Products of float32 are exact in float64, so two sums of d of them, in whatever order, are 2 (d - 1) u |q||d|
        # apart at most, with u = 2^-53. In cosines each side has d / 2 more for the document's length, and three for
        # the root, the product of lengths and the division: 3 (d + 1) u. Eight more for d are for what is rounded here.
        doubt = 2 * (dimension + 8) * 2.0**-53 * size
        if side.cosine:
            score, doubt = (score / size, 4 * (dimension + 8) * 2.0**-53) if size > 0 else (0.0, 0.0)
        fast = scores[column]
        if not np.isfinite(fast):  # it was chosen by a sum that exceeds float32, and others were not
            score = np.inf
        least, most = np.float32(score - doubt), np.float32(score + doubt)
        scores[column], exact[column], doubts[column] = score, True, 2 * np.float64(most - least)
        worst = max(worst, abs(fast - score) / (abs(score) + unrelated + 2.0**-1000))
    return worst


@compiled
def _block_of(blocks: BlockAddresses, row: int) -> int:
    """Return which block has a row. Raises LookupError if none has."""
    block, after = 0, len(blocks.starts)
    while after - block > 1:
        middle = (block + after) // 2
        block, after = (middle, after) if blocks.starts[middle] <= row else (block, middle)
    if not len(blocks.starts) or not blocks.starts[block] <= row < blocks.ends[block]:
        raise LookupError("a row of a block that was let go")
    return block


@compiled_sum
def _score(query: Exact, document: Vectors) -> tuple[float, float]:
    """Return the product of two vectors, and the length of the second."""
    product = square = 0.0
    for at in range(len(query)):
        value = np.float64(document[at])
        product += query[at] * value
        square += value * value
    return product, np.sqrt(square)
