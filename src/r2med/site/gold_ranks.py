"""Where each system ranks the relevant documents of a dataset: what every measure can be computed from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from r2med.data import Qrels
from r2med.records.collection import RecordCollection
from r2med.records.record import Record

Gold = list[tuple[str, int]]
"""Relevant documents with their grades."""


def gold_value(collection: RecordCollection, dataset: str, qrels: Qrels | None) -> dict[str, Any]:
    """Return the relevant documents of each query, their grades, and their rank in every system, 0 beyond its depth.

    Without `qrels`, where the dataset is not on this machine, relevant documents are those that any system has; the
    ones that nobody has count with an empty id, and all of them with grade 1.
    """
    records = [kept.record if (kept := collection.cell(name, dataset)) else None for name in collection.systems]
    known = [record for record in records if record is not None]
    queries = list(known[0].per_query)
    gold = [_judged(qrels[query]) if qrels is not None else _retrieved(known, query) for query in queries]
    return {
        "queries": queries,
        "gold": [[document for document, _ in pairs] for pairs in gold],
        "grades": [[grade for _, grade in pairs] for pairs in gold],
        "ranks": [_ranks(record, queries, gold) if record else None for record in records],
    }


def _judged(grades: Mapping[str, int]) -> Gold:
    return [(document, grade) for document, grade in grades.items() if grade > 0]


def _retrieved(records: Sequence[Record], query: str) -> Gold:
    documents = sorted({document for record in records for document in record.gold.get(query, {})})
    facts = records[0].queries.get(query)
    nowhere = max(0, (facts.positives if facts else 0) - len(documents))
    return [(document, 1) for document in [*documents, *[""] * nowhere]]


def _ranks(record: Record, queries: Sequence[str], gold: Sequence[Gold]) -> list[list[int]]:
    empty: Mapping[str, int] = {}
    ranked = [record.gold.get(query, empty) for query in queries]
    return [[ranks.get(document, 0) for document, _ in pairs] for ranks, pairs in zip(ranked, gold, strict=True)]
