"""Coverage of the 95 % intervals: how often they hold the truth, over many made-up samples whose truth is known.

    python benchmarks/coverage.py

One line for each kind of interval and sample size: the mean coverage over a grid of distributions, the lowest of the
grid, and the share of samples that have an interval. A sample without one does not count as covered or missed. Where
the package gives no interval because it would not keep its level, the line shows its coverage in brackets. Seeds
are fixed: the figures are the same each time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from unittest.mock import patch

import numpy as np

from r2med.analysis import estimates
from r2med.analysis.rank_correlation import kendall_tau, tau_interval
from r2med.analysis.ranking_reliability import reliability_of_scores
from r2med.analysis.reliability import rank_intervals
from r2med.assessment.review import prediction_powered
from r2med.construction.judge_quality import ReviewedStratum, rates, recall_after_review
from r2med.evaluation.measure import agreement
from r2med.evaluation.measure.intervals import difference_intervals, group_difference_intervals, mean_intervals
from r2med.evaluation.measure.scores import Floats
from r2med.evaluation.measure.significance import SystemPairs, bootstrap, stratified

SIZES = (5, 10, 30)
SAMPLES = 4000
FEW_SAMPLES = 2000
"""Samples where each needs a call of its own."""
TRUE_SAMPLE = 1_000_000
"""Values whose mean is taken as the truth where no formula gives it."""

Draw = Callable[[np.random.Generator, tuple[int, ...]], Floats]
Found = tuple[float, float]
"""The coverage among samples that have an interval, and the share of these samples."""


def covered(truth: float, low: Floats, high: Floats) -> Found:
    given = ~np.isnan(low)
    held = (low <= truth + 1e-9) & (truth - 1e-9 <= high)
    return (float(held[given].mean()) if given.any() else np.nan), float(given.mean())


# Values of single queries, between 0 and 1.


def share(of: float) -> Draw:
    return lambda random, shape: (random.random(shape) < of).astype(np.float64)


def smooth(mean: float, size: float) -> Draw:
    return lambda random, shape: random.beta(mean * size, (1 - mean) * size, shape)


def mixture(zeros: float, ones: float, a: float, b: float) -> Draw:
    """Return values like nDCG@10: some are 0, some are 1, the others follow a beta distribution."""

    def draw(random: np.random.Generator, shape: tuple[int, ...]) -> Floats:
        place = random.random(shape)
        return np.select([place < zeros, place < zeros + ones], [0.0, 1.0], random.beta(a, b, shape))

    return draw


def gain(ranks: Floats) -> Floats:
    """Return nDCG@10 of one relevant document at these ranks."""
    return np.where(ranks <= 10, 1 / np.log2(1 + ranks), 0.0)


def one_document(median: float, spread: float) -> Draw:
    """Return nDCG@10 where the rank of the one relevant document is log-normal."""
    return lambda random, shape: gain(np.floor(random.lognormal(np.log(median), spread, shape)) + 1)


MEANS: dict[str, list[Draw]] = {
    "mean: shares": [share(of) for of in (0.02, 0.08, 0.15, 0.25, 0.4, 0.6, 0.75, 0.85, 0.92, 0.98)],
    "mean: smooth values": [smooth(*each) for each in product((0.05, 0.2, 0.4, 0.6, 0.8, 0.95), (1.5, 4, 20))],
    "mean: like nDCG": [
        *(
            mixture(*each)
            for each in (
                (0.7, 0.05, 2, 3), (0.5, 0.2, 2, 2), (0.4, 0.4, 1, 1), (0.2, 0.5, 3, 2),
                (0.8, 0.0, 1, 2), (0.1, 0.1, 1, 3), (0.0, 0.75, 2, 2), (0.45, 0.0, 1, 4),
            )
        ),
        *(one_document(*each) for each in product((1, 5, 30), (0.7, 2))),
    ],
}  # fmt: skip


def mean_coverage(draw: Draw, size: int) -> Found:
    random = np.random.default_rng(size)
    truth = 100 * float(draw(random, (TRUE_SAMPLE,)).mean())
    return covered(truth, *mean_intervals({"": 100 * draw(random, (SAMPLES, size))}))


# Differences of two systems on the same queries.

PairDraw = Callable[[np.random.Generator, tuple[int, ...]], tuple[Floats, Floats]]


def apart(first: Draw, second: Draw) -> PairDraw:
    return lambda random, shape: (first(random, shape), second(random, shape))


def ranks(medians: tuple[float, float], common: float, own: float) -> PairDraw:
    """Return nDCG@10 of two systems that find hard queries hard: `common` is the spread of what they share."""

    def draw(random: np.random.Generator, shape: tuple[int, ...]) -> tuple[Floats, Floats]:
        hardness = common * random.normal(size=shape)
        found = [np.exp(np.log(m) + hardness + own * random.normal(size=shape)) for m in medians]
        return gain(np.floor(found[0]) + 1), gain(np.floor(found[1]) + 1)

    return draw


def rare(changed: float) -> PairDraw:
    """Return two systems that differ on few queries only: the second finds something on these."""

    def draw(random: np.random.Generator, shape: tuple[int, ...]) -> tuple[Floats, Floats]:
        first = random.beta(1, 2, shape)
        return first, np.where(random.random(shape) < changed, np.minimum(1, first + 0.5), first)

    return draw


def skewed(a: float, b: float) -> PairDraw:
    """Return two systems of which the second never loses: most gains are small, and a few are large."""

    def draw(random: np.random.Generator, shape: tuple[int, ...]) -> tuple[Floats, Floats]:
        first = random.beta(1, 2, shape) / 2
        return first, first + random.beta(a, b, shape) / 2

    return draw


DIFFERENCES: dict[str, list[PairDraw]] = {
    "difference: smooth values": [
        apart(smooth(a, 4), smooth(b, 4)) for a, b in ((0.2, 0.2), (0.2, 0.4), (0.6, 0.8), (0.8, 0.95))
    ],
    "difference: ranks": [
        ranks(medians, *spreads)
        for medians, spreads in product(((3, 3), (3, 6), (10, 30), (1, 20)), ((1.5, 0.3), (1, 1)))
    ],
    "difference: few queries differ": [rare(changed) for changed in (0.1, 0.3, 0.5)],
    "difference: skewed gains": [skewed(a, 4 * a) for a in (0.3, 0.5, 1, 2)],
}


def difference_coverage(draw: PairDraw, size: int) -> Found:
    random = np.random.default_rng(size)
    first, second = draw(random, (TRUE_SAMPLE,))
    truth = 100 * float(first.mean() - second.mean())
    rows = 100 * np.vstack(draw(random, (SAMPLES, size)))
    return covered(
        truth, *difference_intervals({"": rows}, SystemPairs(np.arange(SAMPLES), SAMPLES + np.arange(SAMPLES)))
    )


# Differences between two separate groups of queries, as `r2med analyse difficulty` shows them.

GROUP_SAMPLES = 500
GROUPED = [*MEANS["mean: like nDCG"][::2], share(0.1), share(0.5), share(0.9), smooth(0.2, 4), smooth(0.6, 4)]
GROUP_CASES = [(GROUPED[a], GROUPED[b], part) for a in range(12) for b in range(a % 2, 12, 2) for part in (0.5, 0.25)]
"""Values of the first and of the second group, and the share of queries in the first."""


def welch_intervals(first: Floats, second: Floats) -> Floats:
    """Return the interval of Welch's t-test, which the package does not use."""
    from scipy.stats import ttest_ind

    with np.errstate(divide="ignore", invalid="ignore"):
        found = ttest_ind(first, second, axis=1, equal_var=False).confidence_interval()
    return np.array([found.low, found.high])


def group_coverage(case: tuple[Draw, Draw, float], queries: int, is_welch: bool = False) -> Found:
    first, second, part = case
    random = np.random.default_rng(queries)
    truth = 100 * float(first(random, (TRUE_SAMPLE // 5,)).mean() - second(random, (TRUE_SAMPLE // 5,)).mean())
    size = int(part * queries)
    groups = 100 * first(random, (GROUP_SAMPLES, size)), 100 * second(random, (GROUP_SAMPLES, queries - size))
    return covered(truth, *(welch_intervals if is_welch else group_difference_intervals)(*groups))


# Agreement of raters.

COEFFICIENTS: dict[str, tuple[int, Callable[[Floats], agreement.Agreement]]] = {
    "Cohen's κ": (2, agreement.cohen_kappa),
    "Fleiss' κ": (3, agreement.fleiss_kappa),
    "ordinal α": (3, lambda ratings: agreement.krippendorff_alpha(ratings, "ordinal")),
}
SCORE_COEFFICIENTS: dict[str, tuple[int, Callable[[Floats], agreement.Agreement]]] = {
    "quadratic κ": (2, lambda ratings: agreement.cohen_kappa(ratings, "quadratic")),
    "ordinal α": (3, lambda ratings: agreement.krippendorff_alpha(ratings, "ordinal")),
}
RATERS = list(product(((1, 1), (3, 1), (1, 1, 2), (1, 2, 1)), (0.3, 0.6, 0.85)))
"""How often each value is given, and how often a rater sees the true value instead of guessing."""

NEW_SIZES = (10, 30, 100)
AC1_RATERS = list(product((2, 3), (*((1, 1), (3, 1), (1, 1, 2)), (19, 1), (1, 1, 18)), (0.3, 0.6, 0.85, 0.97)))
"""The number of raters as well. AC1 is meant for values of which one prevails, so the grid has such values."""
SCORERS = list(product(((1, 1, 1, 1, 1, 1), (6, 3, 1, 1, 2, 4), (12, 3, 1, 1, 1, 2)), (0.3, 0.6, 0.85)))
"""Judges who give scores of 0 to 5."""


def rate(random: np.random.Generator, units: int, raters: int, weights: Sequence[int], seen: float) -> Floats:
    shares = np.array(weights) / sum(weights)
    truth = random.choice(len(shares), (units, 1), p=shares)
    guess = random.choice(len(shares), (units, raters), p=shares)
    return np.where(random.random((units, raters)) < seen, truth, guess).astype(np.float64)


def agreement_coverage(name: str, case: tuple[tuple[int, ...], float], units: int, samples: int = FEW_SAMPLES) -> Found:
    random = np.random.default_rng(units)
    raters, coefficient = (SCORE_COEFFICIENTS if case in SCORERS else COEFFICIENTS)[name]
    truth = coefficient(rate(random, 100_000, raters, *case)).value
    found = [coefficient(rate(random, units, raters, *case)) for _ in range(samples)]
    ends = np.array([(np.nan, np.nan) if each.low is None else each.bounds for each in found])
    return covered(truth, ends[:, 0], ends[:, 1])


def ac1_coverage(case: tuple[int, tuple[int, ...], float], units: int) -> Found:
    raters, weights, seen = case
    random = np.random.default_rng([units, raters, int(100 * seen), *weights])

    def found(count: int) -> agreement.Agreement:
        return agreement.gwet_ac1(rate(random, count, raters, weights, seen))

    truth = found(60_000).value
    ends = np.array([found(units).bounds for _ in range(400)])
    return covered(truth, ends[:, 0], ends[:, 1])


# Spearman's correlation over queries: of normal values, and of counts with ties.


def spearman_coverage(case: tuple[float, bool], size: int) -> Found:
    correlation, tied = case
    random = np.random.default_rng(size)

    def pair(count: int) -> Floats:
        values = random.multivariate_normal([0, 0], [[1, correlation], [correlation, 1]], count).T
        return np.round(2 * values) if tied else values

    from scipy.stats import spearmanr

    truth = float(spearmanr(*pair(200_000)).statistic)
    found = [estimates.correlation_interval(*pair(size)) for _ in range(FEW_SAMPLES)]
    ends = [(np.nan, np.nan) if each is None or each.low is None else (each.low, each.high) for each in found]
    low, high = np.array(ends, dtype=np.float64).T
    return covered(truth, low, high)


# The share of judges' labels that people accept.


def accepted_coverage(case: tuple[float, int], seen: int) -> Found:
    share_accepted, informative = case
    random = np.random.default_rng([seen, informative])
    held, given = [], []
    for _ in range(FEW_SAMPLES):
        accepted = (random.random(400) < share_accepted).astype(np.float64)
        scores = np.clip(0.3 + 0.4 * accepted * informative + random.normal(0, 0.25, 400), 0, 1)
        reviewed = random.choice(400, seen, replace=False)
        found = prediction_powered.share(scores, reviewed, accepted[reviewed])
        low, high = (found.low, found.high) if found else (None, None)
        given.append(low is not None and high is not None)
        held.append(low is not None and high is not None and low <= accepted.mean() <= high)
    return (float(np.mean(np.array(held)[given])) if any(given) else np.nan), float(np.mean(given))


# Rates of a judge, and label recall, from a sample with equal numbers of each label.


@dataclass(frozen=True)
class Pool:
    """Candidates by the judge's label (positive, discarded, negative), and the shares that people would accept."""

    sizes: tuple[int, int, int]
    accepted: tuple[float, float, float]

    @property
    def relevant(self) -> list[int]:
        return [round(size * share) for size, share in zip(self.sizes, self.accepted, strict=True)]

    def truths(self) -> tuple[float, float, float, float]:
        """Return sensitivity, specificity, precision, and the number of relevant candidates that are not positive."""
        positive, *others = self.relevant
        wrong = self.sizes[0] - positive
        right = sum(self.sizes[1:]) - sum(others)
        return positive / (positive + sum(others)), right / (right + wrong), positive / self.sizes[0], sum(others)


POOLS = [
    Pool(sizes, shares)
    for sizes in ((200, 150, 650), (60, 40, 900), (300, 300, 300), (100, 100, 9800))
    for shares in product((0.7, 0.9, 0.98), (0.1, 0.5), (0.0, 0.01, 0.1))
]
RATES = ("sensitivity of a judge", "specificity of a judge", "precision of a judge", "label recall")


def rate_coverages(pool: Pool, reviewed: int) -> list[Found]:
    """Return the coverage of each of `RATES` for samples of this many candidates."""
    random = np.random.default_rng([reviewed, *pool.sizes, *pool.relevant])
    *shares, missed = pool.truths()
    held: list[list[float]] = [[] for _ in RATES]
    for _ in range(200):
        strata = []
        for number, (size, relevant) in enumerate(zip(pool.sizes, pool.relevant, strict=True)):
            drawn = len(range(number, reviewed, 3))
            accepted = int(random.hypergeometric(relevant, size - relevant, drawn))
            strata.append(ReviewedStratum(size, accepted, drawn - accepted))
        positive, *other = strata
        found = rates([positive], other)
        corrected = sum(each.accepted for each in other)
        recall = (pool.relevant[0] + corrected) / (pool.relevant[0] + missed)
        shown = found.sensitivity, found.specificity, found.precision, recall_after_review([positive], other)
        for row, each, truth in zip(held, shown, [*shares, recall], strict=True):
            low, high = each.bounds if each and each.low is not None else (np.nan, np.nan)
            row.append(np.nan if np.isnan(low) else float(low - 1e-9 <= truth <= high + 1e-9))
    given = [float(np.mean(~np.isnan(each))) for each in held]
    return [(float(np.nanmean(each)) if share else np.nan, share) for each, share in zip(held, given, strict=True)]


# Ranks of systems, as `r2med analyse reliability` shows them: the bootstrap over queries.


def rank_coverage(case: tuple[int, float], queries: int) -> Found:
    """Return how often a system's true rank is in its interval; true means are `gap` points apart."""
    systems, gap = case
    random = np.random.default_rng([queries, systems, int(10 * gap)])
    truth = np.arange(1, systems + 1)
    held = []
    for number in range(FEW_SAMPLES // 4):
        # Single queries spread by 30 points (standard deviation), and the difference of two systems by 20.
        hardness = random.normal(0, 26, queries)
        values = 50 - gap * truth[:, None] + hardness + random.normal(0, 14, (systems, queries))
        low, high = rank_intervals(stratified(bootstrap({"": values}, 1000, seed=number)))
        held.append((low <= truth) & (truth <= high))
    return float(np.mean(held)), 1.0


# Rankings of systems: the reliability of their scores, and the τ of their rankings by two measures. The one relevant
# document of a query has a log-normal rank. Queries are hard for all systems, and systems spread by their own noise.

RANKED_SIZES = (10, 30, 100)
RANKING_SAMPLES = 100
RESAMPLED = 400
"""Bootstrap samples of the interval that the package does not use."""


@dataclass(frozen=True)
class Ranked:
    """Systems whose median ranks of the relevant document grow from 4 to 4 · exp(`width`)."""

    systems: int
    width: float
    uneven: bool
    """True if systems also spread differently. Measures then order them differently, and pairs vary differently."""

    def ranks(self, random: np.random.Generator, queries: int) -> Floats:
        medians = np.linspace(0, self.width, self.systems) + np.log(4)
        own = np.full(self.systems, 0.8)
        if self.uneven:
            own = np.linspace(0.2, 1.6, self.systems)[np.random.default_rng(1).permutation(self.systems)]
        noise = own[:, None] * random.normal(size=(self.systems, queries))
        return np.floor(np.exp(medians[:, None] + 1.2 * random.normal(size=queries) + noise)) + 1

    def seeded(self, queries: int) -> np.random.Generator:
        return np.random.default_rng([queries, self.systems, int(10 * self.width), self.uneven])


def reliability_coverage(case: tuple[Ranked, int], queries: int) -> Found:
    """Return the coverage for a number of datasets that share the queries."""
    ranked, datasets = case
    random = ranked.seeded(queries)
    many = 100 * gain(ranked.ranks(random, TRUE_SAMPLE // 5))
    centred = many - many.mean(axis=0)
    by_queries = float(centred.var(axis=1).sum()) / (ranked.systems - 1) / queries
    equal = ranked.width == 0 and not ranked.uneven
    truth = 0.0 if equal else float(many.mean(axis=1).var(ddof=1)) / by_queries
    ends = []
    for _ in range(RANKING_SAMPLES):
        parts = np.split(100 * gain(ranked.ranks(random, queries)), datasets, axis=1)
        found = reliability_of_scores({str(number): part for number, part in enumerate(parts)})
        ends.append((np.nan, np.nan) if found is None or found.low is None else (found.low, found.high))
    low, high = np.array(ends, dtype=np.float64).T
    return covered(truth, low, high)


OTHER_MEASURES: dict[str, Callable[[Floats], Floats]] = {
    "MRR": lambda found: 1 / found,
    "R@100": lambda found: (found <= 100).astype(np.float64),
}


def tau_coverage(case: tuple[Ranked, str], queries: int, resample: bool = False) -> Found:
    """Return the coverage of τ between nDCG@10 and another measure, or that of a bootstrap over queries."""
    ranked, other = case
    random = ranked.seeded(queries)

    def both(found: Floats) -> list[Floats]:
        return [100 * gain(found), 100 * OTHER_MEASURES[other](found)]

    true = [rows.mean(axis=1)[:, None] for rows in both(ranked.ranks(random, TRUE_SAMPLE // 5))]
    truth = float(kendall_tau(*true)[0]) if ranked.uneven else 1.0
    ends = []
    for number in range(RANKING_SAMPLES):
        first, second = both(ranked.ranks(random, queries))
        if resample:
            drawn = kendall_tau(*(bootstrap({"": rows}, RESAMPLED, seed=number)[""] for rows in (first, second)))
            drawn = drawn[~np.isnan(drawn)]
            ends.append(tuple(np.quantile(drawn, [0.025, 0.975])) if len(drawn) else (np.nan, np.nan))
        else:
            ends.append(tau_interval({"": first}, {"": second}) or (np.nan, np.nan))
    low, high = np.array(ends, dtype=np.float64).T
    return covered(truth, low, high)


def lines() -> Iterator[tuple[str, int, list[Found], bool]]:
    """Yield a name, a size, what was found for each case of its grid, and if the package gives these intervals."""
    for name, draws in MEANS.items():
        for size in SIZES:
            yield name, size, [mean_coverage(draw, size) for draw in draws], True
    for name, pairs in DIFFERENCES.items():
        for size in SIZES:
            yield name, size, [difference_coverage(draw, size) for draw in pairs], True
    for queries in RANKED_SIZES:
        cases = [case for case in GROUP_CASES if case[2] * queries >= 5]
        yield "difference of two slices", queries, [group_coverage(case, queries) for case in cases], True
    for queries in RANKED_SIZES:
        cases = [case for case in GROUP_CASES if case[2] * queries >= 5]
        yield "the same by Welch's t-test", queries, [group_coverage(case, queries, True) for case in cases], False
    with patch.object(agreement, "FEWEST_UNITS", 2):
        for name, units in product(COEFFICIENTS, (*SIZES, 50)):
            yield name, units, [agreement_coverage(name, case, units) for case in RATERS], units >= 30
    for name, units in product(SCORE_COEFFICIENTS, NEW_SIZES):
        found = [agreement_coverage(name, case, units, 600) for case in SCORERS]
        if not np.isnan(found[0][0]):  # α has no interval for ten units
            yield f"{name}, scores of 0 to 5", units, found, True
    for units in NEW_SIZES:
        yield "Gwet's AC1", units, [ac1_coverage(case, units) for case in AC1_RATERS], True
    with patch.object(estimates, "MIN_CORRELATED_QUERIES", 4):
        cases = list(product((0.0, 0.4, 0.8), (False, True)))
        for size in SIZES:
            yield "Spearman's ρ over queries", size, [spearman_coverage(case, size) for case in cases], size >= 10
    with patch.object(prediction_powered, "FEWEST_REVIEWS", 2):
        for size in (2, *SIZES):
            shares = list(product((0.5, 0.7, 0.8, 0.9, 0.95), (0, 1)))
            yield "accepted labels", size, [accepted_coverage(case, size) for case in shares], size >= 10
    for reviewed in NEW_SIZES:
        by_pool = [rate_coverages(pool, reviewed) for pool in POOLS]
        for number, name in enumerate(RATES):
            yield name, reviewed, [each[number] for each in by_pool], True
    for systems, queries in product((5, 10), (50, 100)):
        found = [rank_coverage((systems, gap), queries) for gap in (0.5, 1.0, 2.0, 4.0)]
        yield f"rank among {systems} systems", queries, found, True
    ranked = [Ranked(*each) for each in product((2, 3, 5, 10, 30), (0.0, 0.5, 2.0), (False, True))]
    for queries in RANKED_SIZES:
        grid = [(each, datasets) for each in ranked for datasets in (1, 2)]
        yield "reliability of scores", queries, [reliability_coverage(case, queries) for case in grid], True
    ordered = list(product([each for each in ranked if each.width], OTHER_MEASURES))
    for queries in RANKED_SIZES:
        yield "τ of two measures", queries, [tau_coverage(case, queries) for case in ordered], True
    few = [case for case in ordered if case[0].systems in (5, 10)]
    for queries in RANKED_SIZES:
        found = [tau_coverage(case, queries, resample=True) for case in few]
        yield "τ by a bootstrap over queries", queries, found, False


def main() -> None:
    print(f"{'interval of':32} {'n':>4} {'mean':>8} {'lowest':>8} {'given':>6}")
    for name, size, found, is_given in lines():
        coverage, given = np.array(found).T
        shown = [f"{100 * value:.1f}" for value in (np.nanmean(coverage), np.nanmin(coverage))]
        mean, lowest = shown if is_given else [f"({each})" for each in shown]
        print(f"{name:32} {size:4} {mean:>8} {lowest:>8} {100 * given.mean() if is_given else 0:5.0f} %", flush=True)


if __name__ == "__main__":
    main()
