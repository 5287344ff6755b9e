"""How far can the scores of a benchmark be trusted?

The tables show the smallest gap it can detect and how many queries smaller gaps need, the stability of its ranking, and
the effects of unjudged documents and of duplicate texts.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from r2med.analysis.estimates import RESAMPLES
from r2med.analysis.material import Material
from r2med.analysis.queries_needed import compared_pairs, finding, gap_table, length_table, split_table
from r2med.analysis.rank_correlation import kendall_tau
from r2med.analysis.repeats_needed import repeats_table
from r2med.assessment.audit.label_power import gap_finding, unjudged_finding
from r2med.assessment.audit.unjudged import (
    WHOLE_RUN,
    RankedDataset,
    duplicate_tables,
    over_datasets,
    unjudged_table,
)
from r2med.evaluation.comparison.standings import single_runs
from r2med.evaluation.measure.incomplete_labels import Lists
from r2med.evaluation.measure.scores import Floats
from r2med.evaluation.measure.significance import (
    Integers,
    Values,
    bootstrap,
    interval,
    means,
    stratified,
)
from r2med.evaluation.records.rankings import DEPTH, ranked_lists
from r2med.foundation.core.errors import UserError
from r2med.foundation.core.notices import Command
from r2med.foundation.pages.cells import Value
from r2med.foundation.pages.estimate import Estimate
from r2med.foundation.pages.finding import VERDICT_WORDS
from r2med.foundation.pages.page import Dots, Section, Table


def reliability(material: Material) -> Section:
    """Return the reliability of the benchmark. Raises UserError if no two systems share a dataset."""
    systems, values = list(material.shared.systems), material.values
    if len(systems) < 2 or not values:
        raise UserError(
            "reliability needs two systems that were run on the same datasets: ",
            Command("run", ["bm25", "rm3 → bm25"], data="NAME"),
        )
    draws = stratified(bootstrap(values, RESAMPLES))
    pairs = compared_pairs(systems)
    tables = [gap_table(values, pairs), length_table(values, pairs)]
    single = single_runs(material.shared, str(material.measure), list(values))
    if runs := repeats_table(values, single, pairs):
        tables.append(runs)
    if splits := split_table(values):
        tables.append(splits)
    tables.append(_stability_table(systems, values, draws))
    if len(values) > 1:
        tables.append(_removal_table(systems, values))
    tables.append(_labels_table(material))
    shown = (
        unjudged_table(_rankings(material, WHOLE_RUN)),
        *duplicate_tables(material.recorded, _rankings(material)),
    )
    more = [table for table in shown if table is not None]
    held = float(np.mean(_tau(means(values), draws)))
    lead = f"{finding(material)} With resampled queries, the ranking agrees with this one by a Kendall τ of {held:.2f}."
    notes = material.left_out
    if not more:
        notes.append("Unjudged and duplicate documents need the texts and rankings, which are not on this machine.")
    return Section("Reliability", [*tables, *more], lead.strip(), notes, name="reliability")


def _rankings(material: Material, depth: int = DEPTH) -> Iterator[RankedDataset]:
    """Yield the rankings of every run on this machine."""
    for (system, name), kept in material.shared.cells.items():
        dataset = material.recorded.get(name)
        lists = ranked_lists(kept, dataset, depth) if dataset else None
        if dataset and lists is not None and name in material.values:
            yield RankedDataset(system, name, dataset.qrels, lists)


def _labels_table(material: Material) -> Table:
    """Return what the labels of each dataset allow, as `r2med audit` finds it."""
    pairs = compared_pairs(list(material.shared.systems))
    rankings: dict[str, dict[str, Lists]] = {}
    for each in _rankings(material):
        rankings.setdefault(each.dataset, {})[each.system] = each.lists
    rows: list[list[Value]] = []
    for name, values in material.values.items():
        found = {"detectable-gap": gap_finding(values.shape[1], values, pairs, str(material.measure))}
        if name in rankings:
            found["unjudged-documents"] = unjudged_finding(material.recorded[name].qrels, rankings[name])
        rows += [[name, check, VERDICT_WORDS[each.verdict], each.sentence] for check, each in found.items()]
    heads = ("dataset", "check", "verdict", "finding")
    note = "The findings of r2med audit with these systems. r2med audit DATASET makes all checks."
    return Table.of(heads, rows, "What the labels allow", note, name="reliability-labels")


def _ranks(figures: Floats) -> Integers:
    """Return the rank of each system, 1 for the best. In a tie, the first system has the better rank."""
    ranks = np.empty(len(figures), dtype=np.intp)
    ranks[np.argsort(-figures, kind="stable")] = np.arange(1, len(figures) + 1)
    return ranks


def _drawn_ranks(draws: Floats) -> Integers:
    return np.array([_ranks(draw) for draw in draws.T]).T


def rank_intervals(draws: Floats) -> Floats:
    """Return the lowest and highest rank of each system in 95 % of the draws of its score (systems × draws)."""
    return interval(_drawn_ranks(draws).astype(np.float64))


def _tau(figures: Floats, draws: Floats) -> Floats:
    """Return Kendall's τ of a ranking with each column of `draws`; 1 if all systems are tied."""
    return np.nan_to_num(kendall_tau(figures[:, None], draws), nan=1.0)


def _stability_table(systems: list[str], values: Values, draws: Floats) -> Table:
    figures = means(values)
    known = over_datasets(values)
    ranks = _ranks(figures)
    drawn = _drawn_ranks(draws)
    spread = rank_intervals(draws)
    rows: list[list[Value]] = []
    chart = []
    for number in np.argsort(ranks).tolist():
        rank = Estimate(float(ranks[number]), float(spread[0, number]), float(spread[1, number]))
        kept, first = ((drawn[number] == where).mean() for where in (ranks[number], 1))
        rows.append([systems[number], known[number], rank, float(kept), float(first)])
        chart.append((systems[number], {"rank": rank}))
    heads = ("system", "score", "rank", "share of draws at this rank", "share of draws at the top")
    note = f"{RESAMPLES:,} draws of the queries within each dataset. The interval of a rank holds 95 % of them."
    title = "Ranks with other queries of the same kind"
    return Table.of(heads, rows, title, note, name="reliability-ranks", chart=Dots(chart, "rank"))


def _removal_table(systems: list[str], values: Values) -> Table:
    whole = means(values)
    before = _ranks(whole)
    rows: list[list[Value]] = []
    for name in values:
        rest = means({other: each for other, each in values.items() if other != name})
        after = _ranks(rest)
        moved = int(np.argmax(np.abs(after - before)))
        move = f"{systems[moved]}: {before[moved]} → {after[moved]}" if (after != before).any() else "none"
        rows.append([name, float(_tau(whole, rest[:, None])[0]), systems[int(np.argmin(after))], move])
    heads = ("without", "Kendall τ", "leader", "largest move")
    return Table.of(heads, rows, "The ranking without one dataset", name="reliability-removal")
