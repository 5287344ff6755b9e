"""Compare systems by their records, and test which differences are significant. Values are points (measure × 100)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from r2med.evaluation.comparison.budget_choice import BudgetChoice, CostLimit, PricedSystem, budget_choice
from r2med.evaluation.comparison.corrected_scores import CorrectedScores
from r2med.evaluation.comparison.gaps import (
    Gap,
    Pair,
    SlicePair,
    adjusted_together,
    chance_of_pair,
    gaps_from_first,
    middle_pair,
    slice_pairs,
    tested_gaps,
)
from r2med.evaluation.comparison.gate import GateVerdict, gate_verdict
from r2med.evaluation.comparison.largest_group import largest_group
from r2med.evaluation.comparison.shared_data import labelled_records, shared_values
from r2med.evaluation.comparison.standings import (
    MEASURE,
    Standing,
    known_number,
    single_runs,
    slice_facts,
    standings,
)
from r2med.evaluation.comparison.system_classes import classes
from r2med.evaluation.measure import Measure, significance
from r2med.evaluation.measure.intervals import pair_run_shares
from r2med.evaluation.measure.measures import heading
from r2med.evaluation.measure.order_turns import order_turns
from r2med.evaluation.measure.run_variance import SingleRuns, run_spread
from r2med.evaluation.measure.significance import RESAMPLES, SystemPairs, Values
from r2med.evaluation.measure.slices import slices
from r2med.evaluation.records.approximate_searches import approximate_searches
from r2med.evaluation.records.record import Record
from r2med.evaluation.records.stored_records import RecordCollection, equal_repeats, missing_repeats
from r2med.evaluation.records.training_words import stated_training
from r2med.evaluation.records.unpacked_records import unpacked_records
from r2med.evaluation.records.used_labels import AS_PUBLISHED, used_labels
from r2med.foundation.core.errors import UserError, unknown
from r2med.foundation.core.spec import named_system
from r2med.foundation.engine.threads import map_threads
from r2med.foundation.text.plurals import counted

MOVERS = 5


@dataclass(frozen=True)
class Mover:
    """A query on which two systems differ."""

    dataset: str
    query: str
    a: float
    b: float

    @property
    def difference(self) -> float:
        """The points of the first system minus those of the second."""
        return self.a - self.b


@dataclass(frozen=True, repr=False)
class Comparison:
    """The scores of systems, the tests of their pairs, and the smallest difference that these queries can detect."""

    measure: str
    """The measure that was compared."""
    systems: tuple[Standing, ...]
    """The systems. `ranked` has the best first."""
    pairs: tuple[Pair, ...]
    """Every pair of systems, or each system with the baseline."""
    detectable_gap: float | None
    """The difference that 80 % of comparisons of `detectable_pair` would detect; None if all systems are equal."""
    detectable_pair: tuple[str, str] | None
    """The pair with the median of the detectable differences."""
    baseline: str
    """The system that all others are compared with; empty if all pairs are compared."""
    queries: Mapping[str, tuple[str, ...]]
    """Dataset -> the queries that were compared."""
    slices: tuple[SlicePair, ...] = ()
    """The pairs on slices of the queries."""
    notices: tuple[str, ...] = ()
    """Remarks for the reader, one sentence each."""
    labels: str = AS_PUBLISHED
    """The labels that scored the rankings: as published, or with which overlays."""
    resamples: int = RESAMPLES
    """Number of sign flips."""
    seed: int = 0
    """Seed of the sign flips."""
    estimates: CorrectedScores | None = None
    """The scores that people's labels would give, if they were asked for."""
    gate: tuple[GateVerdict, ...] = ()
    """Whether each system is worse than the baseline by more than the given points, if this was asked for."""
    choice: BudgetChoice | None = None
    """The best system within a budget, if one was given."""
    files: tuple[Path, ...] = ()
    """The tables and figures that were written."""
    _values: Values = field(default_factory=dict, repr=False, compare=False)
    _single: SingleRuns | None = field(default=None, repr=False, compare=False)

    def __repr__(self) -> str:
        best = self.ranked[0] if self.systems else None
        leader = f"; best: {best.system} {best.mean.value:.2f}" if best and best.mean else ""
        counts = {"system": self.systems, "dataset": self.datasets, "pair": self.pairs}
        sizes = ", ".join(counted(len(each), noun) for noun, each in counts.items())
        return f"Comparison({self.measure} × 100, {sizes}{leader})"

    @property
    def datasets(self) -> list[str]:
        """The datasets that all systems were run on."""
        return list(self.queries)

    @property
    def lower_is_better(self) -> bool:
        """True if the better of two systems has the lower value."""
        return Measure.parse(self.measure).lower_is_better

    @property
    def heading(self) -> str:
        """The measure as a heading of scores in points, with its direction if lower is better."""
        return heading(self.measure)

    @property
    def ranked(self) -> list[Standing]:
        """The systems, best first."""
        sign = 1 if self.lower_is_better else -1
        return sorted(self.systems, key=lambda each: (sign * each.mean.value if each.mean else 0.0, each.system))

    def classes(self, dataset: str = "") -> dict[str, int]:
        """Return the class of each system, over all datasets or on one of them, as `system_classes.classes` does."""
        values = {dataset: self._values[dataset]} if dataset else self._values
        if self.lower_is_better:
            values = {name: -rows for name, rows in values.items()}
        single = self._single.on(dataset) if self._single and dataset else self._single
        spread = run_spread(single) if single else None
        return classes([each.system for each in self.systems], values, self.resamples, self.seed, spread)

    def against(self, leader: str, others: Sequence[str]) -> dict[str, Gap]:
        """Return the differences of some systems from one, tested together: adjusted by max-T for these tests alone."""
        if not others:
            return {}
        rows = [[each.system for each in self.systems].index(name) for name in (leader, *others)]
        values = {dataset: table[rows] for dataset, table in self._values.items()}
        spread = run_spread(self._single).of(np.array(rows)) if self._single else None
        return dict(zip(others, gaps_from_first(values, self.resamples, self.seed, spread), strict=True))

    def chosen_at(self, limit: CostLimit, prices: Mapping[str, float | None]) -> Comparison:
        """Return the comparison with the best system within a budget. `prices` are those of a query, by system."""
        priced = [PricedSystem(each.system, each.mean.value, prices[each.system]) for each in self.systems if each.mean]
        return replace(self, choice=budget_choice(limit, priced, self.against, self.lower_is_better))

    def gated(self, worse_than: float) -> Comparison:
        """Return the comparison with a verdict on each system: is it worse than the baseline by more than this?"""
        sizes = [len(queries) for queries in self.queries.values()]
        gains = [pair.turned() if self.lower_is_better else pair for pair in self.pairs]
        return replace(
            self,
            gate=tuple(
                gate_verdict(pair.a, pair.b, worse_than, (gain.difference, gain.low, gain.high), sizes)
                for pair, gain in zip(self.pairs, gains, strict=True)
            ),
        )

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
            if moved[position] > significance.EQUALITY_MARGIN
        ]

    def as_json(self) -> dict[str, Any]:
        """Return the comparison as plain values for JSON. Differences are in points."""
        return {
            "measure": self.measure,
            "baseline": self.baseline or None,
            "datasets": {dataset: len(queries) for dataset, queries in self.queries.items()},
            "systems": [standing.system for standing in self.systems],
            "means": {standing.system: asdict(standing) for standing in self.systems},
            "pairs": [{**asdict(pair), "movers": list(map(asdict, self.movers(pair)))} for pair in self.pairs],
            "classes": self.classes(),
            "detectable_gap": self.detectable_gap,
            "detectable_pair": self.detectable_pair,
            "slices": [asdict(each) for each in self.slices],
            "notices": list(self.notices),
            "labels": self.labels,
            **({"estimates": self.estimates.as_json()} if self.estimates else {}),
            **({"choice": self.choice.as_json()} if self.choice else {}),
            **({"gate": [{**asdict(each), "outcome": each.outcome} for each in self.gate]} if self.gate else {}),
            **({"files": list(map(str, self.files))} if self.files else {}),
        }


def _records(collection: RecordCollection) -> dict[str, list[Record]]:
    return {name: list(collection.records(name).values()) for name in collection.systems}


def comparison(
    collection: RecordCollection,
    measure: str = MEASURE,
    baseline: str = "",
    slice_by: Sequence[str] = (),
    resamples: int = RESAMPLES,
    seed: int = 0,
    data: Sequence[str] = (),
    *,
    keep_systems: bool = False,
) -> Comparison:
    """Compare the largest group of systems that were run on the same datasets, or on the same ones of `data`.

    With `keep_systems`, all systems are compared, on the datasets that all of them were run on.
    """
    measure = str(Measure.parse(measure))
    baseline = named_system(baseline, collection.systems)
    lower = Measure.parse(measure).lower_is_better
    collection, data, left_out = labelled_records(collection, measure, data)
    if not keep_systems:
        collection, others = largest_group(collection, baseline, bool(data))
        left_out = [*others, *left_out]
    names = list(collection.systems)
    pairs = _pairs(names, baseline)
    queries, values, notices = shared_values(collection, measure, data)
    single = single_runs(collection, measure, list(values))
    spread = run_spread(single)
    test = partial(tested_gaps, pairs=pairs, holm=bool(baseline), resamples=resamples, seed=seed)
    parts = [({name: rows}, run_spread(single.on(name))) for name, rows in values.items()]
    overall, *tested = map_threads(test, [(values, spread), *parts])
    by_dataset = adjusted_together(tested) if len(values) > 1 else tested
    student = significance.paired_t(values, pairs, spread)
    shares, turns = pair_run_shares(values, pairs, spread), order_turns(values, pairs, spread)
    moved = significance.movements(values, pairs)
    middle = middle_pair(student.detectable)
    cut = [each for kind in slice_by for each in slices(kind, slice_facts(collection, queries))]
    return Comparison(
        measure=measure,
        systems=tuple(standings(names, values, single)),
        pairs=tuple(
            Pair(
                **vars(gap),
                **chance_of_pair(gap, shares[i], turns.same_queries[i], turns.new_queries[i]),
                a=names[a],
                b=names[b],
                p_t=known_number(student.p[i]),
                effect=known_number(student.effect[i]),
                wins=int((moved.losses if lower else moved.wins)[i]),
                ties=int(moved.ties[i]),
                losses=int((moved.wins if lower else moved.losses)[i]),
                carried=known_number(moved.carried[i]),
                datasets={dataset: each[i] for dataset, each in zip(values, by_dataset, strict=True)},
            )
            for i, (gap, a, b) in enumerate(zip(overall, pairs.first, pairs.second, strict=True))
        ),
        detectable_gap=None if middle is None else float(student.detectable[middle]),
        detectable_pair=None if middle is None else (names[pairs.first[middle]], names[pairs.second[middle]]),
        baseline=baseline,
        queries=queries,
        slices=tuple(slice_pairs(cut, values, single, names, pairs, resamples, seed)),
        notices=(
            *notices,
            *left_out,
            *approximate_searches(kept.record for kept in collection),
            *(f"{name}: {words}" for name, words in stated_training(_records(collection)).items()),
            *unpacked_records(kept.record for kept in collection),
            *missing_repeats(collection),
            *equal_repeats(collection),
        ),
        labels=used_labels(kept.record for kept in collection if kept.record.dataset.name in queries),
        resamples=resamples,
        seed=seed,
        _values=values,
        _single=single,
    )


def _pairs(names: Sequence[str], baseline: str) -> SystemPairs:
    if len(names) < 2:
        raise UserError(f"a comparison needs two systems, but there is {f'only {names[0]}' if names else 'none'}")
    if not baseline:
        return SystemPairs.all(len(names))
    if baseline not in names:
        raise unknown("baseline", baseline, names)
    return SystemPairs.against(names.index(baseline), len(names))
