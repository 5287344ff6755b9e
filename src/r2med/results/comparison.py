"""Compare systems by their records: which differences are real. All figures are points, the measure × 100."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from r2med.engine.threads import map_threads
from r2med.errors import UserError, unknown
from r2med.measure import HEADLINE, Measure, significance
from r2med.measure.scores import Floats
from r2med.measure.significance import ALPHA, RESAMPLES, Pairs, Values
from r2med.measure.slices import Slice, SliceFacts, slices
from r2med.results.approximate_searches import approximate_searches
from r2med.results.collection import MAX_FAILURES, Collection, collect
from r2med.results.record import QueryFacts

MEASURE = str(HEADLINE)
MOVERS = 5


@dataclass(frozen=True)
class Interval:
    """A figure and where it would lie if other queries of the same kind had been asked."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Standing:
    """A system's figures: on each dataset that it was run on, and over all of them."""

    system: str
    mean: Interval | None
    """None where it lacks a dataset: an average over others would look like one."""
    datasets: Mapping[str, Interval]


def intervals(
    collection: Collection, measure: str = MEASURE, resamples: int = RESAMPLES, seed: int = 0
) -> dict[str, Standing]:
    """Return the figures of each system with intervals, by the bootstrap that draws queries within each dataset."""
    values = {dataset: 100 * rows for dataset, (_, rows) in collection.values(measure).items()}
    standings = _standings(collection.systems, values, significance.bootstrap(values, resamples, seed))
    return {standing.system: standing for standing in standings}


def _standings(names: Sequence[str], values: Values, draws: Mapping[str, Floats]) -> Iterator[Standing]:
    by_dataset = {dataset: _intervals(rows.mean(axis=1), draws[dataset]) for dataset, rows in values.items()}
    overall = _intervals(significance.means(values), significance.stratified(draws))
    for number, system in enumerate(names):
        mine = {dataset: each for dataset, column in by_dataset.items() if (each := column[number])}
        yield Standing(system, overall[number], mine)


def _intervals(figures: Floats, draws: Floats) -> list[Interval | None]:
    low, high = significance.interval(draws)
    rows = zip(figures.tolist(), low.tolist(), high.tolist(), strict=True)
    return [None if np.isnan(row[0]) else Interval(*row) for row in rows]


def slice_figures(
    collection: Collection, kind: str, measure: str = MEASURE, resamples: int = RESAMPLES, seed: int = 0
) -> Iterator[tuple[Slice, list[Interval | None]]]:
    """Yield each slice of a kind with the figure of every system; None for one that lacks some of the queries."""
    known = collection.values(measure)
    values = {dataset: 100 * rows for dataset, (_, rows) in known.items()}
    for each in slices(kind, slice_facts(collection, {dataset: ids for dataset, (ids, _) in known.items()})):
        part = each.cut(values)
        draws = significance.stratified(significance.bootstrap(part, resamples, seed))
        yield each, _intervals(significance.means(part), draws)


def classes(figures: Mapping[str, Interval]) -> dict[str, int]:
    """Return the class of each system, the best first: 1 for the leader and those that cannot be told from it.

    The leader of a class is the best system that remains, its lower bound the anchor: going down, a system belongs
    while its upper bound reaches the anchor, and the first that does not leads the next class.
    """
    ranked = sorted(figures, key=lambda system: (-figures[system].value, system))
    numbers: dict[str, int] = {}
    number, anchor = 0, float("inf")
    for system in ranked:
        if figures[system].high < anchor:
            number, anchor = number + 1, figures[system].low
        numbers[system] = number
    return numbers


@dataclass(frozen=True)
class Gap:
    """The difference of two systems on some queries: the first's figure less the second's."""

    difference: float
    low: float
    high: float
    p: float
    p_adjusted: float
    """For all pairs that were tested on these queries: Holm's against one baseline, max-T's otherwise. For slices it is
    Benjamini and Hochberg's, over all pairs and slices."""

    @property
    def significant(self) -> bool:
        """Tell whether the difference is real, with all that was tested in view."""
        return self.p_adjusted <= ALPHA


@dataclass(frozen=True)
class Mover:
    """A query on which two systems differ."""

    dataset: str
    query: str
    a: float
    b: float

    @property
    def difference(self) -> float:
        """The points that the first system has more."""
        return self.a - self.b


@dataclass(frozen=True)
class Pair(Gap):
    """Two systems over all datasets."""

    a: str
    b: str
    p_t: float | None
    """The stratified paired t-test's; None where a dataset has one query only."""
    effect: float | None
    """Cohen's d_z."""
    wins: int
    ties: int
    losses: int
    carried: float | None
    """The share of the difference that five queries carry; above 1, the others speak against it."""
    datasets: Mapping[str, Gap]

    @property
    def disputed(self) -> bool:
        """Tell whether the t-test says another thing than the sign flips."""
        return self.p_t is not None and (self.p <= ALPHA) != (self.p_t <= ALPHA)


@dataclass(frozen=True)
class SlicePair(Gap):
    """Two systems on one slice of the queries."""

    kind: str
    label: str
    queries: int
    a: str
    b: str


@dataclass(frozen=True, repr=False)
class Comparison:
    """Systems with their figures, every pair of them that was asked for, and what these queries can tell at all."""

    measure: str
    systems: tuple[Standing, ...]
    pairs: tuple[Pair, ...]
    detectable_gap: float | None
    """The difference that is seen in 80 % of such comparisons, for the pair in the middle; None if nothing differs."""
    baseline: str
    queries: Mapping[str, tuple[str, ...]]
    slices: tuple[SlicePair, ...] = ()
    notices: tuple[str, ...] = ()
    _values: Values = field(default_factory=dict, repr=False, compare=False)

    def __repr__(self) -> str:
        best = self.ranked[0] if self.systems else None
        leader = f"; best: {best.system} {best.mean.value:.2f}" if best and best.mean else ""
        sizes = f"{len(self.systems)} systems, {len(self.datasets)} datasets, {len(self.pairs)} pairs"
        return f"Comparison({self.measure} × 100, {sizes}{leader})"

    @property
    def datasets(self) -> list[str]:
        """The datasets that all systems were run on."""
        return list(self.queries)

    @property
    def ranked(self) -> list[Standing]:
        """The systems, the best first."""
        return sorted(self.systems, key=lambda each: (-each.mean.value if each.mean else 0.0, each.system))

    def movers(self, pair: Pair, count: int = MOVERS) -> list[Mover]:
        """Return the queries on which two systems differ most."""
        names = [standing.system for standing in self.systems]
        a, b = names.index(pair.a), names.index(pair.b)
        labels = [(dataset, query) for dataset, queries in self.queries.items() for query in queries]
        scores = np.hstack([rows[[a, b]] for rows in self._values.values()])
        moved = np.abs(scores[0] - scores[1])
        order = np.argsort(-moved, kind="stable")[:count]
        return [
            Mover(*labels[position], *scores[:, position].tolist())
            for position in order.tolist()
            if moved[position] > significance.SAME
        ]

    def as_json(self) -> dict[str, Any]:
        """Return it as plain values: differences in points, p as they are."""
        return {
            "measure": self.measure,
            "baseline": self.baseline or None,
            "datasets": {dataset: len(queries) for dataset, queries in self.queries.items()},
            "systems": [standing.system for standing in self.systems],
            "means": {standing.system: asdict(standing) for standing in self.systems},
            "pairs": [{**asdict(pair), "movers": list(map(asdict, self.movers(pair)))} for pair in self.pairs],
            "detectable_gap": self.detectable_gap,
            "slices": [asdict(each) for each in self.slices],
            "notices": list(self.notices),
        }


def compare(
    *sources: str | Path,
    results: str | Path = "results",
    max_failures: float = MAX_FAILURES,
    measure: str = MEASURE,
    baseline: str = "",
    slice_by: Sequence[str] = (),
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Comparison:
    """Compare systems: `sources` are record files, folders of them, or names of systems whose records lie in `results`.

    Without a baseline every pair is compared, with one each other system with it. Raises UserError if there are not two
    systems that were run on the same data.
    """
    return comparison(collect(sources, results, max_failures), measure, baseline, slice_by, resamples, seed)


def comparison(
    collection: Collection,
    measure: str = MEASURE,
    baseline: str = "",
    slice_by: Sequence[str] = (),
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Comparison:
    """Compare the systems of a collection on the datasets that all of them were run on."""
    measure = str(Measure.parse(measure))
    names = list(collection.systems)
    pairs = _pairs(names, baseline)
    queries, values, notices = _shared(collection, measure)
    draws = significance.bootstrap(values, resamples, seed)
    test = partial(_test, pairs=pairs, holm=bool(baseline), resamples=resamples, seed=seed)
    parts = [({name: rows}, {name: draws[name]}) for name, rows in values.items()]
    overall, *by_dataset = map_threads(lambda part: test(*part), [(values, draws), *parts])
    student = significance.paired_t(values, pairs)
    moved = significance.movements(values, pairs)
    spread = student.detectable[student.detectable > 0]
    cut = [each for kind in slice_by for each in slices(kind, slice_facts(collection, queries))]
    return Comparison(
        measure=measure,
        systems=tuple(_standings(names, values, draws)),
        pairs=tuple(
            Pair(
                **vars(gap),
                a=names[a],
                b=names[b],
                p_t=_known(student.p[i]),
                effect=_known(student.effect[i]),
                wins=int(moved.wins[i]),
                ties=int(moved.ties[i]),
                losses=int(moved.losses[i]),
                carried=_known(moved.carried[i]),
                datasets={dataset: each[i] for dataset, each in zip(values, by_dataset, strict=True)},
            )
            for i, (gap, a, b) in enumerate(zip(overall, pairs.first, pairs.second, strict=True))
        ),
        detectable_gap=float(np.median(spread)) if len(spread) else None,
        baseline=baseline,
        queries=queries,
        slices=tuple(_slice_pairs(cut, values, names, pairs, resamples, seed)),
        notices=(*notices, *approximate_searches(kept.record for kept in collection)),
        _values=values,
    )


def _pairs(names: Sequence[str], baseline: str) -> Pairs:
    if len(names) < 2:
        raise UserError(f"two systems are needed to compare, there is {names[0] if names else 'none'}")
    if not baseline:
        return Pairs.all(len(names))
    if baseline not in names:
        raise unknown("baseline", baseline, names)
    return Pairs.against(names.index(baseline), len(names))


def _shared(collection: Collection, measure: str) -> tuple[dict[str, tuple[str, ...]], dict[str, Floats], list[str]]:
    """Return the queries and the values of the datasets that all systems have, and a line for each other one."""
    queries, values, notices = {}, {}, []
    for dataset, (ids, rows) in collection.values(measure).items():
        lacking = [system for system, row in zip(collection.systems, rows, strict=True) if np.isnan(row).any()]
        if lacking:
            others = f" and {len(lacking) - 1} more" if len(lacking) > 1 else ""
            notices.append(f"{dataset} is left out: {lacking[0]}{others} was not run on it")
        else:
            queries[dataset], values[dataset] = ids, 100 * rows
    if not values:
        number = "both" if len(collection.systems) == 2 else f"all {len(collection.systems)}"
        raise UserError(f"there is no dataset that {number} systems were run on: {notices[0]}")
    return queries, values, notices


def _test(
    values: Values, draws: Mapping[str, Floats], pairs: Pairs, holm: bool, resamples: int, seed: int
) -> list[Gap]:
    difference = pairs.differences(significance.means(values))
    low, high = significance.pair_intervals(significance.stratified(draws), pairs)
    flips = significance.sign_flips(values, pairs, resamples, seed)
    adjusted = significance.holm(flips.p) if holm else flips.p_adjusted
    return [Gap(*row) for row in np.array([difference, low, high, flips.p, adjusted]).T.tolist()]


def _slice_pairs(
    cut: Sequence[Slice], values: Values, names: Sequence[str], pairs: Pairs, resamples: int, seed: int
) -> list[SlicePair]:
    def test(each: Slice) -> list[Gap]:
        part = each.cut(values)
        return _test(part, significance.bootstrap(part, resamples, seed), pairs, False, resamples, seed)

    tested = [
        SlicePair(**vars(gap), kind=each.kind, label=each.label, queries=len(each), a=names[a], b=names[b])
        for each, gaps in zip(cut, map_threads(test, cut), strict=True)
        for a, b, gap in zip(pairs.first, pairs.second, gaps, strict=True)
    ]
    adjusted = significance.benjamini_hochberg(np.array([each.p for each in tested])).tolist()
    return [replace(each, p_adjusted=p) for each, p in zip(tested, adjusted, strict=True)]


def slice_facts(collection: Collection, queries: Mapping[str, Sequence[str]]) -> dict[str, SliceFacts]:
    """Return what the slices of some queries of each dataset depend on."""
    facts = {}
    for dataset, ids in queries.items():
        record = next(cell.record for system in collection.systems if (cell := collection.cell(system, dataset)))
        known = [record.queries.get(query, QueryFacts(words=0, positives=0)) for query in ids]
        facts[dataset] = SliceFacts(
            task=record.dataset.task,
            scenario=record.dataset.scenario,
            words=np.array([query.words for query in known]),
            positives=np.array([query.positives for query in known]),
            body_systems=tuple(query.body_system for query in known),
        )
    return facts


def _known(number: float) -> float | None:
    return None if np.isnan(number) else float(number)
