"""Group systems into classes: a leader, and the systems that a paired test does not distinguish from it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from r2med.evaluation.measure.run_variance import RunSpread
from r2med.evaluation.measure.significance import ALPHA, RESAMPLES, SystemPairs, Values, means, sign_flips

FEWEST_QUERIES = 20
"""Total number of queries below which there are no classes. Almost all systems would be in the first class."""


def classes(
    names: Sequence[str],
    values: Values,
    resamples: int = RESAMPLES,
    seed: int = 0,
    spread: RunSpread | None = None,
) -> dict[str, int]:
    """Return the class of each system, best system first; empty for fewer than `FEWEST_QUERIES` queries.

    The best system without a class leads the next class. It is tested against every other system by paired sign flips,
    with max-T over these pairs. Systems that the test does not reject at 5 % are in its class. A system may be in a
    better class than a system with a higher score, if its scores vary more. A system with missing values has no class.
    With `spread`, values are means over runs, and the tests contain the chance of the runs where it is known.
    """
    if sum(rows.shape[1] for rows in values.values()) < FEWEST_QUERIES:
        return {}
    figures = means(values)
    whole = np.flatnonzero(~np.isnan(figures))
    ranked = sorted(whole.tolist(), key=lambda row: (-figures[row], names[row]))
    shared = {dataset: rows[ranked] for dataset, rows in values.items()}
    runs = spread.of(np.array(ranked, dtype=np.intp)) if spread else None
    numbers = np.zeros(len(ranked), dtype=np.intp)
    while (numbers == 0).any():
        leader = int(np.argmin(numbers))
        numbers[_equal(shared, leader, resamples, seed, runs) & (numbers == 0)] = numbers.max() + 1
    return {names[row]: int(number) for row, number in zip(ranked, numbers, strict=True)}


def _equal(
    values: Values, leader: int, resamples: int, seed: int, spread: RunSpread | None
) -> np.typing.NDArray[np.bool_]:
    """Return True for the leader and for each system that the test does not distinguish from it."""
    systems = len(next(iter(values.values())))
    equal = np.ones(systems, dtype=np.bool_)
    if systems > 1:
        pairs = SystemPairs.against(leader, systems)
        equal[pairs.first] = sign_flips(values, pairs, resamples, seed, spread).p_adjusted > ALPHA
    return equal
