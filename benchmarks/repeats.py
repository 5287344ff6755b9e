"""Coverage and false positives of intervals and tests that contain two sources of chance, queries and runs.

    python benchmarks/repeats.py [WORDS]
    python benchmarks/repeats.py docs/images/repeats.svg

WORDS are parts of names, such as test or bounded: only these lines are computed. With the name of an SVG file, the
picture of the docs is drawn instead.

Scripted systems have known variances: of the queries, of a shift that all queries of a run share, and of noise for
each query and run. Values are normal, or bounded and skewed like nDCG. The grid has 10, 30 and 100 queries; 1, 2, 3, 5
and 10 repeats; noise of none, a tenth and all of the variance of the queries; and no, a small and a large shift (a
tenth and half of the standard deviation of the queries). With a shift the grid begins at 3 repeats. A line shows the
mean of its grid, its worst cell, and beside it what a method gives that ignores the runs. The interval of a difference
contains 0 if and only if the t-test does not reject, so its coverage is 100 minus the false positives. Seeds are fixed.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from itertools import product
from pathlib import Path

import numpy as np

from r2med.evaluation.measure.intervals import mean_intervals
from r2med.evaluation.measure.run_variance import FEWEST_RUNS, RunSpread, SingleRuns, run_spread
from r2med.evaluation.measure.scores import Floats
from r2med.evaluation.measure.significance import ALPHA, Sample, SystemPairs, Values, paired_t, sign_flips
from r2med.foundation.pages.cells import Estimate
from r2med.foundation.pages.page import Dots
from r2med.foundation.pages.svg import dots

QUERIES = (10, 30, 100)
REPEATS = (1, 2, 3, 5, 10)
NOISES = (0.0, 0.1, 1.0)
"""Variance of the noise, as a share of the variance of the queries."""
SHIFTS = {"no shift": 0.0, "small shift": 0.1, "large shift": 0.5}
"""Standard deviation of the shift of a run, as a share of that of the queries."""
SAMPLES = 4000
COMMON = 0.7
"""Share of the variance of the queries that two systems have in common: hard queries are hard for both."""
FLIPS, FLIPPED = 999, 300
"""Sign flips, and samples that are tested by them."""


@dataclass(frozen=True)
class Cell:
    """One cell of the grid."""

    form: str
    queries: int
    repeats: int
    noise: float
    shift: float
    datasets: int = 1

    @property
    def random(self) -> np.random.Generator:
        numbers = [self.queries, self.repeats, int(10 * self.noise), int(10 * self.shift), self.datasets]
        return np.random.default_rng([*numbers, self.form == "bounded"])

    @property
    def is_varying(self) -> bool:
        return bool(self.noise or self.shift)


def scores(latent: Floats, form: str, centre: float) -> Floats:
    """Return points: normal values, or values between 0 and 100 of which most are small."""
    return 50 + 20 * latent if form == "normal" else 100 / (1 + np.exp(-(centre + 1.5 * latent)))


@cache
def centre_of(form: str, variance: float) -> float:
    """Return the centre with which bounded values of this variance have a mean of 30 points."""
    from scipy.optimize import brentq

    nodes, weights = np.polynomial.hermite_e.hermegauss(80)

    def excess(centre: float) -> float:
        values = scores(np.sqrt(variance) * nodes, form, centre)
        return float((weights * values).sum() / weights.sum()) - 30

    return 0.0 if form == "normal" else float(brentq(excess, -10, 10))


def shifts(cell: Cell, random: np.random.Generator, samples: int = SAMPLES) -> Floats:
    """Return the shift of each run, which its queries on all datasets share: samples × runs × 1."""
    return cell.shift * random.normal(size=(samples, cell.repeats, 1))


def tables(cell: Cell, random: np.random.Generator, hardness: Floats, shift: Floats) -> Floats:
    """Return samples × runs × queries of a system. `hardness` are the effects of the queries, samples × queries."""
    samples, queries = hardness.shape
    noise = np.sqrt(cell.noise) * random.normal(size=(samples, cell.repeats, queries))
    centre = centre_of(cell.form, 1 + cell.shift**2 + cell.noise)
    return scores(hardness[:, None] + shift + noise, cell.form, centre)


def spread_of(*systems: tuple[Cell, list[Floats]]) -> tuple[Values, RunSpread]:
    """Return the means over runs, and what the runs say. Samples of all systems become rows, one system after another.

    The tables of a system are one for each dataset.
    """
    datasets = range(len(systems[0][1]))
    values = {str(n): np.vstack([made[n].mean(axis=1) for _, made in systems]) for n in datasets}
    rows = {str(n): [table for _, made in systems for table in made[n]] for n in datasets}
    varies = [cell.is_varying for cell, made in systems for _ in made[0]]
    return values, run_spread(SingleRuns(rows, varies))


def one_system(cell: Cell) -> tuple[Values, RunSpread]:
    random = cell.random
    size = cell.queries // cell.datasets
    shift = shifts(cell, random)
    made = [tables(cell, random, random.normal(size=(SAMPLES, size)), shift) for _ in range(cell.datasets)]
    return spread_of((cell, made))


def two_systems(first: Cell, second: Cell, samples: int = SAMPLES) -> tuple[Values, RunSpread, SystemPairs]:
    """Return two equal systems on the same queries."""
    random, size = first.random, first.queries // first.datasets
    systems = [(cell, shifts(cell, random, samples)) for cell in (first, second)]
    both: tuple[list[Floats], list[Floats]] = ([], [])
    for _ in range(first.datasets):
        shared = np.sqrt(COMMON) * random.normal(size=(samples, size))
        for (cell, shift), made in zip(systems, both, strict=True):
            own = np.sqrt(1 - COMMON) * random.normal(size=(samples, size))
            made.append(tables(cell, random, shared + own, shift))
    rows = np.arange(samples)
    return *spread_of((first, both[0]), (second, both[1])), SystemPairs(rows, samples + rows)


Found = tuple[float, float]
"""A share with the chance of the runs in it, and the same share of a method that ignores the runs."""


def _held(truth: float, ends: Floats) -> float:
    given = ~np.isnan(ends[0])
    return float(np.mean(((ends[0] <= truth) & (truth <= ends[1]))[given])) if given.any() else 1.0


def mean_coverage(cell: Cell) -> Found:
    values, spread = one_system(cell)
    truth, top = (50.0, None) if cell.form == "normal" else (30.0, 100.0)
    return _held(truth, mean_intervals(values, top, spread)), _held(truth, mean_intervals(values, top))


def false_positives(first: Cell, second: Cell) -> Found:
    values, spread, pairs = two_systems(first, second)
    both, alone = (paired_t(values, pairs, each).p for each in (spread, None))
    return float(np.mean(both <= ALPHA)), float(np.mean(alone <= ALPHA))


def false_flips(first: Cell, second: Cell) -> Found:
    """Return the false positives of sign flips, each pair tested alone."""
    values, spread, _ = two_systems(first, second, FLIPPED)
    found = []
    for sample in range(FLIPPED):
        rows = np.array([sample, FLIPPED + sample])
        one = {name: each[rows] for name, each in values.items()}
        samples = (Sample.whole(one, each) for each in (spread.of(rows), None))
        tested = (sign_flips([each], SystemPairs.all(2), FLIPS, sample)[0] for each in samples)
        found.append([each.p[0] <= ALPHA for each in tested])
    both, alone = np.mean(found, axis=0).tolist()
    return both, alone


def percentile_bootstrap(cell: Cell) -> Found:
    """Return the coverage of a percentile bootstrap over queries and runs, which the package does not use."""
    random = cell.random
    made = tables(cell, random, random.normal(size=(FLIPPED, cell.queries)), shifts(cell, random, FLIPPED))
    held = []
    for table in made:
        runs = random.multinomial(cell.repeats, np.full(cell.repeats, 1 / cell.repeats), 1000) / cell.repeats
        queries = random.multinomial(cell.queries, np.full(cell.queries, 1 / cell.queries), 1000) / cell.queries
        low, high = np.quantile(np.einsum("br,rq,bq->b", runs, table, queries), [ALPHA / 2, 1 - ALPHA / 2])
        held.append(low <= (50.0 if cell.form == "normal" else 30.0) <= high)
    return float(np.mean(held)), np.nan


# The grid, and what is shown.


def grid(form: str, shift: float, datasets: int = 1) -> list[Cell]:
    repeats = [count for count in REPEATS if count >= FEWEST_RUNS or not shift]
    queries = QUERIES if datasets == 1 else QUERIES[1:]
    return [Cell(form, *each, shift, datasets) for each in product(queries, repeats, NOISES)]


def partners(cell: Cell) -> Iterator[tuple[str, Cell]]:
    """Yield the kinds of systems that a varying system is compared with."""
    yield "as many repeats", cell
    yield "a deterministic system", replace(cell, repeats=1, noise=0.0, shift=0.0)
    yield "3 repeats", replace(cell, repeats=3)


Line = tuple[str, Callable[[], list[Found]]]


def lines() -> Iterator[Line]:
    """Yield the name of each line, and what computes its cells."""
    for form, (name, shift) in product(("normal", "bounded"), SHIFTS.items()):
        cells = grid(form, shift)
        several = grid(form, shift, datasets=3)
        yield f"interval of a mean, {form}, {name}", lambda c=cells: [mean_coverage(each) for each in c]
        yield f"the same, three datasets, {form}, {name}", lambda c=several: [mean_coverage(each) for each in c]
        for number, (partner, _) in enumerate(partners(cells[0])):
            pairs = [(each, list(partners(each))[number][1]) for each in cells if shift or number != 2]
            if not pairs:
                continue
            yield f"test against {partner}, {form}, {name}", lambda p=pairs: [false_positives(*each) for each in p]
            if number != 2:
                yield (
                    f"sign flips against {partner}, {form}, {name}",
                    lambda p=pairs: [false_flips(*each) for each in p],
                )
        for number, (partner, _) in enumerate(partners(several[0])):
            pairs = [(each, list(partners(each))[number][1]) for each in several if shift or number != 2]
            if pairs:
                line = f"test, three datasets, against {partner}, {form}, {name}"
                yield line, lambda p=pairs: [false_positives(*each) for each in p]
    large = [each for each in grid("normal", SHIFTS["large shift"]) if each.repeats == FEWEST_RUNS]
    yield "percentile bootstrap (not used), normal, large shift", lambda: [percentile_bootstrap(each) for each in large]


STYLE = """<style>
text { font: 12px system-ui, sans-serif; fill: #333; } .grid { stroke: #ddd; } .ground { fill: #fff; }
.k1 { color: #0072b2; } .k2 { color: #b87f00; } .k3 { color: #d55e00; }
@media (prefers-color-scheme: dark) { text { fill: #ddd; } .grid { stroke: #444; } .ground { fill: #1c1c1e; }
.k1 { color: #56b4e9; } .k2 { color: #e69f00; } .k3 { color: #ff8c5a; } }
</style><rect class="ground" width="100%" height="100%" rx="6"/>"""


def picture() -> str:
    """Return a chart of false positives by the number of repeats, with and without the chance of the runs."""
    rows = []
    for repeats in (3, 5, 10):
        shares: dict[str, Estimate | None] = {}
        for name, shift in list(SHIFTS.items())[1:]:
            cells = [each for each in grid("bounded", shift) if each.repeats == repeats]
            both, alone = 100 * np.mean([false_positives(each, each) for each in cells], axis=0)
            shares[f"queries only, {name}"] = Estimate(float(alone))
            if name == "large shift":
                shares["queries and runs"] = Estimate(float(both))
        rows.append((f"{repeats} repeats of each system", dict(sorted(shares.items()))))  # so that colours stay
    drawn = dots(Dots(rows, "false positives in percent"))
    return drawn.replace('<svg class="chart"', '<svg xmlns="http://www.w3.org/2000/svg"').replace(">", f">{STYLE}", 1)


def main() -> None:
    words = sys.argv[1:]
    if words and words[0].endswith(".svg"):
        Path(words[0]).write_text(picture() + "\n", encoding="utf-8")
        return
    print(f"{'':66} {'mean':>6} {'worst':>6} {'runs ignored':>13} {'worst':>6}")
    for name, compute in lines():
        if words and not any(word in name for word in words):
            continue
        found = 100 * np.array(compute())
        worst = np.max if name.startswith(("test", "sign")) else np.min
        print(f"{name:66} " + " ".join(f"{n(found[:, i]):8.1f}" for i in (0, 1) for n in (np.mean, worst)), flush=True)


if __name__ == "__main__":
    main()
