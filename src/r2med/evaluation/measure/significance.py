"""Test differences between systems for significance: paired by query, stratified by dataset, on plain arrays.

Values are dataset -> systems × queries. The score of a system is the unweighted mean of its dataset means. A pair is
two rows of the arrays, and its difference is the score of the first less the score of the second.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from r2med.evaluation.measure.run_variance import RunSpread, with_shift
from r2med.evaluation.measure.scores import Floats

Integers = npt.NDArray[np.intp]
Values = Mapping[str, Floats]

RESAMPLES = 10_000
LEVEL = 0.95
ALPHA = 1 - LEVEL
POWER = 0.8

EQUALITY_MARGIN = 1e-9
"""Numbers that differ by less are equal: sums of values up to 100, in another order, differ in the last digits."""

DIFFERENCES_AT_ONCE = 1 << 17
"""Number of differences in a block. It fits the cache, and limits the memory whatever the number of pairs."""

FLIPS_AT_ONCE = 1024
"""Number of sign flips of all queries in one matrix product."""


@dataclass(frozen=True)
class SystemPairs:
    """Pairs of rows to compare: `first[i]` with `second[i]`."""

    first: Integers
    second: Integers

    @classmethod
    def all(cls, systems: int) -> SystemPairs:
        """Return every pair once."""
        return cls(*np.triu_indices(systems, 1))

    @classmethod
    def against(cls, baseline: int, systems: int) -> SystemPairs:
        """Return the pairs of every other system with the baseline."""
        others = np.array([system for system in range(systems) if system != baseline], dtype=np.intp)
        return cls(others, np.full_like(others, baseline))

    def __len__(self) -> int:
        return len(self.first)

    def differences(self, rows: Floats) -> Floats:
        """Return one row of differences for each pair."""
        return rows[self.first] - rows[self.second]

    def sums(self, figures: Floats) -> Floats:
        """Return the figure of both systems together for each pair."""
        return figures[self.first] + figures[self.second]

    def blocks(self, width: int) -> Iterator[tuple[slice, SystemPairs]]:
        """Yield blocks of pairs whose rows of this width have at most `DIFFERENCES_AT_ONCE` numbers."""
        size = max(1, DIFFERENCES_AT_ONCE // max(1, width))
        for start in range(0, len(self), size):
            part = slice(start, start + size)
            yield part, SystemPairs(self.first[part], self.second[part])


def means(values: Values) -> Floats:
    """Return the score of each system."""
    return np.asarray(np.mean([rows.mean(axis=1) for rows in values.values()], axis=0))


def contributions(values: Values) -> Floats:
    """Return systems × all queries, weighted so that the sum of a row is the score of the system."""
    return np.hstack([rows / (len(values) * rows.shape[1]) for rows in values.values()])


# Sign flips: if two systems are equally good, the difference of each query could also have had the other sign.


@dataclass(frozen=True)
class FlipTest:
    """The p-values of every pair: its own, and adjusted for all pairs by the largest statistic of each flip (max-T)."""

    p: Floats
    p_adjusted: Floats


def sign_flips(
    values: Values, pairs: SystemPairs, resamples: int = RESAMPLES, seed: int = 0, spread: RunSpread | None = None
) -> FlipTest:
    """Test every pair with the same flips: p is (1 + flips that differ at least as much) / (1 + flips).

    It is exact if the queries allow no more flips than `resamples`. The adjusted p is Westfall and Young's step-down
    max-T: a pair is compared with all pairs whose statistic is not larger than its own. Statistics are differences
    divided by the root of their sum of squares, which no flip changes. Flips of queries do not show the chance of the
    runs. With `spread`, the statistic of a pair is lowered to one that Student's t finds as likely by queries alone as
    the observed one by queries and runs.
    """
    rows = _centred(values)
    scale = _scales(rows, pairs)
    statistic = np.abs(pairs.differences(rows.sum(axis=1))) / scale * _lowered(values, pairs, spread)
    order = np.argsort(statistic, kind="stable")
    ranked = SystemPairs(pairs.first[order], pairs.second[order])
    scale = scale[order, None]
    threshold = statistic[order, None] - EQUALITY_MARGIN / scale
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


def _lowered(values: Values, pairs: SystemPairs, spread: RunSpread | None) -> Floats:
    """Return the factor of each statistic that accounts for the runs: 1 if no run shifts a score."""
    factor = np.ones(len(pairs))
    if spread is None or not (shifted := pairs.sums(spread.shift) > 0).any():
        return factor
    from scipy.stats import t as student

    some = SystemPairs(pairs.first[shifted], pairs.second[shifted])
    difference = np.abs(some.differences(means(values)))
    variance, freedom = pair_variance(values, some)
    whole, joint = pair_variance(values, some, spread)
    freedom = np.where(variance > EQUALITY_MARGIN**2, freedom, 1.0)
    same = student.isf(student.sf(difference / np.sqrt(whole), joint), freedom)
    with np.errstate(divide="ignore", invalid="ignore"):
        observed = difference / np.sqrt(np.maximum(variance, EQUALITY_MARGIN**2))
        # A statistic of flips is t / √(t² + freedom), up to a constant.
        lowered = same / np.hypot(same, np.sqrt(freedom)) / (observed / np.hypot(observed, np.sqrt(freedom)))
    known = (difference > EQUALITY_MARGIN) & np.isfinite(lowered)  # a dataset of one query has no variance
    factor[shifted] = np.where(known, np.minimum(lowered, 1.0), 1.0)
    return factor


def _centred(values: Values) -> Floats:
    """Return contributions less their mean over systems. No difference changes, and smaller numbers round less."""
    rows = contributions(values)
    return np.asarray(rows - rows.mean(axis=0))


def _scales(rows: Floats, pairs: SystemPairs) -> Floats:
    scale = np.zeros(len(pairs))
    for part, block in pairs.blocks(rows.shape[1]):
        scale[part] = np.sqrt(np.square(block.differences(rows)).sum(axis=1))
    return np.where(scale > EQUALITY_MARGIN, scale, 1.0)


def _signs(rows: Floats, resamples: int, seed: int) -> Iterator[Floats]:
    """Yield signs, queries × flips: all flips except the identity if there are few, otherwise random ones."""
    queries = rows.shape[1]
    moving = np.flatnonzero(np.ptp(rows, axis=0) > EQUALITY_MARGIN)
    # Flipping all signs gives the same statistic as flipping none, so the first query that matters keeps its sign.
    free = max(0, len(moving) - 1)
    exact = free < 60 and 2**free - 1 <= resamples
    count = 2**free - 1 if exact else resamples
    # Drawn in one call, so that the flips of a pair do not depend on the number of other pairs.
    drawn = np.random.default_rng(seed).integers(0, 256, (0 if exact else count, -(-queries // 8)), dtype=np.uint8)
    for start in range(0, count, FLIPS_AT_ONCE):
        stop = min(count, start + FLIPS_AT_ONCE)
        if exact:
            bits = np.zeros((stop - start, queries), dtype=np.uint8)
            bits[:, moving[1:]] = np.arange(start + 1, stop + 1)[:, None] >> np.arange(free) & 1
        else:
            bits = np.unpackbits(drawn[start:stop], axis=1, count=queries)
        yield 1.0 - 2.0 * bits.T


# The bootstrap: the spread of the scores if the queries of each dataset were drawn again.


def bootstrap(values: Values, resamples: int = RESAMPLES, seed: int = 0) -> dict[str, Floats]:
    """Return dataset -> systems × resamples: means over queries drawn with replacement, the same for every system."""
    draws = {}
    for number, (dataset, rows) in enumerate(values.items()):
        queries = rows.shape[1]
        random = np.random.default_rng([seed, number])
        counts = random.multinomial(queries, np.full(queries, 1 / queries), size=resamples)
        draws[dataset] = rows @ counts.T.astype(np.float64) / queries
    return draws


def stratified(draws: Mapping[str, Floats]) -> Floats:
    """Return systems × resamples: the means of the dataset means."""
    total: Floats = sum(draws.values(), np.zeros(1))
    return total / len(draws)


def interval(draws: Floats) -> Floats:
    """Return low and high of each row: the percentile interval at `LEVEL`."""
    return np.quantile(draws, [ALPHA / 2, 1 - ALPHA / 2], axis=1)


# Closed forms, in addition to the tests above, and for values that need a variance.


@dataclass(frozen=True)
class TTest:
    """The stratified paired t-test. The variance of the difference is the weighted sum of the datasets' variances."""

    p: Floats
    """The p-value; NaN if a dataset has only one query, because its variance is unknown."""
    detectable: Floats
    """The smallest difference that would be detected with `POWER`, if other queries have the same variance."""
    effect: Floats
    """Cohen's d_z: the difference in units of the standard deviation of single queries' differences."""


def paired_t(values: Values, pairs: SystemPairs, spread: RunSpread | None = None) -> TTest:
    """Test every pair by Student's t, with the degrees of freedom of Welch and Satterthwaite.

    With `spread`, values are means over runs, and the test contains the chance of the runs where it is known.
    """
    from scipy.stats import t as student

    spreads = np.array([pair_variances(rows, pairs) for rows in values.values()]).reshape(len(values), -1)
    difference = pairs.differences(means(values))
    variance, freedom = pair_variance(values, pairs, spread)
    with np.errstate(divide="ignore", invalid="ignore"):
        p = 2 * student.sf(np.abs(difference) / np.sqrt(variance), freedom)
        effect = difference / np.sqrt(spreads.mean(axis=0))
    # If all queries differ by the same amount, there is no variance: a difference is then certain, or it is 0.
    flat = variance <= EQUALITY_MARGIN**2
    p = np.where(flat, np.where(np.abs(difference) > EQUALITY_MARGIN, 0.0, 1.0), p)
    return TTest(p, detectable_differences(variance, freedom), np.where(flat, np.nan, effect))


def detectable_gaps(spreads: Floats, sizes: Floats) -> Floats:
    """Return the smallest difference of each pair that is detected with `POWER`; 0 for a pair without variance.

    `spreads` and `sizes` are those of `welch`. Other sizes than those of the sample show what other numbers of queries
    would detect.
    """
    return detectable_differences(*welch(spreads, sizes))


def detectable_differences(variance: Floats, freedom: Floats) -> Floats:
    """Return the smallest difference that is detected with `POWER`, from its variance; 0 without variance."""
    from scipy.stats import t as student

    needed = student.ppf(1 - ALPHA / 2, freedom) + student.ppf(POWER, freedom)
    return np.where(variance <= EQUALITY_MARGIN**2, 0.0, needed * np.sqrt(variance))


def welch(spreads: Floats, sizes: Floats) -> tuple[Floats, Floats]:
    """Return the variance of each score and its degrees of freedom (Welch and Satterthwaite).

    `spreads` are datasets × scores, the variances of single queries. `sizes` are the numbers of queries per dataset.
    """
    parts = spreads / sizes[:, None] / len(sizes) ** 2
    variance = parts.sum(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        freedom = variance**2 / (parts**2 / (sizes[:, None] - 1)).sum(axis=0)
    return variance, freedom


def pair_variance(values: Values, pairs: SystemPairs, spread: RunSpread | None = None) -> tuple[Floats, Floats]:
    """Return the variance of each pair's difference and its degrees of freedom. `spread` adds the chance of the runs.

    The runs of two systems are taken as independent of each other.
    """
    sizes = np.array([rows.shape[1] for rows in values.values()], dtype=np.float64)
    spreads = np.array([pair_variances(rows, pairs) for rows in values.values()]).reshape(len(sizes), -1)
    variance, freedom = welch(spreads, sizes)
    if spread is None:
        return variance, freedom
    return with_shift(variance, freedom, pairs.sums(spread.shift), pairs.sums(spread.loss()))


def pair_variances(rows: Floats, pairs: SystemPairs) -> Floats:
    """Return the variance of single queries' differences for each pair; NaN for a dataset of one query."""
    if rows.shape[1] < 2:
        return np.full(len(pairs), np.nan)
    return np.concatenate(
        [np.var(block.differences(rows), axis=1, ddof=1) for _, block in pairs.blocks(rows.shape[1])] or [np.zeros(0)]
    )


@dataclass(frozen=True)
class Movements:
    """The wins, ties and losses of each pair over queries."""

    wins: Integers
    ties: Integers
    losses: Integers
    carried: Floats
    """The share of the difference that comes from five queries. Above 1, the other queries point the other way. NaN
    means no difference."""


TOP_QUERIES = 5


def movements(values: Values, pairs: SystemPairs) -> Movements:
    """Count the queries that the first system of each pair wins, ties and loses, and the share of the top five."""
    rows = contributions(values)
    queries = rows.shape[1]
    wins, losses = np.zeros((2, len(pairs)), dtype=np.intp)
    carried = np.full(len(pairs), np.nan)
    for part, block in pairs.blocks(queries):
        moved = block.differences(rows)
        wins[part] = (moved > EQUALITY_MARGIN / queries).sum(axis=1)
        losses[part] = (moved < -EQUALITY_MARGIN / queries).sum(axis=1)
        total = moved.sum(axis=1, keepdims=True)
        towards = np.sort(moved * np.sign(total), axis=1)[:, -TOP_QUERIES:].sum(axis=1)
        np.divide(towards, np.abs(total[:, 0]), out=carried[part], where=np.abs(total[:, 0]) > EQUALITY_MARGIN)
    return Movements(wins, queries - wins - losses, losses, carried)


# Correction for many tests.


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
