"""Scores of systems on slices of the queries: by task, scenario, body system, length, number of relevant documents."""

from __future__ import annotations

from r2med.analysis.material import Material
from r2med.evaluation.comparison.standings import slice_figures
from r2med.evaluation.measure.slices import KINDS
from r2med.foundation.pages.cells import Estimate, Value
from r2med.foundation.pages.page import Dots, Section, Table


def query_slices(material: Material) -> Section:
    """Return the score of every system on every slice."""
    systems, best = material.collection.systems, material.best
    tables = []
    hardest: tuple[float, str] | None = None
    for kind in KINDS:
        rows: list[list[Value]] = []
        chart: list[tuple[str, dict[str, Estimate | None]]] = []
        for part, figures in slice_figures(material.collection, kind, material.measure):
            rows.append([part.label, len(part), *figures])
            chart.append((part.label, dict(zip(systems[:6], figures, strict=False))))
            if best is not None and (figure := figures[systems.index(best)]) and len(part) >= 5:
                label = f"{part.label} ({kind}, {len(part):,} queries)"
                hardest = min(filter(None, (hardest, (figure.value, label))))
        if len(rows) > 1:
            drawn = Dots(chart, f"{material.measure} × 100") if len(systems) <= 6 else None
            heads = ("slice", "queries", *systems)
            tables.append(
                Table.of(heads, rows, f"By {kind.replace('-', ' ')}", name=f"slices-{kind}", digits=1, chart=drawn)
            )
    if best is None:
        lead = "The systems were not run on the same datasets, so the hardest slice is not known."
    elif hardest is None:
        lead = "No slice has at least five queries."
    else:
        lead = f"Hardest for the best system, {best}: {hardest[1]}, with {hardest[0]:.1f} points."
    return Section("Slices", tables, lead, name="slices")
