"""Compare systems by their records, and test which differences are significant. Values are points (measure × 100)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from r2med.evaluation.comparison.gaps import (
    Pair,
    SlicePair,
    dataset_samples,
    middle_pair,
    slice_samples,
    tested_gaps,
)
from r2med.evaluation.comparison.gate import GateVerdict, gate_verdicts
from r2med.evaluation.comparison.largest_group import largest_group
from r2med.evaluation.comparison.marks import Mark, marks
from r2med.evaluation.comparison.shared_data import labelled_records, shared_values
from r2med.evaluation.comparison.standings import (
    MEASURE,
    Standing,
    known_number,
    single_runs,
    slice_facts,
    standings,
)
from r2med.evaluation.measure import Measure, significance
from r2med.evaluation.measure.measures import heading
from r2med.evaluation.measure.run_variance import run_spread
from r2med.evaluation.measure.scores import Floats
from r2med.evaluation.measure.significance import EQUALITY_MARGIN, RESAMPLES, Sample, SystemPairs, means
from r2med.evaluation.measure.slices import slices
from r2med.evaluation.records.stored_records import RecordCollection, equal_repeats, missing_repeats
from r2med.evaluation.records.used_labels import AS_PUBLISHED, used_labels
from r2med.foundation.core.errors import UserError, unknown
from r2med.foundation.core.spec import named_system
from r2med.foundation.text.plurals import counted


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
    tested: int
    """Number of pairs that were tested, which p-values are adjusted for. These are `pairs`. If the baseline is the best
    system and no lock names it, they are all pairs: it may have been chosen because of its scores."""
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
    gate: tuple[GateVerdict, ...] = ()
    """Whether each system is worse than the baseline by more than the given points, if this was asked for."""
    files: tuple[Path, ...] = ()
    """The tables and the figure that were written."""

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

    @property
    def marks(self) -> dict[str, Mark]:
        """The mark of each system over all datasets, the best system first, counted from `pairs`."""
        sign = -1 if self.lower_is_better else 1
        ordered = [(pair.a, pair.b) if sign * pair.difference >= 0 else (pair.b, pair.a) for pair in self.pairs]
        tested = [(*pair, each.significant) for pair, each in zip(ordered, self.pairs, strict=True)]
        return marks([each.system for each in self.ranked], tested)

    @property
    def mark_words(self) -> dict[str, str]:
        """The marks in words. With a baseline they say how each system compares with it."""
        if not self.baseline:
            return {system: str(mark) for system, mark in self.marks.items()}
        verdicts = {system: mark.against_one for system, mark in self.marks.items()}
        return verdicts | {self.baseline: "baseline"}

    def as_json(self) -> dict[str, Any]:
        """Return the comparison as plain values for JSON. Differences are in points."""
        return {
            "measure": self.measure,
            "baseline": self.baseline or None,
            "datasets": {dataset: len(queries) for dataset, queries in self.queries.items()},
            "systems": [standing.system for standing in self.systems],
            "means": {standing.system: asdict(standing) for standing in self.systems},
            "pairs": list(map(asdict, self.pairs)),
            "tested": self.tested,
            "marks": {system: asdict(mark) for system, mark in self.marks.items()},
            "detectable_gap": self.detectable_gap,
            "detectable_pair": self.detectable_pair,
            "slices": [asdict(each) for each in self.slices],
            "notices": list(self.notices),
            "labels": self.labels,
            **({"gate": [{**asdict(each), "outcome": each.outcome} for each in self.gate]} if self.gate else {}),
            **({"files": list(map(str, self.files))} if self.files else {}),
        }


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
    is_locked: bool = False,
    worse_than: float | None = None,
) -> Comparison:
    """Compare the largest group of systems that were run on the same datasets, or on the same ones of `data`.

    With `keep_systems`, all systems are compared, on the datasets that all of them were run on. With `is_locked`, the
    baseline was named before the scores were seen. With `worse_than`, each system has a verdict: is it worse than the
    baseline by more than these points?
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
    signed = values if not lower else {name: -rows for name, rows in values.items()}
    tested = pairs
    if baseline and not is_locked and _is_best(means(signed), names.index(baseline)):
        tested = pairs.with_all_others(len(names))
    test = partial(tested_gaps, pairs=pairs, tested=tested, resamples=resamples, seed=seed)
    [overall] = test([Sample.whole(values, spread)])
    by_dataset = test(dataset_samples(values, single)) if len(values) > 1 else [overall]
    student = significance.paired_t(values, pairs, spread)
    moved = significance.movements(values, pairs)
    middle = middle_pair(student.detectable)
    cut = [each for kind in slice_by for each in slices(kind, slice_facts(collection, queries))]
    return Comparison(
        measure=measure,
        systems=tuple(standings(names, values, single)),
        pairs=tuple(
            Pair(
                **vars(gap),
                a=names[a],
                b=names[b],
                p_t=known_number(student.p[i]),
                wins=int((moved.losses if lower else moved.wins)[i]),
                ties=int(moved.ties[i]),
                losses=int((moved.wins if lower else moved.losses)[i]),
                datasets={dataset: each[i] for dataset, each in zip(values, by_dataset, strict=True)},
            )
            for i, (gap, a, b) in enumerate(zip(overall, pairs.first, pairs.second, strict=True))
        ),
        detectable_gap=None if middle is None else float(student.detectable[middle]),
        detectable_pair=None if middle is None else (names[pairs.first[middle]], names[pairs.second[middle]]),
        baseline=baseline,
        queries=queries,
        tested=len(tested),
        slices=tuple(
            SlicePair(**vars(gap), kind=each.kind, label=each.label, queries=len(each), a=names[a], b=names[b])
            for each, gaps in zip(cut, test(slice_samples(cut, values, single)), strict=True)
            for a, b, gap in zip(pairs.first, pairs.second, gaps, strict=True)
        ),
        notices=(
            *notices,
            *left_out,
            *missing_repeats(collection),
            *equal_repeats(collection),
        ),
        labels=used_labels(kept.record for kept in collection if kept.record.dataset.name in queries),
        resamples=resamples,
        seed=seed,
        gate=()
        if worse_than is None
        else gate_verdicts([names[a] for a in pairs.first], baseline, worse_than, Sample.whole(signed, spread), pairs),
    )


def _pairs(names: Sequence[str], baseline: str) -> SystemPairs:
    if len(names) < 2:
        raise UserError(f"a comparison needs two systems, but there is {f'only {names[0]}' if names else 'none'}")
    if not baseline:
        return SystemPairs.all(len(names))
    if baseline not in names:
        raise unknown("baseline", baseline, names)
    return SystemPairs.against(names.index(baseline), len(names))


def _is_best(scores: Floats, system: int) -> bool:
    return bool(scores[system] >= scores.max() - EQUALITY_MARGIN)
