"""Coverage of the intervals of what retrieval is worth to answers, on made-up answers whose truth is known.

    python benchmarks/answer_worth.py

Answers are right or wrong by chance, with a probability that depends on the system, on how hard the question is, and
on what was retrieved for it. One line for each world and number of questions: how often an interval is given, and how
often it contains the truth. For the correlation, the plain bootstrap is shown beside it. Seeds are fixed.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from r2med.evaluation.comparison.retrieval_worth import _bootstrapped, closed_share, correlation_across_systems
from r2med.evaluation.measure.intervals import difference_intervals
from r2med.evaluation.measure.scores import Floats
from r2med.evaluation.measure.significance import SystemPairs, means

QUESTIONS = (20, 50, 100, 400)
SAMPLES = 300
TRUE_QUESTIONS = 100_000
RESAMPLES = 500

WORLDS = [(3, 0.9, 0.5), (5, 0.9, 0.5), (5, 0.0, 0.5), (5, 0.9, 0.25), (10, 0.9, 0.3), (10, 0.5, 0.3), (10, 1.0, 0.3)]
"""Number of systems, correlation of their two qualities, and the spread of the qualities."""

GAPS = [(-0.5, 0.5, 1.5), (0.0, 0.2, 0.4), (-1.0, -1.0, 1.0), (-2.0, 1.5, 2.0)]
"""Qualities of answers without passages, with the system's passages and with the relevant passages."""


def logistic(values: Floats) -> Floats:
    return np.asarray(1 / (1 + np.exp(-values)))


def qualities(systems: int, correlation: float, spread: float) -> tuple[Floats, Floats]:
    """Return two qualities of each system that correlate exactly as stated."""
    plain = np.random.default_rng(systems).normal(size=(systems, 2))
    basis, _ = np.linalg.qr(plain - plain.mean(axis=0))
    first, other = (np.sqrt(systems) * spread * basis).T
    return first, correlation * first + np.sqrt(1 - correlation**2) * other


def drawn(first: Floats, second: Floats, count: int, random: np.random.Generator) -> tuple[Floats, Floats]:
    """Return nDCG and right answers of every system on questions that are drawn anew, two datasets in one table."""
    hard, luck = random.normal(size=count), random.normal(size=(len(first), count))
    retrieval = logistic(first[:, None] - 0.3 + 1.2 * hard + luck)
    chance = logistic(second[:, None] + 0.2 + hard + 0.8 * luck)
    return retrieval, (random.random(chance.shape) < chance).astype(np.float64)


def split(rows: Floats) -> dict[str, Floats]:
    """Return the questions as two datasets of the same size."""
    half = rows.shape[1] // 2
    return {"one": rows[:, :half], "two": rows[:, half:]}


def line(held: list[bool], samples: int) -> str:
    return f"{len(held) / samples:5.0%} given, {np.mean(held) if held else np.nan:5.1%} hold the truth"


def correlations() -> Iterator[str]:
    for systems, correlation, spread in WORLDS:
        made = qualities(systems, correlation, spread)
        tables = drawn(*made, TRUE_QUESTIONS, np.random.default_rng(0))
        truth = float(np.corrcoef(means({"": tables[0]}), means({"": tables[1]}))[0, 1])
        for count in QUESTIONS:
            random, held, plain, found = np.random.default_rng(count), [], [], []
            for seed in range(SAMPLES):
                one, two = map(split, drawn(*made, count, random))
                ratio = correlation_across_systems(one, two, RESAMPLES, seed)
                low, high = _bootstrapped(one, two, RESAMPLES, seed)
                plain.append(low <= truth <= high)
                if ratio:
                    found.append(ratio.value)
                if ratio and ratio.low is not None and ratio.high is not None:
                    held.append(ratio.low <= truth + 1e-3 and truth - 1e-3 <= ratio.high)
            middle = np.median(found) if found else np.nan
            yield (
                f"{systems:2} systems, r {truth:5.2f}, {count:3} questions: median {middle:5.2f}, "
                f"{line(held, SAMPLES)}; plain bootstrap {np.mean(plain):5.1%}"
            )


def shares() -> Iterator[str]:
    for lower, middle, upper in GAPS:
        levels = np.array([lower, middle, upper])
        tables = drawn(levels, levels, TRUE_QUESTIONS, np.random.default_rng(0))
        low, mid, high = means({"": tables[1]})
        truth, gain = (mid - low) / (high - low), mid - low
        for count in QUESTIONS:
            random, held, gains = np.random.default_rng(count), [], []
            for _ in range(4 * SAMPLES):
                values = split(drawn(levels, levels, count, random)[1])
                ratio = closed_share(values)
                if ratio and ratio.low is not None and ratio.high is not None:
                    held.append(ratio.low <= truth <= ratio.high)
                least, most = difference_intervals(values, SystemPairs(np.array([1]), np.array([0])))
                gains.append(bool(least[0] <= gain <= most[0]))
            yield (
                f"share {truth:5.2f} of a gap of {100 * (high - low):4.1f} points, {count:3} questions: "
                f"{line(held, 4 * SAMPLES)}; gain {np.mean(gains):5.1%}"
            )


if __name__ == "__main__":
    for part in (shares, correlations):
        for text in part():
            print(text, flush=True)
