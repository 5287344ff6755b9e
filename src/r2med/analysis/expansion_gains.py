"""Systems that expand queries with an LLM, and what the expansion adds to the score of each query."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from r2med.evaluation.measure.scores import Floats
from r2med.evaluation.records.stored_records import RecordCollection, StoredRecord
from r2med.foundation.core.spec import joined_stages


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
        return cls(record.system, str(llm), joined_stages(names), record.settings["expand"]["stage"])


def expanded_systems(collection: RecordCollection) -> list[Expanded]:
    """Return the systems that expand queries with an LLM, in their order."""
    known = {kept.record.system: each for kept in collection if (each := Expanded.of(kept))}
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


def author_notes(llms: Iterator[str]) -> Iterator[str]:
    """Yield a note about the demo's recorded texts if they were used."""
    if "author" in llms:
        yield "author is not an LLM. Its texts for the demo were written by hand, by a person who knew the documents."
