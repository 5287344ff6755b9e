"""Write the result of a comparison in sentences."""

from __future__ import annotations

from collections.abc import Iterator

from r2med.evaluation.comparison.comparison import Comparison, Mover
from r2med.evaluation.comparison.gaps import Pair
from r2med.evaluation.comparison.system_classes import FEWEST_QUERIES
from r2med.evaluation.measure.run_variance import FEWEST_RUNS
from r2med.evaluation.measure.significance import ALPHA, TOP_QUERIES
from r2med.foundation.core.notices import Notice
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
    difference = f"{signed(pair.difference)} points ({_interval(pair)})"
    return f"{pair.a} {claim} {pair.b}: {difference}, p {probability(pair.p)}{adjusted}."


def _interval(pair: Pair) -> str:
    if pair.low is None or pair.high is None:
        return "no interval"
    return f"95 % interval {signed(pair.low)} to {signed(pair.high)}"


def details(pair: Pair, lower_is_better: bool = False) -> str:
    """Return the queries won and lost, the effect size, and the share of the difference from five queries."""
    pair = better_first(pair, lower_is_better)
    parts = [f"wins {pair.wins:,}, ties {pair.ties:,}, losses {pair.losses:,}"]
    if pair.effect is not None:
        parts.append(f"d_z {abs(pair.effect):.2f}")
    if pair.carried is not None and pair.wins + pair.ties + pair.losses > TOP_QUERIES:
        share = f"{TOP_QUERIES} queries make {100 * pair.carried:.0f} % of the difference"
        parts.append(f"{share}: without them its sign would change" if pair.carried > 1 else share)
    return "; ".join(parts) + "."


def chance(pair: Pair) -> str:
    """Return how much of the interval comes from the queries and from the runs, and how likely the order turns.

    If neither system varies, all chance is that of the queries, and the runs are not mentioned.
    """
    if pair.from_runs == 0 and pair.turns_on_new_queries is not None:
        return f"As many new queries turn their order with a probability of {_percent(pair.turns_on_new_queries)}."
    parts = f"{reach(pair.from_queries)} from the queries, {reach(pair.from_runs)} from the runs"
    if pair.turns_on_same_queries is None or pair.turns_on_new_queries is None:
        return f"Chance: {parts}. How likely one more run of each turns their order is not known."
    same, new = map(_percent, (pair.turns_on_same_queries, pair.turns_on_new_queries))
    return (
        f"Chance: {parts}. One more run of each turns their order with a probability of {same} on the same queries, "
        f"and of {new} on as many new queries."
    )


def reach(half: float | None) -> str:
    """Return half of the length of an interval as text: `± 1.90`, or `not known`."""
    return "not known" if half is None else f"± {half:.2f}"


def _percent(share: float) -> str:
    return "< 1 %" if 0 < share < 0.005 else f"{100 * share:.0f} %"


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
    yield from (Notice(notice, ".") for notice in compared.notices)
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


def class_rule(compared: Comparison) -> str:
    """Return a sentence that explains the classes, or why there are no classes."""
    queries = sum(map(len, compared.queries.values()))
    if queries < FEWEST_QUERIES:
        return f"No classes: there are {queries} queries, but classes need at least {FEWEST_QUERIES}."
    return "Class: the difference from the best system of the class may be chance (paired sign flips, max-T, 5 %)."


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


def movement(mover: Mover) -> str:
    """Return the change of the score of one query."""
    return f"{mover.dataset} {mover.query}: {mover.b:.1f} → {mover.a:.1f} ({signed(mover.difference)})"


def probability(p: float) -> str:
    """Return a p-value as text. A very small value is shown as `< 0.001`."""
    return "< 0.001" if p < 0.001 else f"= {p:.3f}"
