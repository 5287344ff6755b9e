"""How many runs are needed? Show what more runs and more queries can detect between systems that vary."""

from __future__ import annotations

from r2med.analysis.queries_needed import GAPS
from r2med.evaluation.measure.repeat_plan import RepeatPlan
from r2med.evaluation.measure.run_variance import FEWEST_RUNS, SingleRuns, run_spread
from r2med.evaluation.measure.significance import ALPHA, SystemPairs, Values
from r2med.foundation.pages.cells import Column, Value
from r2med.foundation.pages.page import Table
from r2med.foundation.text.plurals import counted

REPEATS = (FEWEST_RUNS, 5, 10, 20)
"""Numbers of runs in the table."""


def repeats_table(values: Values, single: SingleRuns, pairs: SystemPairs) -> Table | None:
    """Return the queries that gaps need with some numbers of runs; None if no varying system was run often enough."""
    plan = RepeatPlan.of(values, pairs, run_spread(single))
    if plan is None:
        return None
    rows: list[list[Value]] = [
        [str(repeats), plan.gap(repeats), *(plan.needed(points, repeats) for points in GAPS)] for repeats in REPEATS
    ]
    rows.append([f"runs with these {plan.queries:,} queries", None, *map(plan.runs_needed, GAPS)])
    needed = [Column(f"queries for {counted(points, 'point')}", "integer", missing="not enough") for points in GAPS]
    columns = (Column("runs of each system"), Column("gap with these queries", "number", missing=""), *needed)
    note = (
        f"Points of the measure. Paired t-test at α = {ALPHA:.2f} with a power of 80 %, with the chance of queries and "
        f"of runs: the median over {counted(len(plan.by_queries), 'pair')} of systems. One or both systems of a pair "
        f"vary and were run at least {FEWEST_RUNS} times. Not enough: the shift of single runs is too large for any "
        "number of queries. The last row is the number of runs that these queries need."
    )
    return Table(columns, rows, "Runs and queries for a gap between systems that vary", note, "reliability-runs")
