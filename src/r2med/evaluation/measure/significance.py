"""Test differences between systems for significance: paired by query, stratified by dataset, on plain arrays.

Values are dataset -> systems × queries. The score of a system is the unweighted mean of its dataset means. A pair is
two rows of the arrays, and its difference is the score of the first less the score of the second.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from r2med.evaluation.measure.run_variance import RunSpread, with_shift
from r2med.evaluation.measure.scores import Floats
from r2med.foundation.engine.threads import map_threads

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

    def with_all_others(self, systems: int) -> SystemPairs:
        """Return these pairs, followed by every other pair of the systems."""
        mine = {frozenset(pair) for pair in zip(self.first.tolist(), self.second.tolist(), strict=True)}
        every = SystemPairs.all(systems)
        is_other = [{a, b} not in mine for a, b in zip(every.first.tolist(), every.second.tolist(), strict=True)]
        first, second = every.first[is_other], every.second[is_other]
        return SystemPairs(np.concatenate([self.first, first]), np.concatenate([self.second, second]))

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
class Sample:
    """The values of systems on some of all queries, such as those of one dataset or of a slice."""

    values: Values
    columns: Integers
    """The positions of its queries among all queries. Samples that share a query share its flips."""
    spread: RunSpread | None = None
    """If values are means over runs: what is known of the chance of the runs."""

    @classmethod
    def whole(cls, values: Values, spread: RunSpread | None = None) -> Sample:
        """Return the sample of all queries."""
        return cls(values, np.arange(sum(rows.shape[1] for rows in values.values())), spread)


@dataclass(frozen=True)
class FlipTest:
    """The p-values of every pair on one sample: its own, and adjusted for all pairs on all samples of the test."""

    p: Floats
    p_adjusted: Floats


def sign_flips(
    samples: Sequence[Sample], pairs: SystemPairs, resamples: int = RESAMPLES, seed: int = 0
) -> list[FlipTest]:
    """Test every pair on every sample by the same flips: p is (1 + flips that differ at least as much) / (1 + flips).

    It is exact if the queries allow no more flips than `resamples`. The adjusted p is Westfall and Young's step-down
    max-T over all pairs on all samples: any false finding among them has a chance of at most 5 %. Statistics are
    differences divided by the root of their sum of squares, which no flip changes. Flips of queries do not show the
    chance of the runs. With the spread of a sample, the statistic of a pair is lowered to one that Student's t finds
    as likely by queries alone as the observed one by queries and runs.
    """
    if not samples:
        return []
    rows = [_centred(sample.values) for sample in samples]
    scales = [_scales(each, pairs) for each in rows]
    scale = np.concatenate(scales)
    statistic = np.concatenate(
        [
            np.abs(pairs.differences(each.sum(axis=1))) / size * _lowered(sample.values, pairs, sample.spread)
            for sample, each, size in zip(samples, rows, scales, strict=True)
        ]
    )
    order = np.argsort(statistic, kind="stable")
    ranked, scale = _stacked(pairs, [len(each) for each in rows], order), scale[order, None]
    threshold = statistic[order, None] - EQUALITY_MARGIN / scale

    def counts(signs: Floats) -> Floats:
        """Return how often each statistic was reached: by its own flips, and by the largest up to its own rank."""
        flipped = np.vstack([each @ signs[sample.columns] for sample, each in zip(samples, rows, strict=True)])
        reached = np.zeros((2, len(ranked)))
        largest = np.zeros(signs.shape[1])
        for part, block in ranked.blocks(signs.shape[1]):
            statistics = np.abs(block.differences(flipped)) / scale[part]
            reached[0, part] = np.count_nonzero(statistics >= threshold[part], axis=1)
            np.maximum(statistics[0], largest, out=statistics[0])
            np.maximum.accumulate(statistics, axis=0, out=statistics)
            largest = statistics[-1]
            reached[1, part] = np.count_nonzero(statistics >= threshold[part], axis=1)
        return reached

    flips, signs = _signs(samples, rows, resamples, seed)
    own, by_largest = (1 + sum(map_threads(counts, signs), start=np.zeros((2, len(ranked))))) / (1 + flips)
    p, adjusted = np.empty((2, len(ranked)))
    p[order] = own
    adjusted[order] = np.maximum.accumulate(by_largest[::-1])[::-1]
    shape = (len(samples), len(pairs))
    return [FlipTest(*each) for each in zip(p.reshape(shape), adjusted.reshape(shape), strict=True)]


def _stacked(pairs: SystemPairs, heights: Sequence[int], order: Integers) -> SystemPairs:
    """Return the pairs of all samples, in an order, as pairs of rows of the stacked samples."""
    starts = np.cumsum([0, *heights[:-1]])[:, None]
    return SystemPairs((starts + pairs.first).ravel()[order], (starts + pairs.second).ravel()[order])


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


def _signs(
    samples: Sequence[Sample], rows: Sequence[Floats], resamples: int, seed: int
) -> tuple[int, Iterator[Floats]]:
    """Return the number of flips, and blocks of signs as queries × flips.

    These are all flips except the identity if there are few, otherwise random ones.
    """
    queries = 1 + max(int(sample.columns.max()) for sample in samples)
    moves = np.zeros(queries, dtype=np.bool_)
    for sample, each in zip(samples, rows, strict=True):
        moves[sample.columns] |= np.ptp(each, axis=0) > EQUALITY_MARGIN
    moving = np.flatnonzero(moves)
    # Flipping all signs gives the same statistic as flipping none, so the first query that matters keeps its sign.
    free = max(0, len(moving) - 1)
    if free < 60 and 2**free - 1 <= resamples:
        return 2**free - 1, _every_sign(queries, moving[1:])
    return resamples, _random_signs(queries, resamples, seed)


def _every_sign(queries: int, free: Integers) -> Iterator[Floats]:
    for start in range(1, 2 ** len(free), FLIPS_AT_ONCE):
        flips = np.arange(start, min(2 ** len(free), start + FLIPS_AT_ONCE))
        bits = np.zeros((len(flips), queries), dtype=np.uint8)
        bits[:, free] = flips[:, None] >> np.arange(len(free)) & 1
        yield np.asarray(1.0 - 2.0 * bits.T, dtype=np.float64)


def _random_signs(queries: int, count: int, seed: int) -> Iterator[Floats]:
    # Drawn in one call, so that the flips of a pair do not depend on the number of other pairs.
    drawn = np.random.default_rng(seed).integers(0, 256, (count, -(-queries // 8)), dtype=np.uint8)
    for start in range(0, count, FLIPS_AT_ONCE):
        bits = np.unpackbits(drawn[start : start + FLIPS_AT_ONCE], axis=1, count=queries)
        yield np.asarray(1.0 - 2.0 * bits.T, dtype=np.float64)


# Closed forms, in addition to the tests above, and for values that need a variance.


@dataclass(frozen=True)
class TTest:
    """The stratified paired t-test. The variance of the difference is the weighted sum of the datasets' variances."""

    p: Floats
    """The p-value; NaN if a dataset has only one query, because its variance is unknown."""
    detectable: Floats
    """The smallest difference that would be detected with `POWER`, if other queries have the same variance."""


def paired_t(values: Values, pairs: SystemPairs, spread: RunSpread | None = None) -> TTest:
    """Test every pair by Student's t, with the degrees of freedom of Welch and Satterthwaite.

    With `spread`, values are means over runs, and the test contains the chance of the runs where it is known.
    """
    from scipy.stats import t as student

    difference = pairs.differences(means(values))
    variance, freedom = pair_variance(values, pairs, spread)
    with np.errstate(divide="ignore", invalid="ignore"):
        p = 2 * student.sf(np.abs(difference) / np.sqrt(variance), freedom)
    # If all queries differ by the same amount, there is no variance: a difference is then certain, or it is 0.
    flat = variance <= EQUALITY_MARGIN**2
    p = np.where(flat, np.where(np.abs(difference) > EQUALITY_MARGIN, 0.0, 1.0), p)
    return TTest(p, detectable_differences(variance, freedom))


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


def movements(values: Values, pairs: SystemPairs) -> Movements:
    """Count the queries that the first system of each pair wins, ties and loses."""
    rows = contributions(values)
    queries = rows.shape[1]
    wins, losses = np.zeros((2, len(pairs)), dtype=np.intp)
    for part, block in pairs.blocks(queries):
        moved = block.differences(rows)
        wins[part] = (moved > EQUALITY_MARGIN / queries).sum(axis=1)
        losses[part] = (moved < -EQUALITY_MARGIN / queries).sum(axis=1)
    return Movements(wins, queries - wins - losses, losses)
