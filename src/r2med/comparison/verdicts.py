"""What a comparison says, in sentences."""

from __future__ import annotations

from collections.abc import Iterator

from r2med.comparison.comparison import Comparison, Mover, Pair
from r2med.comparison.system_classes import FEWEST_QUERIES
from r2med.measure.significance import ALPHA, TOP_QUERIES
from r2med.pages.cells import signed


def verdict(pair: Pair, pairs: int = 1) -> str:
    """Return which of two systems is better, or that they cannot be told apart."""
    first, second = (pair.a, pair.b) if pair.difference >= 0 else (pair.b, pair.a)
    claim = f"{first} is better than {second}" if pair.significant else f"{first} cannot be told from {second}"
    adjusted = f" (adjusted for {pairs:,} pairs {probability(pair.p_adjusted)})" if pairs > 1 else ""
    return f"{claim}: {signed(abs(pair.difference))} points ({_interval(pair)}), p {probability(pair.p)}{adjusted}."


def _interval(pair: Pair) -> str:
    """Return the interval of the better system's lead."""
    if pair.low is None or pair.high is None:
        return "no interval"
    low, high = (pair.low, pair.high) if pair.difference >= 0 else (-pair.high, -pair.low)
    return f"95 % interval {signed(low)} to {signed(high)}"


def details(pair: Pair) -> str:
    """Return how a difference comes about: queries won and lost, the effect size, and what five queries carry."""
    wins, losses = (pair.wins, pair.losses) if pair.difference >= 0 else (pair.losses, pair.wins)
    parts = [f"wins {wins:,}, ties {pair.ties:,}, losses {losses:,}"]
    if pair.effect is not None:
        parts.append(f"d_z {abs(pair.effect):.2f}")
    if pair.carried is not None:
        parts.append(f"{TOP_QUERIES} queries carry {100 * pair.carried:.0f} % of the difference")
    return "; ".join(parts) + "."


def warnings(compared: Comparison) -> Iterator[str]:
    """Yield what a reader has to know before believing a verdict."""
    yield from (f"{notice}." for notice in compared.notices)
    queries = sum(map(len, compared.queries.values()))
    smallest = 0.5 ** (queries - 1)
    if smallest > ALPHA:
        yield f"{queries} queries are too few: the smallest p that they allow is {smallest:.3g}."
    for pair in compared.pairs:
        if pair.disputed:
            yield (
                f"{pair.a} and {pair.b}: the tests disagree, sign flips have p {probability(pair.p)}, "
                f"the t-test p {probability(pair.p_t or 0)}. Believe neither without more queries."
            )


def class_rule(compared: Comparison) -> str:
    """Return what the classes mean, or why there are none."""
    queries = sum(map(len, compared.queries.values()))
    if queries < FEWEST_QUERIES:
        return f"No classes: there are {queries} queries, and classes need at least {FEWEST_QUERIES}."
    return "Class: systems that cannot be told from its leader (paired sign flips, max-T over the leader's pairs)."


def detectable(compared: Comparison) -> str:
    """Return the smallest difference that these queries can show."""
    queries = sum(map(len, compared.queries.values()))
    if compared.detectable_gap is None:
        return f"These {queries:,} queries do not say what difference could be seen: no two systems differ on them."
    middle = f"; of the {len(compared.pairs):,} pairs this is the one in the middle" if len(compared.pairs) > 1 else ""
    return (
        f"With these {queries:,} queries a difference below {compared.detectable_gap:.1f} points between "
        f"{' and '.join(compared.detectable_pair or ())} cannot be told from noise (80 % power){middle}."
    )


def movement(mover: Mover) -> str:
    """Return what happened to one query."""
    return f"{mover.dataset} {mover.query}: {mover.b:.1f} → {mover.a:.1f} ({signed(mover.difference)})"


def probability(p: float) -> str:
    """Return a p as it is read: a very small one by its bound."""
    return "< 0.001" if p < 0.001 else f"= {p:.3f}"
