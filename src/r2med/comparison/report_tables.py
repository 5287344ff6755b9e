"""The tables of a comparison: every pair with its tests, and the scores as a paper prints them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from r2med.comparison.comparison import Comparison, Gap, Pair
from r2med.comparison.paper_table import Entry, PaperTable
from r2med.comparison.system_classes import FEWEST_QUERIES
from r2med.comparison.verdicts import detectable, probability, signed
from r2med.data.dataset_cards import short_name
from r2med.pages.estimate import Estimate

DAGGER, EQUAL = "†", "≈"


def pair_table(compared: Comparison) -> PaperTable:
    """Return a row for each pair over all datasets, on each dataset and on each slice."""
    heads = ("A", "B", "on", "A − B", "low", "high", "p", "p adjusted", "wins", "ties", "losses")
    rows = []
    for pair in compared.pairs:
        counts = [Entry(str(count)) for count in (pair.wins, pair.ties, pair.losses)]
        rows.append([*_words(pair.a, pair.b, "all datasets"), *_gap_entries(pair), *counts])
        for label, gap in gaps(compared, pair):
            rows.append([*_words(pair.a, pair.b, label), *_gap_entries(gap), *_words("", "", "")])
    method = (
        "paired sign flips and Student's 95 % intervals, stratified by dataset; adjusted p: "
        f"{_adjustment(compared)}; Benjamini–Hochberg over pairs and slices"
    )
    return PaperTable(heads, rows, f"{compared.measure} × 100: {method}. {detectable(compared)}", words=3)


def gaps(compared: Comparison, pair: Pair) -> Iterator[tuple[str, Gap]]:
    """Yield what two systems differ by on each dataset and each slice."""
    yield from pair.datasets.items()
    for each in compared.slices:
        if (each.a, each.b) == (pair.a, pair.b):
            yield f"{each.label} ({each.queries:,})", each


def _words(*words: str) -> list[Entry]:
    return [Entry(word) for word in words]


def _gap_entries(gap: Gap) -> list[Entry]:
    points = [Entry(signed(value), value) for value in (gap.difference, gap.low, gap.high)]
    points[0] = Entry(points[0].text, gap.difference, bold=gap.significant)
    return [*points, *(Entry(probability(p).removeprefix("= "), p) for p in (gap.p, gap.p_adjusted))]


def score_table(compared: Comparison) -> PaperTable:
    """Return systems down, the best first, and datasets across, the best of each bold and the second underlined.

    A dagger marks what differs from the baseline; without a baseline, ≈ marks what cannot be told from the best.
    """
    columns = [{s.system: s.datasets[dataset] for s in compared.systems} for dataset in compared.datasets]
    if len(columns) > 1:
        columns.append({s.system: s.mean for s in compared.systems if s.mean})
    marks = [_marks(compared, dataset) for dataset in [*compared.datasets, ""][: len(columns)]]
    rows = [
        [
            Entry(standing.system),
            *(_score(standing.system, column, mark) for column, mark in zip(columns, marks, strict=True)),
        ]
        for standing in compared.ranked
    ]
    heads = ("System", *map(short_name, compared.datasets), "Avg")[: len(columns) + 1]
    return PaperTable(heads, rows, _caption(compared))


def _score(system: str, column: Mapping[str, Estimate], marks: Mapping[str, str]) -> Entry:
    best, *others = sorted({round(each.value, 2) for each in column.values()}, reverse=True)
    value = column[system].value
    shown = round(value, 2)
    return Entry(f"{value:.2f}", value, shown == best, bool(others) and shown == others[0], marks.get(system, ""))


def _marks(compared: Comparison, dataset: str) -> dict[str, str]:
    """Return the systems of a column that bear a mark; `dataset` is empty for the average."""
    if not compared.baseline:
        first = [system for system, number in compared.classes(dataset).items() if number == 1]
        return dict.fromkeys(first[1:], EQUAL)
    gaps = {pair.a: pair.datasets[dataset] if dataset else pair for pair in compared.pairs}
    return {system: DAGGER for system, gap in gaps.items() if gap.significant}


def _adjustment(compared: Comparison) -> str:
    """Return how p-values are adjusted: over all datasets, and on single ones."""
    overall = f"{'Holm' if compared.baseline else 'max-T'} over the pairs"
    return overall + (
        ", Benjamini–Hochberg over pairs and datasets on single ones" if len(compared.datasets) > 1 else ""
    )


def _caption(compared: Comparison) -> str:
    marks = (
        f"{DAGGER} differs from {compared.baseline} ({_adjustment(compared)}, α = 0.05)"
        if compared.baseline
        else f"{EQUAL} cannot be told from the best of its column (max-T over the pairs of the best, "
        f"α = 0.05; no classes below {FEWEST_QUERIES} queries)"
    )
    return (
        f"{compared.measure} × 100. Avg: the unweighted mean of the datasets. The best is bold, the second underlined. "
        f"{marks}; paired sign flips within datasets. {detectable(compared)}"
        + "".join(f" {notice}." for notice in compared.notices)
    )
