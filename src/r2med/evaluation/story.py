"""Why a query scored as it did: the question, what was written about it, the gold passages and their ranks by stage."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from r2med.core.errors import UserError, nearest, unknown
from r2med.data import Dataset, load
from r2med.data.dataset import Query
from r2med.records.collection import StoredRecord, collect
from r2med.records.record import Record
from r2med.retrieve.run import NO_DOCUMENT
from r2med.runtime.runtime import Runtime, running
from r2med.runtime.setup import Setup
from r2med.system import System


@dataclass(frozen=True)
class Gold:
    """A relevant document."""

    id: str
    grade: int
    text: str


@dataclass(frozen=True)
class Story:
    """One query of a record."""

    record: Record
    query: Query
    generated: tuple[str, ...]
    gold: tuple[Gold, ...]
    """The relevant documents, the best first."""
    ranks: Mapping[str, Mapping[str, int]]
    """What was searched or reranked, in its order -> gold document -> rank from 1; absent beyond the depth."""


def explain(path: Path, query_id: str, data: str | Path | None = None, setup: Setup | Runtime | None = None) -> Story:
    """Return the story of a query of a record; `data` is where its dataset lies, if its name does not say.

    Raises UserError if there is no such record or query, or if the data is not what the record was made on.
    """
    if not path.is_file():
        raise UserError(f"{path}: there is no such record")
    record = Record.read(path)
    if query_id not in record.per_query:
        raise unknown("judged query", query_id, list(record.per_query)[:10], f"{path} has {_some(record)}")
    dataset = _dataset(record, data)
    query = next(query for query in dataset.queries if query.id == query_id)
    ranks: dict[str, Mapping[str, int]] = {}
    if len(record.stages) > 1:
        with running(setup) as runtime:
            ranks = _plain_ranks(record, dataset, query, runtime)
    ranks |= {
        _label(record, number): stage.gold.get(query_id, {})
        for number, stage in enumerate(record.stages)
        if number or stage.stage != "expand"
    }
    return Story(
        record, query, tuple(StoredRecord(record, path).generated().get(query_id, ())), _gold(dataset, query_id), ranks
    )


def find_record(system: str, dataset: str, results: Path | str = "results") -> Path:
    """Return the file of the newest record of a system on a dataset. Raises UserError if `results` has none."""
    kept = {each.record.dataset.name: each.path for each in collect([system], results, max_failures=1)}
    if dataset not in kept:
        raise UserError(
            f"{results} has no record of {system} on {dataset}{nearest(dataset, kept)}: "
            f"r2med run {shlex.quote(system)} --data {shlex.quote(dataset)} makes one"
        )
    return kept[dataset]


def _some(record: Record) -> str:
    ids = list(record.per_query)
    return f"{', '.join(ids[:10])}{', …' if len(ids) > 10 else ''}"


def _dataset(record: Record, data: str | Path | None) -> Dataset:
    name = record.dataset.name
    try:
        dataset = load(data if data is not None else name)
    except UserError as error:
        raise error if data is not None else UserError(f"{error}; --data DIR says where {name} lies") from None
    if dataset.fingerprint != record.dataset.fingerprint:
        raise UserError(f"{data or name} is not what the record was made on: --data DIR says where that lies")
    return dataset


def _gold(dataset: Dataset, query_id: str) -> tuple[Gold, ...]:
    grades = {document: grade for document, grade in dataset.qrels[query_id].items() if grade > 0}
    ids = sorted(grades, key=lambda document: (-grades[document], document))
    rows = dataset.corpus.rows(ids)
    return tuple(
        Gold(document, grades[document], dataset.corpus.text(row) if row >= 0 else "")
        for document, row in zip(ids, rows, strict=True)
    )


def _label(record: Record, number: int) -> str:
    stage = record.stages[number]
    return (
        f"{record.stages[0].name} → {stage.name}" if number == 1 and record.stages[0].stage == "expand" else stage.name
    )


def _plain_ranks(record: Record, dataset: Dataset, query: Query, runtime: Runtime) -> dict[str, Mapping[str, int]]:
    """Return the ranks of a search with the question alone, where the system expands; none if that cannot be done."""
    try:
        system = System.parse(record.system, runtime)
        if system.expander is None:
            return {}
        alone = System(system.retriever, None, (), runtime)
        run = alone.run(replace(dataset, queries=(query,)), runtime.store, record.settings["k"]).run
    except UserError:  # its weights, its key or its file are not here
        return {}
    ids = dataset.corpus.ids(run.rows[0][run.rows[0] != NO_DOCUMENT])
    gold = dataset.qrels[query.id]
    return {f"{alone} (the question alone)": {name: rank for rank, name in enumerate(ids, 1) if gold.get(name, 0) > 0}}
