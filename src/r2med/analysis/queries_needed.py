"""How many queries are needed? Show what smaller and larger sets of queries can detect, and how rankings repeat."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import numpy as np

from r2med.analysis.material import Material
from r2med.analysis.rank_correlation import kendall_tau, same_order, tau_ap
from r2med.analysis.ranking_reliability import MIN_RELIABILITY_QUERIES, Reliability, reliability_of_scores
from r2med.evaluation.measure.gap_curve import MAX_QUERIES, GapCurve, lengthened
from r2med.evaluation.measure.intervals import FEWEST_VALUES
from r2med.evaluation.measure.scores import Floats
from r2med.evaluation.measure.significance import ALPHA, SystemPairs, Values, means
from r2med.foundation.core.errors import UserError
from r2med.foundation.core.spec import Call, joined_stages, parse
from r2med.foundation.pages.cells import Column, Value
from r2med.foundation.pages.estimate import Estimate
from r2med.foundation.pages.page import Curves, Table
from r2med.foundation.text.plurals import counted

LENGTHS = (0.125, 0.25, 0.5, 1.0, 2.0, 4.0)
"""Sizes of the sets of queries, relative to the set that was used."""
SPLITS = 200
"""Number of random pairs of separate sets of queries."""
GAPS = (1, 2, 5)
"""Differences, in points, for which the number of queries is shown."""
MAX_CURVES = 6
ALL = "all datasets"


def parts_of(values: Values) -> dict[str, Values]:
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
    if halves := _agreement(values, 0.5):
        tau = "" if halves[2] is None else f" (Kendall τ {halves[2]:.2f})"
        sentences.append(f"Two halves of the queries order {100 * halves[1]:.0f} % of the pairs of systems alike{tau}.")
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


def gap_table(values: Values, pairs: SystemPairs | None = None) -> Table:
    """Return the smallest gap of each dataset, and the number of queries that smaller gaps need."""
    rows: list[list[Value]] = []
    for name, part in parts_of(values).items():
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


def length_table(values: Values, pairs: SystemPairs | None = None) -> Table:
    """Return the smallest gap and the reliability of the scores by the number of queries."""
    rows: list[list[Value]] = []
    series: dict[str, list[tuple[float, Estimate]]] = {}
    for name, part in parts_of(values).items():
        curve, known = GapCurve.of(part, pairs), reliability_of_scores(part)
        for queries, length in _lengths(curve.sizes):
            gap = curve.gap(length)
            rows.append([name, queries, gap, _estimate(known, length)])
            if gap is not None:
                series.setdefault(name, []).append((float(queries), Estimate(gap)))
    if len(series) > MAX_CURVES:
        series = {ALL: series[ALL]} if ALL in series else {}
    columns = (
        Column("dataset"),
        Column("queries", "integer"),
        Column("gap", "number"),
        Column("reliability of scores", "number"),
    )
    note = (
        "Gap: as above. Reliability: the correlation to expect between the scores of these systems on two sets of this "
        "many queries. For the whole set it is Cronbach's α, the mean of all split halves. For other sizes, it is "
        "corrected by the formula of Spearman and Brown. One system far from all others makes it high. Intervals need "
        f"{MIN_RELIABILITY_QUERIES} queries, and two of each dataset."
    )
    chart = Curves(series, "queries", "smallest gap in points", log=True)
    return Table(columns, rows, "Smaller and larger sets of queries", note, "reliability-queries", chart)


def _lengths(sizes: Floats) -> Iterator[tuple[int, float]]:
    """Yield different numbers of queries with their lengths."""
    seen = set()
    for length in LENGTHS:
        queries = sum(lengthened(sizes, length))
        if queries not in seen and (queries >= FEWEST_VALUES or length == 1):
            seen.add(queries)
            yield queries, queries / float(sizes.sum())


def _estimate(known: Reliability | None, length: float) -> Estimate | None:
    return None if known is None else Estimate(*known.at(length))


def split_table(values: Values) -> Table | None:
    """Return how alike two separate sets of queries rank the systems; None if every dataset is too small."""
    rows: list[list[Value]] = []
    for name, part in parts_of(values).items():
        found = {each[0]: each for length in LENGTHS if (each := _agreement(part, length))}
        rows += [[name, *each] for each in found.values()]
    if not rows:
        return None
    columns = (
        Column("dataset"),
        Column("queries in each set", "integer"),
        Column("pairs in the same order", "share", 0),
        Column("Kendall τ", "number"),
        Column("τ_AP", "number"),
    )
    note = (
        f"Means over {SPLITS} random pairs of sets without a common query. Sets have at most half of the queries. τ is "
        "not corrected for length, because the formula of Spearman and Brown does not hold for it. τ_AP gives more "
        "weight to the best systems (mean of both directions). If systems are about equal, the numbers are low or "
        "negative: queries that favour a system are in one set and missing from the other. There are no intervals, "
        "because queries that are drawn again are in both sets, which then agree too much."
    )
    last = [row for row in rows if row[0] == rows[-1][0]]
    series = {columns[place].head: _points(last, place) for place in (2, 3, 4)}
    chart = Curves(
        {head: points for head, points in series.items() if len(points) > 1}, "queries in each set", "agreement"
    )
    return Table(columns, rows, "Rankings by separate sets of queries", note, "reliability-splits", chart)


def _points(rows: list[list[Value]], place: int) -> list[tuple[float, Estimate]]:
    known = [(row[1], row[place]) for row in rows]
    return [(float(x), Estimate(y)) for x, y in known if isinstance(x, int) and isinstance(y, float)]


def _agreement(values: Values, length: float) -> tuple[int, float, float | None, float | None] | None:
    """Return the number of queries of a set, the share of pairs in the same order, τ and τ_AP, as means over splits.

    Returns None if two sets of this length have no room in a dataset. τ is None if all systems are tied in each split.
    """
    sizes = {name: int(length * rows.shape[1]) for name, rows in values.items()}
    if length > 0.5 or sum(sizes.values()) < FEWEST_VALUES or not all(sizes.values()):
        return None
    halves = [_split(values, sizes, number) for number in range(SPLITS)]
    first, second = (np.array([half[side] for half in halves]).T for side in (0, 1))
    taus = kendall_tau(first, second)
    known = taus[~np.isnan(taus)]
    if not len(known):
        return sum(sizes.values()), float(same_order(first, second).mean()), None, None
    top = [(tau_ap(a, b) + tau_ap(b, a)) / 2 for a, b in halves]
    return sum(sizes.values()), float(same_order(first, second).mean()), float(known.mean()), float(np.mean(top))


def _split(values: Values, sizes: dict[str, int], number: int) -> tuple[Floats, Floats]:
    """Return the scores of the systems on two separate random sets of queries."""
    random = np.random.default_rng(number)
    sides: tuple[dict[str, Floats], dict[str, Floats]] = ({}, {})
    for name, rows in values.items():
        order, size = random.permutation(rows.shape[1]), sizes[name]
        sides[0][name], sides[1][name] = rows[:, order[:size]], rows[:, order[size : 2 * size]]
    return means(sides[0]), means(sides[1])
