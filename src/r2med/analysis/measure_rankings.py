"""Does the ranking of systems depend on the measure? Correlate the rankings, and list the pairs that change places."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import numpy.typing as npt

from r2med.analysis.material import Material
from r2med.analysis.rank_correlation import MIN_QUERIES, kendall_tau, orders, tau_ap, tau_interval
from r2med.evaluation.measure.scores import Floats
from r2med.evaluation.measure.significance import ALPHA, SystemPairs, Values, means, sign_flips
from r2med.evaluation.records.stored_records import RecordCollection
from r2med.foundation.core.errors import UserError
from r2med.foundation.core.notices import Command
from r2med.foundation.pages.cells import Column, Value
from r2med.foundation.pages.estimate import Estimate
from r2med.foundation.pages.page import Dots, Section, Table

MEASURES = ("nDCG@10", "nDCG@100", "MAP@1000", "MRR", "R@10", "R@100", "P@1", "P@10")
"""Measures that are compared with each other, and with the chosen one, if all records hold them."""


@dataclass(frozen=True)
class MeasureRanking:
    """The values of all systems by one measure, in points, and the order of every pair of systems."""

    measure: str
    values: Values
    orders: Floats
    """1, -1 or 0 for each pair of systems, as in `rank_correlation.orders`."""
    significant: npt.NDArray[np.bool_]
    """True for each pair whose difference is significant, adjusted for all pairs."""

    @classmethod
    def of(cls, measure: str, values: Values) -> MeasureRanking:
        """Return the ranking by a measure."""
        figures = means(values)
        p = sign_flips(values, SystemPairs.all(len(figures))).p_adjusted
        return cls(measure, values, orders(figures[:, None])[:, 0], p <= ALPHA)

    def changes(self, other: MeasureRanking) -> npt.NDArray[np.bool_]:
        """Return True for each pair of systems that the other measure orders the other way. A tie is no change."""
        return np.asarray(self.orders * other.orders < 0)


def measures(material: Material) -> Section:
    """Return how rankings by different measures agree. Raises UserError if there are not two systems or measures."""
    if len(material.shared.systems) < 2 or not material.values:
        raise UserError(
            "measures needs two systems that were run on the same datasets: ",
            Command("run", ["bm25", "rm3 → bm25"], data="NAME"),
        )
    names = _recorded(material)
    if len(names) < 2:
        raise UserError(f"the records hold only {names[0]}: run the systems again with r2med.run to have more measures")
    rankings = [MeasureRanking.of(name, _values(material, name)) for name in names]
    changes = _changes_table(material.shared.systems, rankings)
    tables = [_agreement_table(rankings), *([changes] if changes.rows else [])]
    return Section("Measures", tables, _lead(rankings), _notes(material, rankings), name="measures")


def _recorded(material: Material) -> list[str]:
    """Return the chosen measure and the others that all records hold."""
    held = [set(next(iter(kept.record.per_query.values()), {})) for kept in material.shared]
    shared = set.intersection(*held)
    return [material.measure, *(name for name in MEASURES if name in shared and name != material.measure)]


def _values(material: Material, measure: str) -> dict[str, Floats]:
    """Return the points of a measure on the datasets that all systems share."""
    read = RecordCollection(
        {key: kept for key, kept in material.shared.cells.items() if key[1] in material.values}
    ).values(measure)
    return {name: 100 * rows for name, (_, rows) in read.items()}


def _agreement_table(rankings: Sequence[MeasureRanking]) -> Table:
    rows: list[list[Value]] = []
    chart: list[tuple[str, Mapping[str, Estimate | None]]] = []
    for first, second in combinations(rankings, 2):
        tau = _tau(first, second)
        changed = first.changes(second)
        proven = changed & first.significant & second.significant
        a, b = means(first.values), means(second.values)
        ap = None if tau is None else (tau_ap(a, b) + tau_ap(b, a)) / 2
        rows.append([first.measure, second.measure, tau, ap, int(changed.sum()), int(proven.sum())])
        if first is rankings[0]:
            chart.append((second.measure, {f"τ with {first.measure}": tau}))
    columns = (
        Column("measure"),
        Column("other measure"),
        Column("Kendall τ", "number"),
        Column("τ_AP", "number"),
        Column("pairs that change places", "integer"),
        Column("significant by both", "integer"),
    )
    note = (
        f"Of {len(rankings[0].orders):,} pairs of systems. The interval of τ counts pairs as open if the 95 % interval "
        "of their difference holds 0 by one of the measures. It is wide if the queries do not settle the order. τ_AP "
        "gives more weight to the best systems (mean of both directions)."
    )
    title = "Agreement of the rankings by two measures"
    return Table(columns, rows, title, note, "measures-agreement", Dots(chart, "Kendall τ"))


def _tau(first: MeasureRanking, second: MeasureRanking) -> Estimate | None:
    """Return τ with its interval; None if all systems are tied by one of the measures."""
    value = float(kendall_tau(means(first.values)[:, None], means(second.values)[:, None])[0])
    if np.isnan(value):
        return None
    bounds = tau_interval(first.values, second.values)
    return Estimate(value, *bounds) if bounds else Estimate(value)


def _changes_table(systems: Sequence[str], rankings: Sequence[MeasureRanking]) -> Table:
    """Return the pairs of systems that measures order differently; those with significant differences first."""
    pairs = SystemPairs.all(len(systems))
    found = []
    for number, (a, b) in enumerate(zip(pairs.first.tolist(), pairs.second.tolist(), strict=True)):
        sides = [[each for each in rankings if each.orders[number] == sign] for sign in (1, -1)]
        if not all(sides):
            continue
        # The system that the chosen measure, or else the first one with an order, puts first is in the first column.
        leads = next(each.orders[number] for each in rankings if each.orders[number])
        names = (systems[a], systems[b]) if leads > 0 else (systems[b], systems[a])
        sides = sides if leads > 0 else sides[::-1]
        proven = [_names([each for each in side if each.significant[number]]) for side in sides]
        gap = float(leads * pairs.differences(means(rankings[0].values))[number])
        found.append((-sum(map(bool, proven)), [*names, gap, *map(_names, sides), *(each or "–" for each in proven)]))
    rows: list[list[Value]] = [row for _, row in sorted(found, key=lambda each: each[0])]
    columns = (
        Column("system"),
        Column("other system"),
        Column(f"difference by {rankings[0].measure}", "difference"),
        Column("first is better by"),
        Column("other is better by"),
        Column("first significant by"),
        Column("other significant by"),
    )
    note = (
        f"Differences in points. Significant: sign-flip test at α = {ALPHA:.2f}, adjusted for all pairs of systems but "
        "not for the number of measures."
    )
    return Table(columns, rows, "Pairs of systems that change places", note, "measures-changes")


def _names(rankings: Sequence[MeasureRanking]) -> str:
    return ", ".join(each.measure for each in rankings)


def _lead(rankings: Sequence[MeasureRanking]) -> str:
    chosen, *others = rankings
    pairs = len(chosen.orders)
    changed = np.any([chosen.changes(other) for other in others], axis=0)
    proven = np.any([chosen.changes(other) & chosen.significant & other.significant for other in others], axis=0)
    taus = [(tau.value, other.measure) for other in others if (tau := _tau(chosen, other))]
    if not taus:
        return f"All systems are tied by {chosen.measure} or by each of the other measures."
    lowest = min(taus)
    if not changed.any():
        return f"No pair of systems changes places with another measure than {chosen.measure}."
    places = "the two systems change" if pairs == 1 else f"{changed.sum():,} of {pairs:,} pairs of systems change"
    count = f"{proven.sum():,}" if proven.any() else "none"
    return (
        f"With another measure than {chosen.measure}, {places} places. Changes with significant differences by both "
        f"measures: {count}. The ranking by {chosen.measure} differs most from that by {lowest[1]}, with a Kendall τ "
        f"of {lowest[0]:.2f}."
    )


def _notes(material: Material, rankings: Sequence[MeasureRanking]) -> list[str]:
    values = rankings[0].values
    notes = material.left_out
    sizes = [rows.shape[1] for rows in values.values()]
    if sum(sizes) < MIN_QUERIES or min(sizes) < 2:
        notes.append(f"τ has no interval, because it needs {MIN_QUERIES} queries, and two of each dataset.")
    return notes
