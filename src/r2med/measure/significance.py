"""Tell differences between systems from noise: paired by query, stratified by dataset, on arrays alone.

Values are dataset -> systems × queries. The figure of a system is the unweighted mean of its datasets' means; a pair
is two rows of the arrays, and its difference is the first's figure less the second's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from r2med.measure.scores import Floats

Integers = npt.NDArray[np.intp]
Values = Mapping[str, Floats]

RESAMPLES = 10_000
LEVEL = 0.95
ALPHA = 1 - LEVEL
POWER = 0.8

SAME = 1e-9
"""What differs by less is equal: sums of values up to 100, in another order, differ in their last digits."""

AT_ONCE = 1 << 17
"""Numbers in a block of differences: fits the cache, and bounds the memory whatever the number of pairs."""

FLIPS = 1024
"""Sign flips of all queries in one product of matrices."""


@dataclass(frozen=True)
class Pairs:
    """Which rows are compared: `first[i]` with `second[i]`."""

    first: Integers
    second: Integers

    @classmethod
    def all(cls, systems: int) -> Pairs:
        """Return every pair once."""
        return cls(*np.triu_indices(systems, 1))

    @classmethod
    def against(cls, baseline: int, systems: int) -> Pairs:
        """Return every other system, each with the baseline."""
        others = np.array([system for system in range(systems) if system != baseline], dtype=np.intp)
        return cls(others, np.full_like(others, baseline))

    def __len__(self) -> int:
        return len(self.first)

    def differences(self, rows: Floats) -> Floats:
        """Return a row for each pair."""
        return rows[self.first] - rows[self.second]

    def blocks(self, width: int) -> Iterator[tuple[slice, Pairs]]:
        """Yield the pairs in blocks whose rows of this width fit `AT_ONCE`."""
        size = max(1, AT_ONCE // max(1, width))
        for start in range(0, len(self), size):
            part = slice(start, start + size)
            yield part, Pairs(self.first[part], self.second[part])


def means(values: Values) -> Floats:
    """Return the figure of each system."""
    return np.asarray(np.mean([rows.mean(axis=1) for rows in values.values()], axis=0))


def contributions(values: Values) -> Floats:
    """Return systems × all queries, weighted so that a system's row adds up to its figure."""
    return np.hstack([rows / (len(values) * rows.shape[1]) for rows in values.values()])


# Sign flips: if two systems were equally good, each query's difference could as well have had the other sign.


@dataclass(frozen=True)
class FlipTest:
    """The p of every pair: its own, and adjusted for all pairs by the largest statistic of each flip (max-T)."""

    p: Floats
    p_adjusted: Floats


def sign_flips(values: Values, pairs: Pairs, resamples: int = RESAMPLES, seed: int = 0) -> FlipTest:
    """Test every pair by the same flips: p is (1 + flips that differ at least as much) / (1 + flips).

    It is exact where the queries allow no more flips than `resamples`. The adjusted p is Westfall and Young's step-down
    max-T: a pair is held against all whose statistic is no larger than its own. Statistics are differences in units of
    the root of their sum of squares, which no flip changes.
    """
    rows = _centred(values)
    scale = _scales(rows, pairs)
    statistic = np.abs(pairs.differences(rows.sum(axis=1))) / scale
    order = np.argsort(statistic, kind="stable")
    ranked = Pairs(pairs.first[order], pairs.second[order])
    scale = scale[order, None]
    threshold = statistic[order, None] - SAME / scale
    hits, max_hits = np.zeros((2, len(pairs)))
    flips = 0
    for signs in _signs(rows, resamples, seed):
        flipped = rows @ signs
        largest = np.zeros(signs.shape[1])
        for part, block in ranked.blocks(signs.shape[1]):
            statistics = np.abs(block.differences(flipped)) / scale[part]
            hits[part] += np.count_nonzero(statistics >= threshold[part], axis=1)
            np.maximum(statistics[0], largest, out=statistics[0])
            np.maximum.accumulate(statistics, axis=0, out=statistics)
            largest = statistics[-1]
            max_hits[part] += np.count_nonzero(statistics >= threshold[part], axis=1)
        flips += signs.shape[1]
    p, adjusted = np.empty((2, len(pairs)))
    p[order] = (1 + hits) / (1 + flips)
    adjusted[order] = np.maximum.accumulate((1 + max_hits[::-1]) / (1 + flips))[::-1]
    return FlipTest(p, adjusted)


def _centred(values: Values) -> Floats:
    """Return contributions less what all systems share: no difference changes, and smaller numbers round less."""
    rows = contributions(values)
    return np.asarray(rows - rows.mean(axis=0))


def _scales(rows: Floats, pairs: Pairs) -> Floats:
    scale = np.zeros(len(pairs))
    for part, block in pairs.blocks(rows.shape[1]):
        scale[part] = np.sqrt(np.square(block.differences(rows)).sum(axis=1))
    return np.where(scale > SAME, scale, 1.0)


def _signs(rows: Floats, resamples: int, seed: int) -> Iterator[Floats]:
    """Yield signs, queries × flips: all there are but the identity if these are few, random ones otherwise."""
    queries = rows.shape[1]
    moving = np.flatnonzero(np.ptp(rows, axis=0) > SAME)
    # A flip of all signs has the same statistic as none: the first query that matters keeps its own.
    free = max(0, len(moving) - 1)
    exact = free < 60 and 2**free - 1 <= resamples
    count = 2**free - 1 if exact else resamples
    # Drawn as one: what a pair gets does not depend on how many others there are.
    drawn = np.random.default_rng(seed).integers(0, 256, (0 if exact else count, -(-queries // 8)), dtype=np.uint8)
    for start in range(0, count, FLIPS):
        stop = min(count, start + FLIPS)
        if exact:
            bits = np.zeros((stop - start, queries), dtype=np.uint8)
            bits[:, moving[1:]] = np.arange(start + 1, stop + 1)[:, None] >> np.arange(free) & 1
        else:
            bits = np.unpackbits(drawn[start:stop], axis=1, count=queries)
        yield 1.0 - 2.0 * bits.T


# The bootstrap: how the figures would spread if the queries of each dataset were drawn anew.


def bootstrap(values: Values, resamples: int = RESAMPLES, seed: int = 0) -> dict[str, Floats]:
    """Return dataset -> systems × resamples: means over queries drawn with replacement, the same for all systems."""
    draws = {}
    for number, (dataset, rows) in enumerate(values.items()):
        queries = rows.shape[1]
        random = np.random.default_rng([seed, number])
        counts = random.multinomial(queries, np.full(queries, 1 / queries), size=resamples)
        draws[dataset] = rows @ counts.T.astype(np.float64) / queries
    return draws


def stratified(draws: Mapping[str, Floats]) -> Floats:
    """Return systems × resamples: the mean of the datasets' means."""
    total: Floats = sum(draws.values(), np.zeros(1))
    return total / len(draws)


def interval(draws: Floats) -> Floats:
    """Return low and high of each row: the percentile interval at `LEVEL`."""
    return np.quantile(draws, [ALPHA / 2, 1 - ALPHA / 2], axis=1)


# Closed forms: beside the tests above, and for what needs a spread.


@dataclass(frozen=True)
class TTest:
    """The stratified paired t-test: the variance of the figure is the sum of the datasets', as are their weights."""

    p: Floats
    """NaN where a dataset has one query only: nothing is known of its spread."""
    detectable: Floats
    """The difference that would be seen with `POWER`, if the queries spread as these do."""
    effect: Floats
    """Cohen's d_z: the difference in units of the standard deviation of single queries' differences."""


def paired_t(values: Values, pairs: Pairs) -> TTest:
    """Test every pair by Student's t, with the degrees of freedom of Welch and Satterthwaite."""
    from scipy.stats import t as student

    sizes = np.array([rows.shape[1] for rows in values.values()], dtype=np.float64)
    spreads = np.array([pair_variances(rows, pairs) for rows in values.values()]).reshape(len(sizes), -1)
    difference = pairs.differences(means(values))
    variance, freedom = welch(spreads, sizes)
    with np.errstate(divide="ignore", invalid="ignore"):
        p = 2 * student.sf(np.abs(difference) / np.sqrt(variance), freedom)
        effect = difference / np.sqrt(spreads.mean(axis=0))
    # Queries that all differ by the same have no spread: then a difference is certain, or there is none.
    flat = variance <= SAME**2
    p = np.where(flat, np.where(np.abs(difference) > SAME, 0.0, 1.0), p)
    needed = student.ppf(1 - ALPHA / 2, freedom) + student.ppf(POWER, freedom)
    detectable = np.where(flat, 0.0, needed * np.sqrt(variance))
    return TTest(p, detectable, np.where(flat, np.nan, effect))


def welch(spreads: Floats, sizes: Floats) -> tuple[Floats, Floats]:
    """Return the variance of each figure and its degrees of freedom (Welch and Satterthwaite).

    `spreads` are datasets × figures, the variances of single queries; `sizes` are the queries of each dataset.
    """
    parts = spreads / sizes[:, None] / len(sizes) ** 2
    variance = parts.sum(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        freedom = variance**2 / (parts**2 / (sizes[:, None] - 1)).sum(axis=0)
    return variance, freedom


def pair_variances(rows: Floats, pairs: Pairs) -> Floats:
    """Return the variance of single queries' differences for each pair; NaN for a dataset of one query."""
    if rows.shape[1] < 2:
        return np.full(len(pairs), np.nan)
    return np.concatenate(
        [np.var(block.differences(rows), axis=1, ddof=1) for _, block in pairs.blocks(rows.shape[1])] or [np.zeros(0)]
    )


@dataclass(frozen=True)
class Movements:
    """How the queries of each pair moved."""

    wins: Integers
    ties: Integers
    losses: Integers
    carried: Floats
    """The share of the difference that five queries carry; above 1, the rest speaks against it. NaN: no difference."""


CARRIERS = 5


def movements(values: Values, pairs: Pairs) -> Movements:
    """Count the queries that each pair's first system wins, ties and loses, and weigh the five that count most."""
    rows = contributions(values)
    queries = rows.shape[1]
    wins, losses = np.zeros((2, len(pairs)), dtype=np.intp)
    carried = np.full(len(pairs), np.nan)
    for part, block in pairs.blocks(queries):
        moved = block.differences(rows)
        wins[part] = (moved > SAME / queries).sum(axis=1)
        losses[part] = (moved < -SAME / queries).sum(axis=1)
        total = moved.sum(axis=1, keepdims=True)
        towards = np.sort(moved * np.sign(total), axis=1)[:, -CARRIERS:].sum(axis=1)
        np.divide(towards, np.abs(total[:, 0]), out=carried[part], where=np.abs(total[:, 0]) > SAME)
    return Movements(wins, queries - wins - losses, losses, carried)


# Many tests at once.


def holm(p: Floats) -> Floats:
    """Adjust for the chance of any false finding among all tests (Holm, step-down)."""
    order = np.argsort(p, kind="stable")
    adjusted = np.empty(len(p))
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1)))
    return adjusted


def benjamini_hochberg(p: Floats) -> Floats:
    """Adjust for the share of false findings among all findings (Benjamini and Hochberg, step-up)."""
    order = np.argsort(-p, kind="stable")
    adjusted = np.empty(len(p))
    adjusted[order] = np.minimum(1.0, np.minimum.accumulate(p[order] * len(p) / np.arange(len(p), 0, -1)))
    return adjusted
