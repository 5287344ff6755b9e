"""The tables of a comparison: the tests of every pair, and the scores as in a paper."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from r2med.data.dataset_cards import short_name
from r2med.evaluation.comparison.comparison import Comparison
from r2med.evaluation.comparison.gaps import Gap, Pair
from r2med.evaluation.comparison.verdicts import detectable, too_few_runs
from r2med.evaluation.measure.run_variance import FEWEST_RUNS
from r2med.foundation.pages.cells import Column, Estimate, Marked, Value
from r2med.foundation.pages.page import Table
from r2med.foundation.text.plurals import counted

DAGGER, EQUAL = "†", "≈"
RUNS_CAPTION = (
    "Runs: scores are means over the runs of a system that can give other results each time. From "
    f"{FEWEST_RUNS} runs on, tests contain the chance of the runs."
)


def pair_table(compared: Comparison) -> Table:
    """Return a table with a row for each pair over all datasets, on each dataset and on each slice."""
    rows: list[list[Value | Marked]] = []
    for pair in compared.pairs:
        rows.append([pair.a, pair.b, "all datasets", *gap_cells(pair), pair.wins, pair.ties, pair.losses])
        for label, gap in gaps(compared, pair):
            rows.append([pair.a, pair.b, label, *gap_cells(gap), None, None, None])
    method = (
        "paired sign flips, stratified by dataset; low and high: Student's 95 % interval of this pair alone; "
        f"adjusted p: {_adjustment(compared)}"
    )
    counts = [Column(head, "integer", missing="") for head in ("wins", "ties", "losses")]
    columns = (Column("A"), Column("B"), Column("on"), *gap_columns("A − B", "p adjusted"), *counts)
    sentences = (detectable(compared), too_few_runs(compared))
    note = " ".join([f"{compared.heading}: {method}. Labels: {compared.labels}.", *filter(None, sentences)])
    return Table(columns, rows, note=note, name="pairs")


def gaps(compared: Comparison, pair: Pair) -> Iterator[tuple[str, Gap]]:
    """Yield the difference of two systems on each dataset and each slice."""
    yield from pair.datasets.items()
    for each in compared.slices:
        if {each.a, each.b} == {pair.a, pair.b}:
            yield f"{each.label} ({each.queries:,})", each if each.a == pair.a else each.turned()


def gap_columns(difference: str, adjusted: str) -> list[Column]:
    """Return the columns of a difference, its interval and its p-values."""
    points = [Column(head, "difference") for head in (difference, "low", "high")]
    return [*points, Column("p", "p"), Column(adjusted, "p")]


def gap_cells(gap: Gap) -> list[Value | Marked]:
    """Return the cells of a difference. A significant difference is bold."""
    return [Marked(gap.difference, bold=gap.significant), gap.low, gap.high, gap.p, gap.p_adjusted]


def score_table(compared: Comparison) -> Table:
    """Return a table with a row per system, best first, and a column per dataset.

    The best score of a column is bold, the second underlined. If a system varies, the last column says how often each
    was run. A dagger marks scores that differ significantly from the baseline. Without a baseline, ≈ marks scores that
    cannot be distinguished from the best of their column.
    """
    columns = [{s.system: s.datasets[dataset] for s in compared.systems} for dataset in compared.datasets]
    if len(columns) > 1:
        columns.append({s.system: s.mean for s in compared.systems if s.mean})
    names = [*compared.datasets, ""][: len(columns)]
    marks = [_marks(compared, column, dataset) for column, dataset in zip(columns, names, strict=True)]
    any_varies = any(standing.varies for standing in compared.systems)
    rows: list[list[Value | Marked]] = [
        [
            standing.system,
            *(
                _score(standing.system, column, mark, compared.lower_is_better)
                for column, mark in zip(columns, marks, strict=True)
            ),
            *([standing.run_words] if any_varies else []),
        ]
        for standing in compared.ranked
    ]
    heads = (*map(short_name, compared.datasets), "Avg")[: len(columns)]
    runs = [Column("Runs")] if any_varies else []
    scores = [Column(head, "score") for head in heads]
    return Table([Column("System"), *scores, *runs], rows, note=_caption(compared))


def _score(system: str, column: Mapping[str, Estimate], marks: Mapping[str, str], lower_is_better: bool) -> Marked:
    best, *others = sorted({round(each.value, 2) for each in column.values()}, reverse=not lower_is_better)
    shown = round(column[system].value, 2)
    return Marked(column[system].value, shown == best, bool(others) and shown == others[0], marks.get(system, ""))


def _marks(compared: Comparison, column: Mapping[str, Estimate], dataset: str) -> dict[str, str]:
    """Return the marked systems of a column. `dataset` is empty for the average."""
    gaps = {(pair.a, pair.b): pair.datasets[dataset] if dataset else pair for pair in compared.pairs}
    if compared.baseline:
        return {system: DAGGER for (system, _), gap in gaps.items() if gap.significant}
    sign = -1 if compared.lower_is_better else 1
    best = max(column, key=lambda system: sign * column[system].value)
    of_best = {(set(pair) - {best}).pop(): gap for pair, gap in gaps.items() if best in pair}
    return {system: EQUAL for system, gap in of_best.items() if not gap.significant}


def _adjustment(compared: Comparison) -> str:
    """Return a text on how p-values are adjusted: each family of tests has a chance of 5 % of any false finding."""
    pairs = counted(compared.tested, "pair")
    families = [f"{pairs} over all datasets" if len(compared.datasets) > 1 else pairs]
    if len(compared.datasets) > 1:
        families.append(f"{pairs} × {len(compared.datasets)} datasets")
    if compared.slices:
        families.append(f"{pairs} × {counted(len(compared.slices) // len(compared.pairs), 'slice')}")
    return f"max-T, 5 %{' each' if len(families) > 1 else ''} for {', '.join(families)}"


def _caption(compared: Comparison) -> str:
    mark = (
        f"{DAGGER} differs from {compared.baseline}"
        if compared.baseline
        else f"{EQUAL} cannot be distinguished from the best of its column"
    )
    return (
        f"{compared.heading}. Labels: {compared.labels}. Avg: the unweighted mean of the datasets. The best is bold, "
        "the second underlined. "
        f"{mark} (paired sign flips within datasets; {_adjustment(compared)}). {detectable(compared)}"
        + f" {RUNS_CAPTION}"
        * any(standing.varies for standing in compared.systems)
    )
