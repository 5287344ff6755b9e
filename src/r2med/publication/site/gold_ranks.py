"""The ranks of the relevant documents of a dataset in each system. Every measure can be computed from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from r2med.data import Qrels
from r2med.evaluation.records.collection import RecordCollection
from r2med.evaluation.records.record import Record

Relevant = list[tuple[str, int]]
"""Relevant documents with their grades."""


def gold_value(collection: RecordCollection, dataset: str, qrels: Qrels | None) -> dict[str, Any]:
    """Return the relevant documents of each query, their grades, and their ranks in every system; 0 beyond the depth.

    If the dataset is not on this machine, `qrels` is None. Then the relevant documents are those that the records
    name, all with grade 1. Relevant documents that no system retrieved have an empty id.
    """
    records = [kept.record if (kept := collection.cell(name, dataset)) else None for name in collection.systems]
    known = [record for record in records if record is not None]
    queries = list(known[0].per_query)
    relevant = [_judged(qrels[query]) if qrels is not None else _retrieved(known, query) for query in queries]
    return {
        "queries": queries,
        "gold": [[document for document, _ in pairs] for pairs in relevant],
        "grades": [[grade for _, grade in pairs] for pairs in relevant],
        "ranks": [_ranks(record, queries, relevant) if record else None for record in records],
    }


def _judged(grades: Mapping[str, int]) -> Relevant:
    return [(document, grade) for document, grade in grades.items() if grade > 0]


def _retrieved(records: Sequence[Record], query: str) -> Relevant:
    documents = sorted({document for record in records for document in record.gold.get(query, {})})
    facts = records[0].queries.get(query)
    nowhere = max(0, (facts.positives if facts else 0) - len(documents))
    return [(document, 1) for document in [*documents, *[""] * nowhere]]


def _ranks(record: Record, queries: Sequence[str], relevant: Sequence[Relevant]) -> list[list[int]]:
    empty: Mapping[str, int] = {}
    ranked = [record.gold.get(query, empty) for query in queries]
    return [[ranks.get(document, 0) for document, _ in pairs] for ranks, pairs in zip(ranked, relevant, strict=True)]
