"""Choosing candidates out of the scores of some documents: compiled."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from r2med.encoders.encoder import Vectors
from r2med.retrieve.dense.exact.arrays import Positions, Rows
from r2med.retrieve.dense.exact.candidate_kernels import CandidateArrays, floor_below, kth_largest, thin
from r2med.retrieve.dense.exact.deciding_kernels import Deciding, decide
from r2med.retrieve.dense.exact.instructions import fetch_add
from r2med.retrieve.dense.exact.jit import compiled
from r2med.retrieve.dense.exact.product_kernels import Product
from r2med.retrieve.dense.exact.rounding import Bounds
from r2med.retrieve.dense.exact.shortlist import BUNDLE

LANES = 16
"""Bundles side by side, which the largest are found of at once."""
WINDOW = LANES * BUNDLE
"""Consecutive scores of such bundles: i, i + 16, i + 32, … of them are bundle i."""


class Choosing(NamedTuple):
    """What is to be done with the scores of some documents, in parts of the lines: those before each of `ends`.

    `line` and `position` are where each part is, and `failed` says which ones must be done again. `longest` is the
    largest length of a document before these; margins follow from it, and are written when it is known of all. After
    the last documents near ties are decided, and what is found is written down.
    """

    last: bool
    scores: Vectors
    rows: Rows
    bounds: Bounds
    longest: float
    deciding: Deciding
    ends: Positions
    line: Positions
    position: Positions
    parts_taken: Positions
    parts_done: Positions
    failed: npt.NDArray[np.bool_]


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
    """Choose, from where the part is, and decide after the last documents.

    It stays at a list that is full of what only exact scores can thin.
    """
    start, end = work.ends[part - 1] if part else 0, work.ends[part]
    for line in range(start, end):
        work.deciding.margins[line] = work.bounds.margins[line] * longest + work.bounds.least
        work.deciding.side.unrelated[line] = work.bounds.unrelated[line] * longest
    _choose(work, part)
    if work.last and work.line[part] == end:
        decide(work.deciding, start, end)


@compiled
def _choose(work: Choosing, part: int) -> None:
    """Add the candidates of the lines of a part, from where it is, up to its end or to a list that is full.

    The largest of each bundle is compared with the floor: there are few that reach it, once it is known.
    """
    k, lists, rows, width = work.deciding.k, work.deciding.lists, work.rows, len(work.rows)
    windows, room = width // WINDOW, lists.rows.shape[1]
    beyond, many = windows * (WINDOW - LANES), width >= 4 * k * BUNDLE
    maxima = np.empty(width - beyond, np.float32)
    keys = np.empty(max(len(maxima) if many else width, room), np.uint32)
    reaching = np.empty(len(maxima), np.int32)
    for line in range(work.line[part], work.ends[part]):
        scores, length, margin = work.scores[line, :width], lists.lengths[line], work.deciding.margins[line]
        _maxima(scores, windows, maxima)
        if lists.kth_best[line] == -np.inf and width >= k:
            if many:
                lists.kth_best[line] = kth_largest(maxima, len(maxima), k, keys)
            else:  # so few that it would be far below the k-th largest of all
                lists.kth_best[line] = kth_largest(scores, width, k, keys)
            if np.isnan(lists.kth_best[line]):  # a sum that exceeds float32: no score is below it
                lists.kth_best[line] = -np.inf
        floor = floor_below(lists.kth_best[line], margin)
        columns, begun = lists.rows[line], length  # rows are looked up together, at last
        for at in range(_reaching(maxima, work.position[part], floor, reaching)):
            position = reaching[at]
            if length + BUNDLE > room:
                _look_up(lists, line, begun, length, rows, scores)
                lists.kth_best[line] = max(lists.kth_best[line], kth_largest(lists.scores[line], length, k, keys))
                floor = floor_below(lists.kth_best[line], margin)
                begun = length = thin(lists, line, length, floor)
                lists.lengths[line], work.position[part] = length, position
                if 2 * length > room:
                    return
            if position < windows * LANES:
                first, after = position // LANES * WINDOW + position % LANES, position // LANES * WINDOW + WINDOW
            else:
                first, after = position + beyond, position + beyond + 1
            for column in range(first, after, LANES):
                columns[length] = column
                length += scores[column] >= floor
        _look_up(lists, line, begun, length, rows, scores)
        lists.lengths[line] = length
        work.line[part], work.position[part] = line + 1, 0


@compiled
def _reaching(maxima: Vectors, start: int, floor: np.float32, out: Rows) -> int:
    """Write where the largest reach a floor, from a start on; return how many do."""
    count = 0
    for position in range(start, len(maxima)):
        out[count] = position
        count += maxima[position] >= floor
    return count


@compiled
def _look_up(lists: CandidateArrays, line: int, start: int, end: int, rows: Rows, scores: Vectors) -> None:
    """Write rows and scores of candidates of which the columns were written."""
    for at in range(start, end):
        column = lists.rows[line, at]
        lists.rows[line, at], lists.scores[line, at], lists.exact[line, at] = rows[column], scores[column], False


@compiled
def _maxima(line: Vectors, windows: int, maxima: Vectors) -> None:
    """Write the largest score of each bundle, and the scores behind the last window."""
    for window in range(windows):
        for lane in range(LANES):
            largest = np.float32(-np.inf)
            for part in range(BUNDLE):
                score = line[window * WINDOW + part * LANES + lane]
                largest = score if score > largest else largest
            maxima[window * LANES + lane] = largest
    for column in range(windows * WINDOW, len(line)):
        maxima[column - windows * (WINDOW - LANES)] = line[column]
