"""Compare pairs of systems: what two systems could reach together, and what only one of them finds."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

import numpy as np

from r2med.analysis.material import Material
from r2med.assessment.audit.unjudged import over_datasets
from r2med.evaluation.measure.measures import HEADLINE_MEASURE
from r2med.evaluation.measure.scores import Floats
from r2med.evaluation.measure.significance import means
from r2med.evaluation.records.record import Record
from r2med.foundation.core.errors import UserError
from r2med.foundation.pages.cells import Value
from r2med.foundation.pages.page import Section, Table

CUTOFF = HEADLINE_MEASURE.cutoff or 10
_FOUND = ("both find", "only A", "only B", "neither")


def _pairs(material: Material) -> list[tuple[str, str]]:
    """Return every pair of systems. Raises UserError if no two systems share a dataset."""
    if len(material.shared.systems) < 2 or not material.values:
        raise UserError(
            "this needs two systems that were run on the same datasets: r2med run bm25 'rm3 → bm25' --data NAME",
        )
    return list(combinations(material.shared.systems, 2))


def complementarity(material: Material) -> Section:
    """Return the scores that pairs of systems could reach together, and what only one system finds."""
    values, pairs = material.values, _pairs(material)
    records = {system: material.shared.records(system) for system in material.shared.systems}
    position = {system: number for number, system in enumerate(records)}
    figures = means(values)
    places = np.array([[position[a], position[b]] for a, b in pairs])
    oracles = over_datasets({name: each[places].max(axis=1) for name, each in values.items()})
    fusions = over_datasets(
        {name: np.array([_fused(records[a][name], records[b][name]) for a, b in pairs]) for name in values}
    )
    rows: list[list[Value]] = []
    for (a, b), oracle, fusion in zip(pairs, oracles, fusions, strict=True):
        best = float(max(figures[position[a]], figures[position[b]]))
        counts = np.sum([_shared(records[a][name], records[b][name]) for name in values], axis=0)
        rows.append([a, b, best, oracle, oracle.value - best, fusion, *counts.tolist()])
    rows.sort(key=lambda row: -_number(row[4]))
    heads = ("A", "B", "better of A and B", "oracle by query", "gain", "oracle fusion", *_FOUND)
    note = (
        f"Oracle by query: each query uses the better of the two systems ({material.measure} × 100). Oracle fusion: "
        f"nDCG@10 × 100 if all relevant documents among the first {CUTOFF} of either system were at the top, with "
        f"equal grades. No reranker of the two lists can do better. Find: relevant documents among the first {CUTOFF}."
    )
    tables = [
        Table.of(heads, rows, "Two systems together", note, name="complementarity-pairs"),
        Table.of(
            ("system", "relevant documents", "found", "found by no other"),
            list(_alone(material)),
            f"Relevant documents that only one system has among its first {CUTOFF}",
            name="complementarity-alone",
        ),
    ]
    top = rows[0]
    lead = f"{top[0]} and {top[1]} complement each other most: {top[4]:.1f} points above the better of the two."
    return Section("Complementarity", tables, lead, name="complementarity")


def _number(cell: Value) -> float:
    assert isinstance(cell, int | float)
    return cell


def _top(record: Record, query: str) -> set[str]:
    return {document for document, rank in record.gold.get(query, {}).items() if rank <= CUTOFF}


def _shared(a: Record, b: Record) -> tuple[int, int, int, int]:
    """Count the relevant documents that both, only one, or neither system has among its first ten."""
    both = only_a = only_b = neither = 0
    for query, facts in a.queries.items():
        tops = _top(a, query), _top(b, query)
        both += len(tops[0] & tops[1])
        only_a += len(tops[0] - tops[1])
        only_b += len(tops[1] - tops[0])
        neither += facts.positives - len(tops[0] | tops[1])
    return both, only_a, only_b, neither


def _fused(a: Record, b: Record) -> Floats:
    """Return nDCG@10 × 100 of every query if all relevant documents of both first ten were at the top."""
    gain = np.concatenate(([0.0], np.cumsum(1 / np.log2(np.arange(2, CUTOFF + 2)))))
    found = np.array([len(_top(a, query) | _top(b, query)) for query in a.queries])
    positives = np.array([max(1, facts.positives) for facts in a.queries.values()])
    return np.asarray(100 * gain[np.minimum(found, CUTOFF)] / gain[np.minimum(positives, CUTOFF)])


def _alone(material: Material) -> Iterator[list[Value]]:
    records = {system: material.shared.records(system) for system in material.shared.systems}
    for system, mine in records.items():
        gold = found = alone = 0
        for name in material.values:
            for query, facts in mine[name].queries.items():
                others = (_top(each[name], query) for other, each in records.items() if other != system)
                top = _top(mine[name], query)
                gold += facts.positives
                found += len(top)
                alone += len(top.difference(*others))
        yield [system, gold, found, alone]
