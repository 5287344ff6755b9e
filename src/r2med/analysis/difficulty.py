"""Why is a benchmark hard? Compare scores by terminology, sparsity, knowledge, reasoning and reviewers' judgement."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from r2med.analysis.causes import (
    Cause,
    ScoredQueries,
    cause_table,
    compared,
    comparison_row,
    difference_text,
)
from r2med.analysis.estimates import mean_interval
from r2med.analysis.expansion_gains import Expanded, author_notes, expanded_systems, gains
from r2med.analysis.material import Material
from r2med.analysis.overlap import judged_queries
from r2med.analysis.query_causes import query_causes
from r2med.evaluation.measure.scores import Floats
from r2med.evaluation.records.stored_records import RecordCollection
from r2med.foundation.core.errors import UserError
from r2med.foundation.core.notices import Notice
from r2med.foundation.pages.cells import Column, Value, signed
from r2med.foundation.pages.estimate import Estimate
from r2med.foundation.pages.page import Content, Dots, Section, Table
from r2med.foundation.text.plurals import counted

NO_TEXTS = (
    "Reasoning is left out: it needs records of a system with and without generated texts, as by r2med run bm25 "
    "'hyde(LLM) → bm25' --data NAME."
)


def difficulty(material: Material) -> Section:
    """Return how scores differ by properties of queries that may make them hard."""
    scored, notes = scored_queries(material)
    if not scored.queries:
        raise UserError("difficulty needs queries with a relevant document: check the data with r2med data check NAME")
    causes, lacking = query_causes(material, scored)
    parts: list[Content] = []
    for cause in causes:
        parts += [f"{cause.finding}{compared(cause, scored)}", cause_table(cause, scored)]
    texts = _reasoning_rows(material, scored)
    if texts:
        parts += [_reasoning_finding(texts), _reasoning_table(texts, material.measure)]
    if scored.has_scores:
        parts.insert(0, _summary_table(causes, texts, scored, material.measure))
    missing = [*lacking, *([] if texts else [NO_TEXTS])]
    parts.append(_queries_table(causes, scored, material.measure))
    author = author_notes(each.llm for each, _, _ in texts)
    return Section(
        "Difficulty",
        parts,
        _lead(causes, texts, scored),
        [*notes, *missing, *author, *material.questions.notes("closed-book", "answer-grade")],
        name="difficulty",
    )


def scored_queries(material: Material) -> tuple[ScoredQueries, list[str]]:
    """Return the judged queries with the points of all systems, and notes. Without records there are no points."""
    try:
        collection, datasets = material.collection, material.recorded
    except UserError as error:
        datasets = material.datasets
        queries = [(dataset, query) for dataset in datasets.values() for query in judged_queries(dataset)]
        note = Notice("Scores are left out: ", error, ".")
        return ScoredQueries(tuple(datasets.values()), queries, (), np.zeros((0, len(queries)))), [note]
    values = collection.values(material.measure)
    queries = [(dataset, query) for dataset in datasets.values() for query in judged_queries(dataset)]
    points = np.full((len(collection.systems), len(queries)), np.nan)
    places = {name: {query: n for n, query in enumerate(ids)} for name, (ids, _) in values.items()}
    for number, (dataset, query) in enumerate(queries):
        place = places[dataset.name].get(query.id)
        if place is not None:
            points[:, number] = 100 * values[dataset.name][1][:, place]
    gone = [name for name in collection.datasets if name not in datasets]
    notes = [f"{name} is left out: its texts are not on this machine, or have changed." for name in gone]
    best = _compared_system(collection, points)
    return ScoredQueries(tuple(datasets.values()), queries, collection.systems, points, best), notes


def _compared_system(collection: RecordCollection, points: Floats) -> int:
    """Return the index of the best system without an expansion, or of the best system if all have one.

    A generated text changes what is hard, and it has a part of its own.
    """
    with_texts = {each.system for each in expanded_systems(collection)}
    means = [
        (system not in with_texts, float(np.nan_to_num(row, nan=0.0).mean()) if row.size else 0.0)
        for system, row in zip(collection.systems, points, strict=True)
    ]
    return max(range(len(means)), key=means.__getitem__)


ReasoningRow = tuple[Expanded, Floats, Floats]
"""An expansion, and the points of each query without and with its text."""


def _reasoning_rows(material: Material, scored: ScoredQueries) -> list[ReasoningRow]:
    """Return the expansions that were run with and without their texts, on the queries of both."""
    if not scored.systems:
        return []
    rows = []
    for each in expanded_systems(material.collection):
        known = [gains(material.collection, each, dataset.name, material.measure) for dataset in scored.datasets]
        if not any(known) or each.plain not in scored.systems:
            continue
        before, after = (scored.points[list(scored.systems).index(name)] for name in (each.plain, each.system))
        both = ~(np.isnan(before) | np.isnan(after))
        rows.append((each, before[both], after[both]))
    return sorted((row for row in rows if len(row[1])), key=lambda row: -float((row[2] - row[1]).mean()))


def _reasoning_table(rows: Sequence[ReasoningRow], measure: str) -> Table:
    cells: list[list[Value]] = []
    for each, before, after in rows:
        gain = after - before
        shares = [mean_interval(part.astype(np.float64)) for part in (gain > 0, gain == 0, gain < 0)]
        scores = mean_interval(before, 100.0), mean_interval(after, 100.0), mean_interval(gain, None)
        cells.append([each.system, len(gain), *scores, *shares])
    columns = (
        Column("system"),
        Column("queries", "integer"),
        Column("query alone", "score", 1),
        Column("with its text", "score", 1),
        Column("gain", "difference", 1),
        *(Column(head, "share", 0) for head in ("helped", "unchanged", "hurt")),
    )
    note = f"{measure} × 100. Gain: the score with the generated text minus the score with the query alone."
    return Table(columns, cells, "By reasoning", note, "difficulty-reasoning")


def _reasoning_finding(rows: Sequence[ReasoningRow]) -> str:
    each, before, after = rows[0]
    gain = mean_interval(after - before, None)
    helped, hurt = (float(part.mean()) for part in (after > before, after < before))
    moved = difference_text(gain) if gain else ""
    return (
        f"Reasoning: the text of {each.system} moves the score from {before.mean():.1f} to {after.mean():.1f}, "
        f"{moved}. It helps {helped:.0%} of {counted(len(before), 'query', 'queries')} and hurts {hurt:.0%}."
    )


def _reasoning_row(rows: Sequence[ReasoningRow]) -> Iterator[list[Value]]:
    for each, before, after in rows[:1]:
        sides: list[Value] = ["query alone", len(before), mean_interval(before, 100.0)]
        sides += [f"with the text of {each.method}({each.llm})", len(after), mean_interval(after, 100.0)]
        yield ["reasoning", *sides, mean_interval(before - after, None)]


def _comparisons(causes: Sequence[Cause], texts: Sequence[ReasoningRow], scored: ScoredQueries) -> list[list[Value]]:
    """Return a row for each property whose two slices both have scores."""
    known = [cause for cause in causes if cause.difference(scored.points[scored.best])]
    return [*(comparison_row(cause, scored) for cause in known), *_reasoning_row(texts)]


def _summary_table(
    causes: Sequence[Cause], texts: Sequence[ReasoningRow], scored: ScoredQueries, measure: str
) -> Table:
    rows = _comparisons(causes, texts, scored)
    columns = (
        Column("property"),
        Column("slice"),
        Column("queries", "integer"),
        Column("score", "score", 1),
        Column("other slice"),
        Column("queries of it", "integer"),
        Column("its score", "score", 1),
        Column("difference", "difference", 1),
    )
    note = (
        f"{measure} × 100. Scores of {scored.systems[scored.best]}; for reasoning, those of the retriever with and "
        "without the text. Difference: the first slice minus the other one. Queries of all datasets count alike. The "
        "slices are not independent of each other: a property that goes with low scores need not be their cause. "
        "Intervals are not adjusted for the number of properties."
    )
    chart = Dots(
        [(str(row[0]), {"difference": row[-1] if isinstance(row[-1], Estimate) else None}) for row in rows],
        "difference in points",
    )
    return Table(columns, rows, "Properties and scores", note, "difficulty", chart)


def _queries_table(causes: Sequence[Cause], scored: ScoredQueries, measure: str) -> Table:
    properties = {head: values for cause in causes for head, values in cause.values.items()}
    points = [(scored.systems[scored.best], scored.points[scored.best])] if scored.has_scores else []
    rows = [
        [
            dataset.name,
            query.id,
            *(values[number] for values in properties.values()),
            *(float(p[number]) for _, p in points),
        ]
        for number, (dataset, query) in enumerate(scored.queries)
    ]
    heads = ("dataset", "query", *properties, *(f"{measure} × 100 of {system}" for system, _ in points))
    return Table.of(heads, rows, "Properties of each query", name="difficulty-queries")


def _lead(causes: Sequence[Cause], texts: Sequence[ReasoningRow], scored: ScoredQueries) -> str:
    if not scored.has_scores:
        return "There are no scores, so only the properties of the queries are shown."
    rows = _comparisons(causes, texts, scored)
    clear = [row for row in rows if isinstance(row[-1], Estimate) and _is_clear(row[-1])]
    if not clear:
        return (
            f"None of {counted(len(rows), 'property', 'properties')} goes with clearly different scores of "
            f"{scored.systems[scored.best]}."
        )
    clear.sort(key=lambda row: -abs(row[-1].value) if isinstance(row[-1], Estimate) else 0.0)
    named = [
        f"{row[0]} ({row[1]}: {signed(row[-1].value, 1)} points)" for row in clear if isinstance(row[-1], Estimate)
    ]
    count = f"{len(clear)} of {counted(len(rows), 'property', 'properties')}"
    verb = "goes" if len(clear) == 1 else "go"
    return f"{count} {verb} with clearly different scores: {', '.join(named)}."


def _is_clear(difference: Estimate) -> bool:
    return difference.low is not None and difference.high is not None and difference.low * difference.high > 0
