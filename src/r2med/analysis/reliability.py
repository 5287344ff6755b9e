"""How far can the scores of a benchmark be trusted?

The tables show the smallest gap it can detect and how many queries smaller gaps need, if two halves of the queries
rank the systems alike, if other measures do, and the effect of unjudged documents.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import combinations

import numpy as np

from r2med.analysis.material import Material
from r2med.analysis.rank_correlation import MIN_QUERIES, kendall_tau, same_order, tau_interval
from r2med.assessment.audit.unjudged import WHOLE_RUN, RankedDataset, unjudged_table
from r2med.evaluation.measure.gap_curve import MAX_QUERIES, GapCurve
from r2med.evaluation.measure.intervals import FEWEST_VALUES
from r2med.evaluation.measure.scores import Floats
from r2med.evaluation.measure.significance import ALPHA, SystemPairs, Values, means
from r2med.evaluation.records.rankings import ranked_lists
from r2med.evaluation.records.stored_records import RecordCollection
from r2med.foundation.core.errors import UserError
from r2med.foundation.core.spec import Call, joined_stages, parse
from r2med.foundation.pages.cells import Column, Estimate, Value
from r2med.foundation.pages.page import Section, Table
from r2med.foundation.text.plurals import counted

SPLITS = 200
"""Number of random pairs of separate halves of the queries."""
GAPS = (1, 2, 5)
"""Differences, in points, for which the number of queries is shown."""
MEASURES = ("nDCG@10", "nDCG@100", "MAP@1000", "MRR", "R@10", "R@100", "P@1", "P@10")
"""Measures whose rankings are compared with each other, and with the chosen one, if all records hold them."""
ALL = "all datasets"


def reliability(material: Material) -> Section:
    """Return the reliability of the benchmark. Raises UserError if no two systems share a dataset."""
    systems, values = material.shared.systems, material.values
    if len(systems) < 2 or not values:
        raise UserError(
            "reliability needs two systems that were run on the same datasets: r2med run bm25 'rm3 → bm25' --data NAME",
        )
    unjudged = unjudged_table(_rankings(material))
    tables = [gap_table(values, compared_pairs(systems)), halves_table(values), measures_table(material), unjudged]
    notes = material.left_out
    sizes = [rows.shape[1] for rows in values.values()]
    if sum(sizes) < MIN_QUERIES or min(sizes) < 2:
        notes.append(f"τ has no interval, because it needs {MIN_QUERIES} queries, and two of each dataset.")
    if unjudged is None:
        notes.append("Unjudged documents need the texts and rankings, which are not on this machine.")
    shown = [table for table in tables if table is not None]
    return Section("Reliability", shown, finding(material), notes, name="reliability")


def _rankings(material: Material) -> Iterator[RankedDataset]:
    """Yield the rankings of every run on this machine, whole."""
    for (system, name), kept in material.shared.cells.items():
        dataset = material.recorded.get(name)
        lists = ranked_lists(kept, dataset, WHOLE_RUN) if dataset else None
        if dataset and lists is not None and name in material.values:
            yield RankedDataset(system, name, dataset.qrels, lists)


def _parts(values: Values) -> dict[str, Values]:
    """Return each dataset, and all datasets together if there are several."""
    parts: dict[str, Values] = {name: {name: rows} for name, rows in values.items()}
    return {**parts, ALL: values} if len(values) > 1 else parts


def compared_pairs(systems: Sequence[str]) -> SystemPairs:
    """Return the pairs of systems, without variants of one system: those that differ only in settings.

    Variants score nearly alike on each query, so a few queries would seem to suffice. If all are variants, all pairs
    are returned.
    """
    pairs = SystemPairs.all(len(systems))
    plain = [without_settings(system) for system in systems]
    differ = np.array([plain[a] != plain[b] for a, b in zip(pairs.first, pairs.second, strict=True)], dtype=bool)
    return SystemPairs(pairs.first[differ], pairs.second[differ]) if differ.any() else pairs


def without_settings(system: str) -> str:
    """Return the name of a system without settings, variants and depths: bm25(k1=2) and e5:512 are bm25 and e5."""
    try:
        stages = parse(system)
    except UserError:  # The name of a foreign run can be any text.
        return system
    return joined_stages("+".join(map(_plain, stage)) for stage in stages)


def _plain(call: Call) -> str:
    if call.system is not None:
        return f"[{without_settings(call.name[1:-1])}]"
    return f"{_VARIANT.sub('', call.name)}({', '.join(call.arguments)})"


_VARIANT = re.compile(r":[\w-]+$")


def finding(material: Material) -> str:
    """Return what the queries of the benchmark can and cannot show, in plain sentences."""
    values, systems = material.values, material.shared.systems
    queries = sum(rows.shape[1] for rows in values.values())
    pairs = compared_pairs(systems)
    curve = GapCurve.of(values, pairs)
    gap = curve.gap()
    sentences = []
    if gap is not None:
        known = f"differences below {gap:.1f} points of {material.measure}" if gap < 100 else "differences of any size"
        sentences.append(f"With {queries:,} queries, {known} cannot be detected reliably.")
        smaller = max((points for points in GAPS if points < gap), default=None)
        if smaller and (needed := _needed(curve, smaller, pairs, systems)):
            sentences.append(needed)
    if halves := _halves(values):
        _, alike, known_tau = halves
        tau = "" if known_tau is None else f" (Kendall τ {known_tau:.2f})"
        sentences.append(f"Two halves of the queries order {100 * alike:.0f} % of the pairs of systems alike{tau}.")
    return " ".join(sentences)


def _needed(curve: GapCurve, points: int, pairs: SystemPairs, systems: Sequence[str]) -> str:
    """Return how many queries detect a gap between the middle pair of systems, and between the others."""
    places = curve.ordered_pairs()
    middle = places[(len(places) - 1) // 2]
    needed = curve.of_pair(middle).needed(points)
    if needed is None:
        return ""
    first, second = (systems[int(side[middle])] for side in (pairs.first, pairs.second))
    said = f"To detect {counted(points, 'point')} between {first} and {second}, about {needed:,} queries are needed"
    if len(places) == 1:
        return f"{said}."
    least, most = (curve.of_pair(place).needed(points) for place in (places[0], places[-1]))
    above = f"more than {MAX_QUERIES:,}" if most is None else f"{most:,}"
    return f"{said}; over all {len(places):,} pairs of different systems, {least:,} to {above}."


def gap_table(values: Values, pairs: SystemPairs) -> Table:
    """Return the smallest gap of each dataset, and the number of queries that smaller gaps need."""
    rows: list[list[Value]] = []
    for name, part in _parts(values).items():
        curve = GapCurve.of(part, pairs)
        rows.append([name, int(curve.sizes.sum()), curve.gap(), *map(curve.needed, GAPS)])
    needed = [Column(f"queries for {counted(points, 'point')}", "integer") for points in GAPS]
    columns = (Column("dataset"), Column("queries", "integer"), Column("gap", "number"), *needed)
    note = (
        f"Points of the measure. Paired t-test at α = {ALPHA:.2f} with a power of 80 %, median over pairs of systems "
        "that differ in more than their settings. "
        "Numbers of queries assume that other queries vary as these do, and that all datasets grow by the same factor."
    )
    return Table(columns, rows, "The smallest gap that can be detected", note, "reliability-gap")


def halves_table(values: Values) -> Table | None:
    """Return how alike two halves of the queries rank the systems; None if every dataset is too small."""
    known = [(name, _halves(part)) for name, part in _parts(values).items()]
    rows: list[list[Value]] = [[name, *halves] for name, halves in known if halves]
    if not rows:
        return None
    columns = (
        Column("dataset"),
        Column("queries in each set", "integer"),
        Column("pairs in the same order", "share", 0),
        Column("Kendall τ", "number"),
    )
    note = (
        f"Means over {SPLITS} random pairs of halves without a common query. If systems are about equal, the numbers "
        "are low or negative: queries that favour a system are in one half and missing from the other. There are no "
        "intervals, because queries that are drawn again are in both halves, which then agree too much."
    )
    return Table(columns, rows, "Rankings by separate halves of the queries", note, "reliability-splits")


def _halves(values: Values) -> tuple[int, float, float | None] | None:
    """Return the number of queries of a half, the share of pairs in the same order, and τ, as means over splits.

    Returns None if a dataset is too small to be halved. τ is None if all systems are tied in each split.
    """
    sizes = {name: rows.shape[1] // 2 for name, rows in values.items()}
    if sum(sizes.values()) < FEWEST_VALUES or not all(sizes.values()):
        return None
    splits = [_split(values, sizes, number) for number in range(SPLITS)]
    first, second = (np.array([halves[side] for halves in splits]).T for side in (0, 1))
    taus = kendall_tau(first, second)
    known = taus[~np.isnan(taus)]
    alike = float(same_order(first, second).mean())
    return sum(sizes.values()), alike, float(known.mean()) if len(known) else None


def _split(values: Values, sizes: dict[str, int], number: int) -> tuple[Floats, Floats]:
    """Return the scores of the systems on two separate random sets of queries."""
    random = np.random.default_rng(number)
    sides: tuple[dict[str, Floats], dict[str, Floats]] = ({}, {})
    for name, rows in values.items():
        order, size = random.permutation(rows.shape[1]), sizes[name]
        sides[0][name], sides[1][name] = rows[:, order[:size]], rows[:, order[size : 2 * size]]
    return means(sides[0]), means(sides[1])


def measures_table(material: Material) -> Table | None:
    """Return how the rankings by any two measures agree; None if the records hold only one."""
    held = [set(next(iter(kept.record.per_query.values()), {})) for kept in material.shared]
    shared = set.intersection(*held)
    names = [material.measure, *(name for name in MEASURES if name in shared and name != material.measure)]
    if len(names) < 2:
        return None
    values = {name: _values(material, name) for name in names}
    rows: list[list[Value]] = [[a, b, _tau(values[a], values[b])] for a, b in combinations(names, 2)]
    columns = (Column("measure"), Column("other measure"), Column("Kendall τ", "number"))
    note = (
        f"Of {len(SystemPairs.all(len(material.shared.systems)).first):,} pairs of systems. The interval of τ counts "
        "pairs as open if the 95 % interval of their difference holds 0 by one of the measures. It is wide if the "
        "queries do not settle the order."
    )
    return Table(columns, rows, "Agreement of the rankings by two measures", note, "reliability-measures")


def _values(material: Material, measure: str) -> dict[str, Floats]:
    """Return the points of a measure on the datasets that all systems share."""
    cells = {key: kept for key, kept in material.shared.cells.items() if key[1] in material.values}
    return {name: 100 * rows for name, (_, rows) in RecordCollection(cells).values(measure).items()}


def _tau(first: Values, second: Values) -> Estimate | None:
    """Return τ with its interval; None if all systems are tied by one of the measures."""
    value = float(kendall_tau(means(first)[:, None], means(second)[:, None])[0])
    return None if np.isnan(value) else Estimate(value, *(tau_interval(first, second) or (None, None)))
