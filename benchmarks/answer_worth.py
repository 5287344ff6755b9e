"""Coverage of the intervals of what retrieval is worth to answers, on made-up answers whose truth is known.

    python benchmarks/answer_worth.py

Answers are right or wrong by chance, with a probability that depends on the system, on how hard the question is, and
on what was retrieved for it. One line for each gap and number of questions: how often an interval is given, and how
often it contains the truth. Seeds are fixed.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from r2med.evaluation.comparison.retrieval_worth import closed_share
from r2med.evaluation.measure.intervals import difference_intervals
from r2med.evaluation.measure.scores import Floats
from r2med.evaluation.measure.significance import SystemPairs, means

QUESTIONS = (20, 50, 100, 400)
SAMPLES = 300
TRUE_QUESTIONS = 100_000

GAPS = [(-0.5, 0.5, 1.5), (0.0, 0.2, 0.4), (-1.0, -1.0, 1.0), (-2.0, 1.5, 2.0)]
"""Qualities of answers without passages, with the system's passages and with the relevant passages."""


def logistic(values: Floats) -> Floats:
    return np.asarray(1 / (1 + np.exp(-values)))


def drawn(quality: Floats, count: int, random: np.random.Generator) -> Floats:
    """Return the right answers of each quality on questions that are drawn anew, two datasets in one table."""
    hard, luck = random.normal(size=count), random.normal(size=(len(quality), count))
    chance = logistic(quality[:, None] + 0.2 + hard + 0.8 * luck)
    return (random.random(chance.shape) < chance).astype(np.float64)


def split(rows: Floats) -> dict[str, Floats]:
    """Return the questions as two datasets of the same size."""
    half = rows.shape[1] // 2
    return {"one": rows[:, :half], "two": rows[:, half:]}


def line(held: list[bool], samples: int) -> str:
    return f"{len(held) / samples:5.0%} given, {np.mean(held) if held else np.nan:5.1%} hold the truth"


def shares() -> Iterator[str]:
    for lower, middle, upper in GAPS:
        levels = np.array([lower, middle, upper])
        low, mid, high = means({"": drawn(levels, TRUE_QUESTIONS, np.random.default_rng(0))})
        truth, gain = (mid - low) / (high - low), mid - low
        for count in QUESTIONS:
            random, held, gains = np.random.default_rng(count), [], []
            for _ in range(4 * SAMPLES):
                values = split(drawn(levels, count, random))
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
    for text in shares():
        print(text, flush=True)
