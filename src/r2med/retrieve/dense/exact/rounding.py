"""How far the fast scores of a search may be off.

How near two scores must be for rounding to have swapped them is measured. The proven bound holds for the most unlucky
signs of 1,024 roundings: it is some 500 times what happens, and would have nearly all of a top 1000 scored again, which
takes longer than the product. So a sample of the candidates is scored again first, and near ties within four times the
largest deviation of it after that. Each of those is a check: if one deviates by more than a third of the bound, the
bound grows and the near ties are sought again. Who is among the k best does not depend on it: all that the proven bound
has near the cut are scored again.
"""

from __future__ import annotations

import threading
from typing import NamedTuple

import numpy as np

from r2med.retrieve.dense.exact.arrays import Exact
from r2med.retrieve.dense.exact.rescoring import Rescorer

UNIT = 2.0**-24
"""A float32 operation's relative rounding error at most."""
LEAST = 12 * UNIT
"""The working bound at least, if hardly any rounding is seen; with a thousand dimensions 45 UNIT are usual."""

SAFE_SQUARES = (2.0**-80, 2.0**100)
"""Squares of lengths between which float32 takes them precisely."""


class Bounds(NamedTuple):
    """What follows from the queries for how far scores may be off.

    `margins` and `unrelated`, a number a query, are for documents of length 1, and `least` is added whatever their
    length. Sums on the way to a score may exceed float32 from the length `too_long` on.
    """

    margins: Exact
    least: float
    unrelated: Exact
    too_long: float


class Rounding:
    """What is known of the scores of some queries, and what deviations are relative to."""

    def __init__(self, rescorer: Rescorer) -> None:
        self._rescorer, self._lock = rescorer, threading.Lock()
        self._bounds: Bounds | None = None
        self.longest = 1.0 if rescorer.cosine else 0.0
        """The largest length that was seen."""

    @property
    def bounds(self) -> Bounds:
        """What is known before documents are seen."""
        if self._bounds is None:
            self._bounds = _bounds(self._rescorer)
        return self._bounds

    def saw(self, longest: float) -> None:
        """Take note of the largest length among some documents of which it was taken. Threads may do so together."""
        with self._lock:
            self.longest = max(self.longest, longest)

    def margins(self, lines: slice) -> Exact:
        """Return how far below the k-th best a fast score may lie of a document that belongs above it.

        Proven for documents up to twice as long as the longest that was seen.
        """
        return np.asarray(self.bounds.margins[lines] * self.longest + self.bounds.least)

    def may_overflow(self) -> bool:
        """Return whether a sum on the way to a score may exceed float32."""
        return self.longest >= self.bounds.too_long

    def unrelated(self, lines: slice) -> Exact:
        """Return how large the products of unrelated vectors are.

        The rounding of each addition is relative to the sums on the way to a score. The way leads to the score itself,
        by about as much to either side as unrelated vectors' products add up to. A score of 1 among scores of 0.1 must
        not make all of them look near to each other.
        """
        return np.asarray(self.bounds.unrelated[lines] * self.longest)


def _bounds(rescorer: Rescorer) -> Bounds:
    dimension = rescorer.queries.shape[1]
    # With cosine, both sides have length 1.
    scale = np.ones(len(rescorer.queries)) if rescorer.cosine else rescorer.norms
    # Any order of adding d products is off by at most d·u·|q|·|d|; cosines add the rounding of both lengths.
    roundings = 2 * dimension + 16 if rescorer.cosine else dimension + 4
    # Two scores may both be off. Once more as much for documents longer than those that were seen.
    return Bounds(
        margins=2 * 2 * roundings * UNIT * scale,
        least=2 * 2 * roundings * 2.0**-125,  # subnormals may be flushed to 0
        unrelated=scale / max(1, dimension) ** 0.5,
        too_long=2.0**125 / max(scale.max(initial=0), 2.0**-800),
    )
