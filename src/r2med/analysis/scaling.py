"""Does a larger LLM, or a longer generated text, retrieve better? Uses records of systems that expand queries."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from r2med.analysis.estimates import correlation_interval
from r2med.analysis.material import Material
from r2med.assessment.audit.unjudged import over_datasets
from r2med.evaluation.measure.scores import Floats
from r2med.evaluation.records.stored_records import RecordCollection, StoredRecord
from r2med.foundation.core.cards import parameter_count
from r2med.foundation.core.cost import total
from r2med.foundation.core.errors import UserError
from r2med.foundation.core.notices import Command
from r2med.foundation.core.spec import joined_stages
from r2med.foundation.pages.cells import Value
from r2med.foundation.pages.estimate import Estimate
from r2med.foundation.pages.page import Curves, Section, Table
from r2med.models.llm.llm_cards import LLMS


@dataclass(frozen=True)
class Expanded:
    """A system that expands queries, with the name of the same system without the expansion."""

    system: str
    llm: str
    plain: str
    """Name of the same system without its expansion."""
    method: str

    @classmethod
    def of(cls, kept: StoredRecord) -> Expanded | None:
        """Return the system of a record; None if it does not expand queries with an LLM."""
        record = kept.record
        llm = (record.settings.get("expand") or {}).get("llm")
        if not llm:
            return None
        names = [stage.name for stage in record.stages if stage.stage != "expand"]
        return cls(record.display_name, str(llm), joined_stages(names), record.settings["expand"]["stage"])


def expanded_systems(collection: RecordCollection) -> list[Expanded]:
    """Return the systems that expand queries with an LLM, in their order."""
    known = {kept.record.display_name: each for kept in collection if (each := Expanded.of(kept))}
    return list(known.values())


def gains(
    collection: RecordCollection, each: Expanded, dataset: str, measure: str
) -> tuple[tuple[str, ...], Floats] | None:
    """Return the queries and the points that the expansion adds to each; None if a needed record is missing."""
    cells = collection.cell(each.system, dataset), collection.cell(each.plain, dataset)
    if cells[0] is None or cells[1] is None:
        return None
    queries = tuple(cells[0].record.per_query)
    after, before = (np.array([kept.record.per_query[query][measure] for query in queries]) for kept in cells if kept)
    return queries, 100 * (after - before)


def billions(llm: str) -> float | None:
    """Return the billions of parameters of an LLM by its card; None if they are not known."""
    card = LLMS.get(llm)
    count = parameter_count(card.parameters) if card else None
    return count / 1e9 if count else None


def scaling(material: Material) -> Section:
    """Return scores by the size of the LLM, and by the length of its texts."""
    collection = material.collection
    systems = expanded_systems(collection)
    if not systems:
        raise UserError(
            "no record expands queries with an LLM: ",
            Command("run", "bm25", expand=["hyde"], llms=["NAME"]),
            " makes one",
        )
    rows, lines = [], []
    series: dict[str, list[tuple[float, Estimate]]] = {}
    for each in systems:
        figure = _figure(material, each.system)
        size = billions(each.llm)
        written = [kept for name in collection.datasets if (kept := collection.cell(each.system, name))]
        rows.append([each.system, each.llm, size, _tokens(written), _words(written), figure, _gain(material, each)])
        lines.append([each.system, *_length_effect(material, each)])
        if size is not None and figure:
            series.setdefault(f"{each.method} → {each.plain}", []).append((size, figure))
    series = {name: sorted(points, key=lambda point: point[0]) for name, points in series.items() if len(points) > 1}
    across, up = "billions of parameters", f"{material.measure} × 100"
    tables = [
        Table.of(
            (
                "system",
                "LLM",
                "parameters (10⁹)",
                "tokens per query",
                "words searched",
                "score",
                "gain over no expansion",
            ),
            rows,
            "LLMs by size and length",
            "Tokens: what the LLM wrote, including its reasoning. Not known for texts that were read from a file.",
            name="scaling-llms",
            digits=1,
            chart=Curves(series, across, up, log=True),
        ),
        Table.of(
            ("system", "queries", "Spearman's ρ of words and gain"),
            lines,
            "Do longer texts help?",
            name="scaling-length",
        ),
    ]
    best = max(rows, key=lambda row: row[5].value if isinstance(row[5], Estimate) else -1.0)
    lead = (
        f"Of {len(systems)} expansions, {best[0]} has the best score."
        if len(systems) > 1
        else f"There is one expansion: {best[0]}."
    )
    notes = list(author_notes(each.llm for each in systems))
    if not series:
        notes.append("A curve needs two LLMs whose cards give their sizes.")
    return Section("Scaling", tables, lead, notes, name="scaling")


def author_notes(llms: Iterator[str]) -> Iterator[str]:
    """Yield a note about the demo's recorded texts if they were used."""
    if "author" in llms:
        yield "author is not an LLM. Its texts for the demo were written by hand, by a person who knew the documents."


def _figure(material: Material, system: str) -> Estimate | None:
    records = material.collection.records(system).values()
    parts = [100 * np.array([each[material.measure] for each in record.per_query.values()]) for record in records]
    return _mean(parts, 100.0)


def _gain(material: Material, each: Expanded) -> Estimate | None:
    names = material.collection.datasets
    known = [gain[1] for name in names if (gain := gains(material.collection, each, name, material.measure))]
    return _mean(known, None)


def _mean(parts: Sequence[Floats], top: float | None) -> Estimate | None:
    return over_datasets({str(number): part[None] for number, part in enumerate(parts)}, top)[0] if parts else None


def _tokens(written: Sequence[StoredRecord]) -> float | None:
    """Return the mean number of tokens that an LLM wrote per query; None if its texts were read from files."""
    spent = total(stage.cost for kept in written for stage in kept.record.stages if stage.stage == "expand")
    queries = sum(kept.record.dataset.queries for kept in written)
    return spent.completion_tokens / queries if spent.calls and queries else None


def _words(written: Sequence[StoredRecord]) -> float | None:
    counts = [count for kept in written for count in text_words(kept).values()]
    return float(np.mean(counts)) if counts else None


def text_words(kept: StoredRecord) -> Mapping[str, int]:
    """Return the number of generated words for each query."""
    return {query: sum(len(text.split()) for text in texts) for query, texts in kept.generated().items()}


def _length_effect(material: Material, each: Expanded) -> tuple[int, Value]:
    lengths: list[float] = []
    points: list[float] = []
    for name in material.collection.datasets:
        gain = gains(material.collection, each, name, material.measure)
        kept = material.collection.cell(each.system, name)
        if gain is None or kept is None:
            continue
        words = text_words(kept)
        lengths += [words.get(query, np.nan) for query in gain[0]]
        points += gain[1].tolist()
    return len(points), correlation_interval(np.array(lengths), np.array(points))
