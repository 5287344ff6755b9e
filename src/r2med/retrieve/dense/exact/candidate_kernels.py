"""Candidates of queries: which scores are high enough, and putting them in order; compiled."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from r2med.encoders.encoder import Vectors
from r2med.retrieve.dense.exact.arrays import Positions, Rows
from r2med.retrieve.dense.exact.jit import compiled


class CandidateArrays(NamedTuple):
    """Candidates, a line a query."""

    rows: Rows
    scores: Vectors
    exact: npt.NDArray[np.bool_]
    lengths: Positions
    kth_best: Vectors


@compiled
def kth_largest(scores: Vectors, count: int, k: int, keys: npt.NDArray[np.uint32]) -> np.float32:
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
def floor_below(kth_best: np.float32, margin: float) -> np.float32:
    """Return the number of float32 just below the k-th best less a margin."""
    return np.float32(np.nextafter(np.float32(kth_best - margin), np.float32(-np.inf)))


@compiled
def thin(lists: CandidateArrays, line: int, length: int, floor: np.float32) -> int:
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
def sort(lists: CandidateArrays, line: int, order: npt.NDArray[np.uint32]) -> None:
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
        if length and starts[((keys[0] >> shift) & np.uint32(255)) + 1] == length:  # all have the same bits here
            continue
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
