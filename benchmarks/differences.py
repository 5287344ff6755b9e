"""False differences between equal systems, and the power to find a true one.

    python benchmarks/differences.py [PROCESSES]

Systems are equal, so every difference that a table calls real is false. A cell has 2, 5, 20 or 40 systems, on one
dataset of 100 queries or on eight of 50. Values of queries are normal, sparse and binary (most queries find nothing),
or normal with another spread for each system. Each of 1,000 samples is tested by 1,000 sign flips. The share of samples
with any false difference has to be at most 5 %, plus three standard errors of the simulation.

Two rules stand beside each other: all pairs are tested as one family, as r2med does; and the best system of the sample
is tested against the others, as if it had been named before. A table of its own breaks the assumption of sign flips:
equal means, but each system is skewed in another way. Then the gate is simulated (every system loses exactly the limit,
and none may be called worse), and the power: one system is 8 points better than the others.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context

import numpy as np

from r2med.evaluation.comparison.gate import gate_verdicts
from r2med.evaluation.measure.scores import Floats
from r2med.evaluation.measure.significance import ALPHA, Sample, SystemPairs, Values, means, sign_flips

SAMPLES = 1000
FLIPS = 1000
SYSTEMS = (2, 5, 20, 40)
QUERIES = {"one of 100": (100,), "eight of 50": (50,) * 8}
COMMON = 0.7
"""Share of the variance of the queries that all systems have in common: hard queries are hard for all."""
SPREAD = 25.0
SPREADS = (5.0, 25.0)
"""Smallest and largest standard deviation of a system's own part, where it differs between systems."""
EASINESS = (0.3, 2.7)
"""Parameters of the beta distribution of a query's chance to be answered: 10 % on average, most of them near 0."""
LOSS = 5.0
"""Limit of the gate in points, and the true loss of every system."""
ADVANTAGE = 8.0
"""Points that the first system is better than the others, for the power."""

Draw = Callable[[np.random.Generator, int, int], Floats]
"""Make the values of systems on the queries of one dataset."""


def normal(random: np.random.Generator, systems: int, queries: int) -> Floats:
    """Return normal values: a part that all systems share, and a part of each system."""
    return _with_common_part(random, systems, queries, np.full(systems, SPREAD * np.sqrt(1 - COMMON)))


def unequal_spread(random: np.random.Generator, systems: int, queries: int) -> Floats:
    """Return normal values whose own part has another standard deviation for each system."""
    return _with_common_part(random, systems, queries, np.linspace(*SPREADS, systems))


def binary(random: np.random.Generator, systems: int, queries: int) -> Floats:
    """Return 0 or 100. All systems have the same chance on a query, and most queries are hard."""
    easiness = random.beta(*EASINESS, queries)
    return np.where(random.random((systems, queries)) < easiness, 100.0, 0.0)


def unequal_skew(random: np.random.Generator, systems: int, queries: int) -> Floats:
    """Return values with equal means and spreads whose skew goes from strongly left to strongly right."""
    skew = np.linspace(-1.0, 1.0, systems)[:, None]
    shape = 1 / np.maximum(np.abs(skew), 0.05) ** 2
    own = (random.gamma(shape, size=(systems, queries)) - shape) / np.sqrt(shape)
    common = random.normal(0, SPREAD * np.sqrt(COMMON), queries)
    return np.asarray(50 + common + SPREAD * np.sqrt(1 - COMMON) * np.where(skew < 0, -own, own))


def _with_common_part(random: np.random.Generator, systems: int, queries: int, spreads: Floats) -> Floats:
    common = random.normal(0, SPREAD * np.sqrt(COMMON), queries)
    return np.asarray(50 + common + spreads[:, None] * random.normal(size=(systems, queries)))


EQUAL: Sequence[Draw] = (normal, binary, unequal_spread)


@dataclass(frozen=True)
class Cell:
    """One cell of the grid: how values are drawn, for how many systems and queries."""

    draw: Draw
    systems: int
    sizes: tuple[int, ...]
    advantage: float = 0.0

    def values(self, seed: int) -> Values:
        """Return one sample. The first system has the advantage."""
        random = np.random.default_rng((seed, self.systems, len(self.sizes)))
        drawn = {str(number): self.draw(random, self.systems, size) for number, size in enumerate(self.sizes)}
        for rows in drawn.values():
            rows[0] += self.advantage
        return drawn


def over_all_pairs(cell: Cell, seed: int) -> bool:
    """Return True if any pair differs, all pairs tested as one family. For power: if the first system beats another."""
    return _finds(cell, cell.values(seed), SystemPairs.all(cell.systems))


def against_the_leader(cell: Cell, seed: int) -> bool:
    """Return the same, if only the pairs with the best system of the sample are tested."""
    values = cell.values(seed)
    return _finds(cell, values, SystemPairs.against(int(means(values).argmax()), cell.systems))


def _finds(cell: Cell, values: Values, pairs: SystemPairs) -> bool:
    [test] = sign_flips([Sample.whole(values)], pairs, FLIPS)
    differs = test.p_adjusted <= ALPHA
    if cell.advantage:
        differs &= (pairs.first == 0) | (pairs.second == 0)
    return bool(differs.any())


def gate(cell: Cell, seed: int) -> bool:
    """Return True if any system is called worse, and every one loses exactly the limit."""
    values = {name: rows.copy() for name, rows in cell.values(seed).items()}
    for rows in values.values():
        rows[1:] -= LOSS
    names = [str(number) for number in range(1, cell.systems)]
    pairs = SystemPairs.against(0, cell.systems)
    return any(each.outcome == "worse" for each in gate_verdicts(names, "0", LOSS, Sample.whole(values), pairs))


Rule = Callable[[Cell, int], bool]


def share(pool: ProcessPoolExecutor, rule: Rule, cell: Cell) -> float:
    """Return the share of samples in which a rule finds something."""
    return float(np.mean(list(pool.map(partial(rule, cell), range(SAMPLES), chunksize=SAMPLES // 50))))


def table(pool: ProcessPoolExecutor, title: str, rules: Sequence[Rule], cells: Sequence[Cell]) -> Iterator[str]:
    """Yield the lines of a table in Markdown: one row for each cell, one column for each rule."""
    heads = ["values", "systems", "datasets", *(rule.__name__.replace("_", " ") for rule in rules)]
    yield f"\n{title}\n"
    yield f"| {' | '.join(heads)} |"
    yield f"|{'---|' * len(heads)}"
    names = {sizes: name for name, sizes in QUERIES.items()}
    for cell in cells:
        shares = [f"{100 * share(pool, rule, cell):.1f} %" for rule in rules]
        row = [cell.draw.__name__.replace("_", " "), str(cell.systems), names[cell.sizes], *shares]
        yield f"| {' | '.join(row)} |"


def _cells(draws: Sequence[Draw], advantage: float = 0.0) -> list[Cell]:
    return [
        Cell(draw, systems, sizes, advantage) for draw in draws for sizes in QUERIES.values() for systems in SYSTEMS
    ]


def main() -> None:
    """Print all tables."""
    rules = over_all_pairs, against_the_leader
    processes = int(sys.argv[1]) if len(sys.argv) > 1 else None
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        for lines in (
            table(pool, "Equal systems: tables with a false difference", rules, _cells(EQUAL)),
            table(pool, "Equal means, unequal skew: tables with a false difference", rules, _cells([unequal_skew])),
            table(pool, "The gate, true loss = limit: tables with a false 'worse'", [gate], _cells([normal, binary])),
            table(pool, f"Power: the first system is {ADVANTAGE:g} points better", rules, _cells(EQUAL, ADVANTAGE)),
        ):
            for line in lines:
                print(line, flush=True)


if __name__ == "__main__":
    main()
