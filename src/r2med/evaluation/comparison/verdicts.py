"""Write the result of a comparison in sentences."""

from __future__ import annotations

from collections.abc import Iterator

from r2med.evaluation.comparison.comparison import Comparison
from r2med.evaluation.comparison.gaps import Pair
from r2med.evaluation.comparison.marks import MOST_LETTERS
from r2med.evaluation.measure.run_variance import FEWEST_RUNS
from r2med.evaluation.measure.significance import ALPHA
from r2med.foundation.pages.cells import signed


def better_first(pair: Pair, lower_is_better: bool = False) -> Pair:
    """Return a pair with the better system first. If they are equal, the order stays."""
    is_first_better = pair.difference <= 0 if lower_is_better else pair.difference >= 0
    return pair if is_first_better else pair.turned()


def verdict(pair: Pair, pairs: int = 1, lower_is_better: bool = False) -> str:
    """Return a sentence that names the better of two systems, or says that the difference is not significant."""
    pair = better_first(pair, lower_is_better)
    claim = "is better than" if pair.significant else "cannot be distinguished from"
    adjusted = f" (adjusted for {pairs:,} pairs {probability(pair.p_adjusted)})" if pairs > 1 else ""
    difference = f"{signed(pair.difference)} points ({_interval(pair, pairs)})"
    return f"{pair.a} {claim} {pair.b}: {difference}, p {probability(pair.p)}{adjusted}."


def _interval(pair: Pair, pairs: int) -> str:
    if pair.low is None or pair.high is None:
        return "no interval"
    return f"95 % interval{' of this pair alone' if pairs > 1 else ''} {signed(pair.low)} to {signed(pair.high)}"


def wins_and_losses(pair: Pair, lower_is_better: bool = False) -> str:
    """Return the numbers of queries that the better system won, tied and lost."""
    pair = better_first(pair, lower_is_better)
    return f"Wins {pair.wins:,}, ties {pair.ties:,}, losses {pair.losses:,}."


def too_few_runs(compared: Comparison) -> str:
    """Return a sentence that names the varying systems whose runs say nothing; empty if there are none."""
    few = [each for each in compared.systems if each.varies and each.runs < FEWEST_RUNS]
    if not few:
        return ""
    others = f" and {len(few) - 1} more" if len(few) > 1 else ""
    return (
        f"{few[0].system}{others}: {few[0].run_words} of a system that can give other results each time. Intervals and "
        f"tests are of the queries only; from {FEWEST_RUNS} runs on they contain the chance of the runs."
    )


def warnings(compared: Comparison) -> Iterator[str]:
    """Yield warnings that a reader should know before trusting a verdict."""
    yield from (f"{notice}." for notice in compared.notices)
    if few := too_few_runs(compared):
        yield few
    queries = sum(map(len, compared.queries.values()))
    smallest = 0.5 ** (queries - 1)
    if smallest > ALPHA:
        yield f"{queries} queries are too few: with them, p cannot be below {smallest:.3g}."
    for pair in compared.pairs:
        if pair.disputed:
            yield (
                f"{pair.a} and {pair.b}: the tests disagree. Sign flips give p {probability(pair.p)}, "
                f"the t-test gives p {probability(pair.p_t or 0)}. Trust neither without more queries."
            )


def mark_rule(compared: Comparison) -> str:
    """Return a sentence that explains the marks."""
    method = "paired sign flips, adjusted p at most 0.05"
    if compared.baseline:
        return f"Mark: the test of the system against {compared.baseline} ({method})."
    if any(mark.letters for mark in compared.marks.values()):
        return f"Mark: two systems share a letter unless they differ ({method})."
    return (
        f"Mark: how many systems each is better and worse than ({method}); letters would be more than {MOST_LETTERS}."
    )


def pairs_tested(compared: Comparison) -> str:
    """Return a sentence with the number of pairs that p is adjusted for; empty for one pair."""
    if compared.tested == 1:
        return ""
    if compared.tested > len(compared.pairs):
        return (
            f"The baseline {compared.baseline} is the best system, and no lock names it: p is adjusted for all "
            f"{compared.tested:,} pairs, not only for its own."
        )
    return f"{compared.tested:,} pairs were tested, and p is adjusted for all of them. Fewer pairs give smaller p."


def detectable(compared: Comparison) -> str:
    """Return a sentence with the smallest difference that these queries can show."""
    queries = sum(map(len, compared.queries.values()))
    if compared.detectable_gap is None:
        return f"These {queries:,} queries cannot show a difference: all systems have equal scores on them."
    middle = f"; this is the median of {len(compared.pairs):,} pairs" if len(compared.pairs) > 1 else ""
    return (
        f"With these {queries:,} queries, a difference below {compared.detectable_gap:.1f} points between "
        f"{' and '.join(compared.detectable_pair or ())} cannot be distinguished from noise (80 % power){middle}."
    )


def probability(p: float) -> str:
    """Return a p-value as text. A very small value is shown as `< 0.001`."""
    return "< 0.001" if p < 0.001 else f"= {p:.3f}"
