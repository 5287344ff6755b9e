"""How systems do on parts of the queries: by task, scenario, body system, length, number of positives."""

from __future__ import annotations

from r2med.analysis.findings import Cell, Section, Table
from r2med.analysis.material import Material
from r2med.analysis.svg_charts import dots
from r2med.comparison.comparison import Interval, slice_figures
from r2med.measure.slices import KINDS


def query_slices(material: Material) -> Section:
    """Return every system's figure on every slice."""
    systems, best = material.collection.systems, material.best
    tables = []
    hardest: tuple[float, str] | None = None
    for kind in KINDS:
        rows: list[list[Cell]] = []
        chart: list[tuple[str, dict[str, Interval | None]]] = []
        for part, figures in slice_figures(material.collection, kind, material.measure):
            rows.append([part.label, len(part), *figures])
            chart.append((part.label, dict(zip(systems[:6], figures, strict=False))))
            if best is not None and (figure := figures[best]) and len(part) >= 5:
                label = f"{part.label} ({kind}, {len(part):,} queries)"
                hardest = min(filter(None, (hardest, (figure.value, label))))
        if len(rows) > 1:
            drawn = dots(chart, f"{material.measure} × 100") if len(systems) <= 6 else ""
            heads = ("slice", "queries", *systems)
            tables.append(Table(f"slices-{kind}", f"By {kind.replace('-', ' ')}", heads, rows, digits=1, chart=drawn))
    if best is None:
        lead = "The systems were not run on the same datasets: no slice is the hardest."
    elif hardest is None:
        lead = "No slice has five queries."
    else:
        lead = f"Hardest for the best system, {systems[best]}: {hardest[1]}, with {hardest[0]:.1f} points."
    return Section("slices", "Slices", lead, tables)
