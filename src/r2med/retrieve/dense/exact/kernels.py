"""Choosing and deciding: loops over single scores and vectors, compiled."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba.np.numpy_support import carray

from r2med.encoders.encoder import Vectors
from r2med.retrieve.dense.exact.arrays import Exact, Positions, Rows
from r2med.retrieve.dense.exact.jit import compiled, compiled_sum, fetch_add, pointer
from r2med.retrieve.dense.exact.product_kernels import Product, widen
from r2med.retrieve.dense.exact.rescoring import BlockAddresses
from r2med.retrieve.dense.exact.rounding import LEAST, Bounds
from r2med.retrieve.dense.exact.shortlist import BUNDLE

LANES = 16
"""Bundles side by side, which the largest are found of at once."""
WINDOW = LANES * BUNDLE
"""Consecutive scores of such bundles: i, i + 16, i + 32, … of them are bundle i."""


class CandidateArrays(NamedTuple):
    """Candidates, a line a query."""

    rows: Rows
    scores: Vectors
    exact: npt.NDArray[np.bool_]
    lengths: Positions
    kth_best: Vectors


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


class Choosing(NamedTuple):
    """What is to be done with the scores of some documents, in parts of the lines: those before each of `ends`.

    `line` and `position` are where each part is, and `failed` says which ones must be done again. `longest` is the
    largest length of a document before these; margins follow from it, and are written when it is known of all. After
    the last documents near ties are decided, and what is found is written down.
    """

    last: bool
    scores: Vectors
    rows: Rows
    k: int
    bounds: Bounds
    longest: float
    margins: Exact
    lists: CandidateArrays
    side: QuerySide
    blocks: BlockAddresses
    sampled: int
    ends: Positions
    line: Positions
    position: Positions
    parts_taken: Positions
    parts_done: Positions
    failed: npt.NDArray[np.bool_]
    found: Found


@compiled
def choose(product: Product, work: Choosing) -> bool:
    """Do parts that no other thread has taken, once all is multiplied; return False if scores must be checked first.

    A part that fails is done again by whoever asked, who then sees why.
    """
    longest = work.longest
    for piece in range(len(product.odd)):
        longest = max(longest, product.longest[piece])
        if product.odd[piece]:
            return False
    if longest >= work.bounds.too_long:
        return False
    part = fetch_add(work.parts_taken, 1)
    while part < len(work.ends):
        try:
            choose_part(work, part, longest)
        except Exception:
            work.failed[part] = True
        fetch_add(work.parts_done, 1)
        part = fetch_add(work.parts_taken, 1)
    return True


@compiled
def choose_part(work: Choosing, part: int, longest: float) -> None:
    """Choose, from where the part is, and refine after the last documents.

    It stays at a list that is full of what only exact scores can thin.
    """
    start, end = work.ends[part - 1] if part else 0, work.ends[part]
    for line in range(start, end):
        work.margins[line] = work.bounds.margins[line] * longest + work.bounds.least
        work.side.unrelated[line] = work.bounds.unrelated[line] * longest
    _choose(work, part)
    if work.last and work.line[part] == end:
        _refine(work, start, end)


@compiled
def _choose(work: Choosing, part: int) -> None:
    """Add the candidates of the lines of a part, from where it is, up to its end or to a list that is full.

    The largest of each bundle is compared with the floor: there are few that reach it, once it is known.
    """
    k, lists, rows, width, room = work.k, work.lists, work.rows, len(work.rows), work.lists.rows.shape[1]
    windows = width // WINDOW
    bundles, many = windows * LANES, width >= 4 * k * BUNDLE
    maxima = np.empty(width - windows * (WINDOW - LANES), np.float32)
    keys = np.empty(max(len(maxima) if many else width, room), np.uint32)
    for line in range(work.line[part], work.ends[part]):
        scores, length, margin = work.scores[line, :width], lists.lengths[line], work.margins[line]
        list_rows, list_scores, list_exact = lists.rows[line], lists.scores[line], lists.exact[line]
        count = _maxima(scores, windows, maxima)
        if lists.kth_best[line] == -np.inf and width >= k:
            if many:
                lists.kth_best[line] = _kth_largest(maxima, count, k, keys)
            else:  # so few that it would be far below the k-th largest of all
                lists.kth_best[line] = _kth_largest(scores, width, k, keys)
            if np.isnan(lists.kth_best[line]):  # a sum that exceeds float32: no score is below it
                lists.kth_best[line] = -np.inf
        floor = _floor(lists.kth_best[line], margin)
        for position in range(work.position[part], count):
            if maxima[position] >= floor:
                if length + BUNDLE > room:
                    lists.kth_best[line] = max(lists.kth_best[line], _kth_largest(list_scores, length, k, keys))
                    floor = _floor(lists.kth_best[line], margin)
                    length = _thin(lists, line, length, floor)
                    if 2 * length > room:
                        lists.lengths[line], work.position[part] = length, position
                        return
                if position < bundles:
                    first, after = position // LANES * WINDOW + position % LANES, position // LANES * WINDOW + WINDOW
                else:
                    first, after = position + windows * (WINDOW - LANES), position + windows * (WINDOW - LANES) + 1
                for column in range(first, after, LANES):
                    list_rows[length], list_scores[length], list_exact[length] = rows[column], scores[column], False
                    length += scores[column] >= floor
        lists.lengths[line] = length
        work.line[part], work.position[part] = line + 1, 0


@compiled
def _refine(work: Choosing, start: int, end: int) -> None:
    """Put the candidates of lines in order, best first, score near ties exactly, and write down what is found."""
    k, margins, sampled, lists, side, found = work.k, work.margins, work.sampled, work.lists, work.side, work.found
    room = lists.lengths[start:end].max()
    buffer, tied = np.empty(side.vectors.shape[1], np.float32), np.empty(room, np.bool_)
    order, doubts = np.empty((4, room), np.uint32), np.zeros((end - start, room), np.float32)
    worst, bound = 0.0, 0.0
    for line in range(start, end):
        _sort(lists, line, order)
        if lists.lengths[line] >= k:
            lists.kth_best[line] = max(lists.kth_best[line], lists.scores[line, k - 1])
        lists.lengths[line] = _thin(lists, line, lists.lengths[line], _floor(lists.kth_best[line], margins[line]))
        depth = min(lists.lengths[line], k)
        for number in range(sampled if depth else 0):
            column = number * (depth - 1) // max(1, sampled - 1)
            if not lists.exact[line, column]:
                off, doubts[line - start, column] = _decide(lists, line, column, side, work.blocks, buffer)
                worst = max(worst, off)
    while max(LEAST, 3 * worst) > bound:
        bound = 4 / 3 * max(LEAST, 3 * worst)
        for line in range(start, end):
            length = lists.lengths[line]
            for column in range(length):
                tied[column] = False
            for column in range(length - 1):
                score = np.float64(lists.scores[line, column])
                # Two deviations, and two steps of float32: beyond that the rounded scores differ, and in this order.
                near = (2 * bound + 2.0**-22) * (abs(score) + side.unrelated[line]) + 2.0**-125
                if abs(score - lists.scores[line, column + 1]) <= near:
                    tied[column] = True
                    tied[column + 1] = True
            for column in range(length):
                if tied[column] and not lists.exact[line, column]:
                    off, doubts[line - start, column] = _decide(lists, line, column, side, work.blocks, buffer)
                    worst = max(worst, off)
    for line in range(start, end):
        found.mixed[line] = _mixed(lists, line, k, doubts[line - start])
        for column in range(min(k, lists.lengths[line])):
            found.rows[line, column], found.scores[line, column] = lists.rows[line, column], lists.scores[line, column]
            found.infinite[line] |= not np.isfinite(lists.scores[line, column])
        for column in range(lists.lengths[line]):
            if doubts[line - start, column] != 0:
                found.unsure[line] = found.doubtful[line, column] = True


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
def _maxima(line: Vectors, windows: int, maxima: Vectors) -> int:
    """Write the largest score of each bundle, and the scores behind the last window; return how many these are."""
    for window in range(windows):
        for lane in range(LANES):
            largest = np.float32(-np.inf)
            for part in range(BUNDLE):
                score = line[window * WINDOW + part * LANES + lane]
                largest = score if score > largest else largest
            maxima[window * LANES + lane] = largest
    for column in range(windows * WINDOW, len(line)):
        maxima[column - windows * (WINDOW - LANES)] = line[column]
    return len(line) - windows * (WINDOW - LANES)


@compiled
def _kth_largest(scores: Vectors, count: int, k: int, keys: npt.NDArray[np.uint32]) -> np.float32:
    """Return the k-th largest of some scores: a few bits after the other, those are kept that share them with it."""
    bits = scores.view(np.uint32)
    for at in range(count):
        keys[at] = _ordered(bits[at])
    counts = np.empty(1 << 11, np.int64)
    for shift in (np.uint32(21), np.uint32(10), np.uint32(0)):
        for digit in range(len(counts)):
            counts[digit] = 0
        for at in range(count):
            counts[(keys[at] >> shift) & np.uint32(2047)] += 1
        digit = 2047
        while counts[digit] < k:
            k -= counts[digit]
            digit -= 1
        kept = 0
        for at in range(count):
            keys[kept] = keys[at]
            kept += (keys[at] >> shift) & np.uint32(2047) == digit
        count = kept
    keys[0] = _bits(keys[0])
    return np.float32(keys.view(np.float32)[0])


@compiled
def _floor(kth_best: np.float32, margin: float) -> np.float32:
    return np.float32(np.nextafter(np.float32(kth_best - margin), np.float32(-np.inf)))


@compiled
def _thin(lists: CandidateArrays, line: int, length: int, floor: np.float32) -> int:
    """Drop what lies below a floor of so many candidates; return how many are left."""
    kept = 0
    for column in range(length):
        if lists.scores[line, column] >= floor:
            lists.rows[line, kept] = lists.rows[line, column]
            lists.scores[line, kept] = lists.scores[line, column]
            lists.exact[line, kept] = lists.exact[line, column]
            kept += 1
    return kept


@compiled
def _sort(lists: CandidateArrays, line: int, order: npt.NDArray[np.uint32]) -> None:
    """Put the candidates of a line in order, best first: by the last eight bits of their scores, then those before."""
    length = lists.lengths[line]
    keys, columns, other_keys, other_columns = order[0], order[1], order[2], order[3]
    bits = lists.scores[line].view(np.uint32)
    for column in range(length):
        keys[column], columns[column] = ~_ordered(bits[column]), column
    starts = np.empty(257, np.int64)
    for shift in (np.uint32(0), np.uint32(8), np.uint32(16), np.uint32(24)):
        for digit in range(257):
            starts[digit] = 0
        for at in range(length):
            starts[((keys[at] >> shift) & np.uint32(255)) + 1] += 1
        for digit in range(256):
            starts[digit + 1] += starts[digit]
        for at in range(length):
            digit = (keys[at] >> shift) & np.uint32(255)
            other_keys[starts[digit]], other_columns[starts[digit]] = keys[at], columns[at]
            starts[digit] += 1
        keys, other_keys, columns, other_columns = other_keys, keys, other_columns, columns
    for column in range(length):
        other_columns[column] = lists.rows[line, columns[column]]
        other_keys[column] = lists.exact[line, columns[column]]
    for column in range(length):
        lists.rows[line, column] = other_columns[column]
        lists.exact[line, column] = other_keys[column]
        bits[column] = _bits(~keys[column])


@compiled
def _ordered(bits: np.uint32) -> np.uint32:
    """Return a number without sign that orders as the score of these bits does."""
    return np.uint32(~bits if bits >> np.uint32(31) else bits | np.uint32(0x80000000))


@compiled
def _bits(ordered: np.uint32) -> np.uint32:
    """Return the bits of such a number's score."""
    return np.uint32(ordered & np.uint32(0x7FFFFFFF) if ordered >> np.uint32(31) else ~ordered)


@compiled
def _decide(
    lists: CandidateArrays, line: int, column: int, side: QuerySide, blocks: BlockAddresses, buffer: Vectors
) -> tuple[float, float]:
    """Replace a score by the exact one.

    Returns how far it was off, relative to the sums on the way to it, and how far another float32 may be that the sum
    rounds to if it is added up in another order; 0 if there is none.
    """
    row = lists.rows[line, column]
    block, after = 0, len(blocks.starts)
    while after - block > 1:
        middle = (block + after) // 2
        block, after = (middle, after) if blocks.starts[middle] <= row else (block, middle)
    if not len(blocks.starts) or not blocks.starts[block] <= row < blocks.ends[block]:
        raise LookupError("a row of a block that was let go")
    dimension = side.vectors.shape[1]
    offset = row - blocks.starts[block]
    if blocks.halves[block]:
        halves = carray(pointer(blocks.addresses[block] + 2 * dimension * offset), dimension, np.uint16)
        widen(halves, buffer)
        score, size = _score(side.vectors[line], buffer)
    else:
        floats = carray(pointer(blocks.addresses[block] + 4 * dimension * offset), dimension, np.float32)
        score, size = _score(side.vectors[line], floats)
    size *= side.norms[line]
    # Products of float32 are exact in float64, so two sums of d of them, in whatever order, are 2 (d - 1) u |q||d|
    # apart at most, with u = 2^-53. In cosines each side has d / 2 more for the document's length, and three for the
    # root, the product of lengths and the division: 3 (d + 1) u. Eight more for d are for what is rounded here.
    doubt = 2 * (dimension + 8) * 2.0**-53 * size
    if side.cosine:
        score, doubt = (score / size if size > 0 else 0.0), 4 * (dimension + 8) * 2.0**-53
    fast = lists.scores[line, column]
    if not np.isfinite(fast):  # it was chosen by a sum that exceeds float32, and others were not
        score = np.inf
    lists.scores[line, column] = score
    lists.exact[line, column] = True
    least, most = np.float32(score - doubt), np.float32(score + doubt)
    return abs(fast - score) / (abs(score) + side.unrelated[line] + 2.0**-1000), 2 * np.float64(most - least)


@compiled_sum
def _score(query: Vectors, document: Vectors) -> tuple[float, float]:
    """Return the product of two vectors, and the length of the second."""
    product = square = 0.0
    for at in range(len(query)):
        value = np.float64(document[at])
        product += np.float64(query[at]) * value
        square += value * value
    return product, np.sqrt(square)
