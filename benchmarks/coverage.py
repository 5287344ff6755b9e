"""Coverage of the 95 % intervals: how often they hold the truth, over many made-up samples whose truth is known.

    python benchmarks/coverage.py [WORDS]

WORDS are parts of names, such as κ or judge: only these intervals are computed.

One line for each kind of interval and sample size: the mean coverage over a grid of distributions, the lowest of the
grid, and the share of samples that have an interval. A sample without one does not count as covered or missed. Where
the package gives no interval because it would not keep its level, the line shows its coverage in brackets. Seeds
are fixed: the figures are the same each time.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from unittest.mock import patch

import numpy as np

from r2med.analysis.rank_correlation import kendall_tau, tau_interval
from r2med.assessment.answers import search_tables
from r2med.evaluation.measure import coefficients
from r2med.evaluation.measure.intervals import difference_intervals, group_difference_intervals, mean_intervals
from r2med.evaluation.measure.scores import Floats
from r2med.evaluation.measure.significance import SystemPairs

SIZES = (5, 10, 30)
AGENT_SIZES = (10, 30, 100)
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


# Agents that answer: a few relevant documents of a question at each step, and a confidence beside the truth.


def recall(documents: int, found: float, alike: float) -> Draw:
    """Return the share of relevant documents that a step has. Questions differ: `alike` is large if they hardly do."""

    def draw(random: np.random.Generator, shape: tuple[int, ...]) -> Floats:
        easy = random.beta(found * alike, (1 - found) * alike, shape)
        return random.binomial(documents, easy) / documents

    return draw


def sure(stated: Draw, accuracy: Callable[[Floats], Floats]) -> PairDraw:
    """Return the confidence of an agent, and 1 or 0 for right and wrong answers."""

    def draw(random: np.random.Generator, shape: tuple[int, ...]) -> tuple[Floats, Floats]:
        confidence = stated(random, shape)
        return confidence, (random.random(shape) < accuracy(confidence)).astype(np.float64)

    return draw


def brier(pair: PairDraw) -> Draw:
    def draw(random: np.random.Generator, shape: tuple[int, ...]) -> Floats:
        confidence, right = pair(random, shape)
        return (confidence - right) ** 2

    return draw


AGENTS = [
    sure(stated, accuracy)
    for stated, accuracy in product(
        (smooth(0.8, 10), smooth(0.5, 2), lambda _, shape: np.full(shape, 0.9)),
        (lambda c: c, lambda c: c - 0.3 * c, lambda c: np.full_like(c, 0.3), lambda c: np.full_like(c, 0.9)),
    )
]
STEPS = [recall(*each) for each in product((1, 3, 8), (0.1, 0.4, 0.8), (1, 5))]


def too_sure_coverage(draw: PairDraw, size: int) -> Found:
    random = np.random.default_rng(size)
    stated, right = draw(random, (TRUE_SAMPLE,))
    samples = zip(*(each.tolist() for each in draw(random, (FEW_SAMPLES, size))), strict=True)
    found = [search_tables.too_sure(*pair) for pair in samples]
    bounds = [(np.nan, np.nan) if each is None or each.low is None else (each.low, each.high) for each in found]
    return covered(float(stated.mean() - right.mean()), *np.array(bounds, dtype=float).T)


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

COEFFICIENTS: dict[str, tuple[int, Callable[[Floats], coefficients.Agreement]]] = {
    "Cohen's κ": (2, coefficients.cohen_kappa),
    "Fleiss' κ": (3, coefficients.fleiss_kappa),
    "ordinal α": (3, lambda ratings: coefficients.krippendorff_alpha(ratings, "ordinal")),
}


def quadratic_kappa(ratings: Floats) -> coefficients.Agreement:
    return coefficients.cohen_kappa(ratings, "quadratic")


def ordinal_alpha(ratings: Floats) -> coefficients.Agreement:
    return coefficients.krippendorff_alpha(ratings, "ordinal")


def ac2(categories: int) -> Callable[[Floats], coefficients.Agreement]:
    return lambda ratings: coefficients.gwet_ac1(ratings, categories, "quadratic")


RATERS = list(product(((1, 1), (3, 1), (1, 1, 2), (1, 2, 1)), (0.3, 0.6, 0.85)))
"""How often each value is given, and how often a rater sees the true value instead of guessing."""

NEW_SIZES = (10, 30, 100)
AC1_RATERS = list(product((2, 3), (*((1, 1), (3, 1), (1, 1, 2)), (19, 1), (1, 1, 18)), (0.3, 0.6, 0.85, 0.97)))
"""The number of raters as well. AC1 is meant for values of which one prevails, so the grid has such values."""
SCORERS = list(product(((1, 1, 1, 1, 1, 1), (6, 3, 1, 1, 2, 4), (12, 3, 1, 1, 1, 2)), (0.3, 0.6, 0.85)))
"""Judges who give scores of 0 to 5."""
VERDICTS = list(product(((1, 1, 1), (1, 1, 2), (1, 2, 1), (4, 1, 15), (10, 1, 10)), (0.3, 0.6, 0.85)))
"""People who say no, unsure or yes."""
WEIGHTED: dict[str, tuple[int, Callable[[Floats], coefficients.Agreement], list[tuple[tuple[int, ...], float]]]] = {
    "quadratic κ of verdicts": (2, quadratic_kappa, VERDICTS),
    "quadratic κ of scores 0 to 5": (2, quadratic_kappa, SCORERS),
    "ordinal α of verdicts": (3, ordinal_alpha, VERDICTS),
    "ordinal α of scores 0 to 5": (3, ordinal_alpha, SCORERS),
    "Gwet's AC2 of verdicts": (3, ac2(3), VERDICTS),
    "Gwet's AC2 of scores 0 to 5": (2, ac2(6), SCORERS),
}
"""Coefficients of ordered words: the number of raters, the coefficient, and the grid."""
WEIGHTED_SAMPLES = 3000


def rate(random: np.random.Generator, units: int, raters: int, weights: Sequence[int], seen: float) -> Floats:
    shares = np.array(weights) / sum(weights)
    truth = random.choice(len(shares), (units, 1), p=shares)
    guess = random.choice(len(shares), (units, raters), p=shares)
    return np.where(random.random((units, raters)) < seen, truth, guess).astype(np.float64)


def agreement_coverage(
    coefficient: Callable[[Floats], coefficients.Agreement],
    raters: int,
    case: tuple[tuple[int, ...], float],
    units: int,
    samples: int = FEW_SAMPLES,
) -> Found:
    random = np.random.default_rng(units)
    truth = coefficient(rate(random, 100_000, raters, *case)).value
    found = [coefficient(rate(random, units, raters, *case)) for _ in range(samples)]
    ends = np.array([(np.nan, np.nan) if each.low is None else each.bounds for each in found])
    return covered(truth, ends[:, 0], ends[:, 1])


def ac1_coverage(case: tuple[int, tuple[int, ...], float], units: int) -> Found:
    raters, weights, seen = case
    random = np.random.default_rng([units, raters, int(100 * seen), *weights])

    def found(count: int) -> coefficients.Agreement:
        return coefficients.gwet_ac1(rate(random, count, raters, weights, seen))

    truth = found(60_000).value
    ends = np.array([found(units).bounds for _ in range(3000)])
    return covered(truth, ends[:, 0], ends[:, 1])


# Rankings of systems: the τ of their rankings by two measures. The one relevant document of a query has a log-normal
# rank. Queries are hard for all systems, and systems spread by their own noise.

RANKED_SIZES = (10, 30, 100)
RANKING_SAMPLES = 100


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


OTHER_MEASURES: dict[str, Callable[[Floats], Floats]] = {
    "MRR": lambda found: 1 / found,
    "R@100": lambda found: (found <= 100).astype(np.float64),
}


def tau_coverage(case: tuple[Ranked, str], queries: int) -> Found:
    """Return the coverage of τ between nDCG@10 and another measure."""
    ranked, other = case
    random = ranked.seeded(queries)

    def both(found: Floats) -> list[Floats]:
        return [100 * gain(found), 100 * OTHER_MEASURES[other](found)]

    true = [rows.mean(axis=1)[:, None] for rows in both(ranked.ranks(random, TRUE_SAMPLE // 5))]
    truth = float(kendall_tau(*true)[0]) if ranked.uneven else 1.0
    ends = []
    for _ in range(RANKING_SAMPLES):
        first, second = both(ranked.ranks(random, queries))
        ends.append(tau_interval({"": first}, {"": second}) or (np.nan, np.nan))
    low, high = np.array(ends, dtype=np.float64).T
    return covered(truth, low, high)


def lines() -> Iterator[tuple[str, int, Callable[[], list[Found]], bool]]:
    """Yield a name, a size, what computes the cases of its grid, and if the package gives these intervals."""

    def over(coverage: Callable[..., Found], cases: Sequence[object], *more: object) -> Callable[[], list[Found]]:
        return lambda: [coverage(case, *more) for case in cases]

    for name, draws in MEANS.items():
        for size in SIZES:
            yield name, size, over(mean_coverage, draws, size), True
    for name, pairs in DIFFERENCES.items():
        for size in SIZES:
            yield name, size, over(difference_coverage, pairs, size), True
    for size in AGENT_SIZES:
        yield "recall of a step of an agent", size, over(mean_coverage, STEPS, size), True
    enough = search_tables.FEWEST_DECIDED
    with patch.object(search_tables, "FEWEST_DECIDED", 2):
        for size in AGENT_SIZES:
            yield "Brier score of an agent", size, over(mean_coverage, list(map(brier, AGENTS)), size), size >= enough
            sure_of = over(too_sure_coverage, AGENTS, size)
            yield "confidence minus accuracy of an agent", size, sure_of, size >= enough
    for queries in RANKED_SIZES:
        cases = [case for case in GROUP_CASES if case[2] * queries >= 5]
        yield "difference of two slices", queries, over(group_coverage, cases, queries), True
    for queries in RANKED_SIZES:
        cases = [case for case in GROUP_CASES if case[2] * queries >= 5]
        yield "the same by Welch's t-test", queries, over(group_coverage, cases, queries, True), False
    yield from agreement_lines(over)
    ranked = [Ranked(*each) for each in product((2, 3, 5, 10, 30), (0.0, 0.5, 2.0), (False, True))]
    ordered = list(product([each for each in ranked if each.width], OTHER_MEASURES))
    for queries in RANKED_SIZES:
        yield "τ of two measures", queries, over(tau_coverage, ordered, queries), True


Over = Callable[..., Callable[[], list[Found]]]
Line = tuple[str, int, Callable[[], list[Found]], bool]


def agreement_lines(over: Over) -> Iterator[Line]:
    with patch.object(coefficients, "FEWEST_UNITS", 2):
        for (name, (raters, coefficient)), units in product(COEFFICIENTS.items(), (*SIZES, 50)):
            yield name, units, over(partial(agreement_coverage, coefficient, raters), RATERS, units), units >= 30
    for (name, (raters, coefficient, cases)), units in product(WEIGHTED.items(), NEW_SIZES):
        if units >= coefficients.FEWEST_UNITS:  # weighted coefficients of fewer units have no interval
            coverage = partial(agreement_coverage, coefficient, raters)
            yield name, units, over(coverage, cases, units, WEIGHTED_SAMPLES), True
    for units in NEW_SIZES:
        yield "Gwet's AC1", units, over(ac1_coverage, AC1_RATERS, units), True


def main() -> None:
    words = sys.argv[1:]
    print(f"{'interval of':38} {'n':>4} {'mean':>8} {'lowest':>8} {'given':>6}")
    for name, size, compute, is_given in lines():
        if words and not any(word in name for word in words):
            continue
        coverage, given = np.array(compute()).T
        shown = [f"{100 * value:.1f}" for value in (np.nanmean(coverage), np.nanmin(coverage))]
        mean, lowest = shown if is_given else [f"({each})" for each in shown]
        print(f"{name:38} {size:4} {mean:>8} {lowest:>8} {100 * given.mean() if is_given else 0:5.0f} %", flush=True)


if __name__ == "__main__":
    main()
