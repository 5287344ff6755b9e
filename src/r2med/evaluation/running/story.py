"""Explain the score of a query: its text, the generated texts, and the ranks of relevant documents by stage."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from shlex import quote

from r2med.data import Dataset
from r2med.data.dataset import Query
from r2med.data.dataset_word import DatasetWord, GivenData, data_words
from r2med.data.layouts import is_dataset
from r2med.data.loading import load_dataset, loaded
from r2med.data.runs.run import NO_DOCUMENT, Run
from r2med.evaluation.records.collection import collect
from r2med.evaluation.records.record import Record
from r2med.evaluation.records.stored_records import StoredRecord
from r2med.foundation.core.errors import UserError, nearest, unknown
from r2med.foundation.runtime.runtime import Runtime, running
from r2med.foundation.runtime.setup import Setup
from r2med.foundation.store import Store
from r2med.systems.system import System


@dataclass(frozen=True)
class RelevantDocument:
    """A relevant document of a query, with its grade and text."""

    id: str
    grade: int
    text: str


@dataclass(frozen=True)
class FoundDocument:
    """A document at the top of the last ranking. The grade is None if the document is not judged."""

    id: str
    grade: int | None
    text: str


FIRST = 3
"""Number of documents at the top of the last ranking that a story tells."""


@dataclass(frozen=True)
class Story:
    """A query of a record, with its relevant documents and their ranks after each stage."""

    record: Record
    """The record that is explained."""
    query: Query
    """The query."""
    generated: tuple[str, ...]
    """Texts that the expansion wrote."""
    relevant: tuple[RelevantDocument, ...]
    """The relevant documents, highest grade first."""
    ranks: Mapping[str, Mapping[str, int]]
    """Stage -> relevant document -> rank, from 1, in the order of stages. Documents beyond the depth are left out."""
    first: tuple[FoundDocument, ...] = ()
    """The documents at the top of the last ranking, if the record has its run file."""


def query_story(
    path: Path | str, query: str, data: str | Path | Dataset | None = None, setup: Setup | Runtime | None = None
) -> Story:
    """Return the story of a query of a record. `query` is its id or its whole text.

    `data` is the folder of the record's dataset, if r2med cannot find it by name. Raises UserError if there is no such
    record or query, or if the data have changed since the record was made.
    """
    path = Path(path)
    if not path.is_file():
        raise UserError(f"{path}: there is no such record")
    with running(setup) as runtime:
        return _story(path, query, data, runtime.answering())


def _story(path: Path, query: str, data: GivenData | None, runtime: Runtime) -> Story:
    record = Record.read(path)
    dataset = _dataset(record, data, runtime.store)
    own = dataset.by_text.get(" ".join(query.split()))
    query_id = own.id if own is not None and query not in record.per_query else query
    if query_id not in record.per_query:
        raise unknown("judged query", query, list(record.per_query)[:10], f"{path} has {_some(record)}")
    asked = next(each for each in dataset.queries if each.id == query_id)
    ranks: dict[str, Mapping[str, int]] = {}
    if len(record.stages) > 1:
        ranks = _plain_ranks(record, dataset, asked, runtime)
    ranks |= {
        _label(record, number): stage.gold.get(query_id, {})
        for number, stage in enumerate(record.stages)
        if number or stage.stage != "expand"
    }
    stored = StoredRecord(record, path)
    return Story(
        record,
        asked,
        tuple(stored.generated().get(query_id, ())),
        _relevant(dataset, query_id),
        ranks,
        _first(stored, dataset, query_id),
    )


def _first(stored: StoredRecord, dataset: Dataset, query_id: str) -> tuple[FoundDocument, ...]:
    """Return the documents at the top of the run file; nothing if the record names none."""
    if (file := stored.run_file) is None:
        return ()
    run = Run.read(file, encoded=True)
    ids = [document for document, _ in run.top(query_id, FIRST)] if query_id in run.queries else []
    grades, rows = dataset.qrels[query_id], dataset.corpus.rows(ids)
    return tuple(
        FoundDocument(document, grades.get(document), dataset.corpus.text(row) if row >= 0 else "")
        for document, row in zip(ids, rows, strict=True)
    )


def find_record(system: str, dataset: str, results: Path | str = "results") -> Path:
    """Return the newest record file of a system on a dataset. Raises UserError if `results` has no such record.

    The record of a folder is that of the data in it: another folder may have the same name.
    """
    own = load_dataset(dataset).fingerprint if is_dataset(Path(dataset)) else ""
    found = collect([system], results, max_failures=1, fingerprint=own)
    kept = {each.record.dataset.name: each.path for each in found}
    name = dataset if dataset in kept else DatasetWord.parse(dataset).record_name
    if name not in kept:
        raise UserError(
            f"{results} has no record of {system} on {name}{nearest(name, kept)}: make one with r2med run "
            f"{quote(system)} --data {quote(dataset)}",
        )
    return kept[name]


def _some(record: Record) -> str:
    ids = list(record.per_query)
    return f"{', '.join(ids[:10])}{', …' if len(ids) > 10 else ''}"


def _dataset(record: Record, data: GivenData | None, store: Store) -> Dataset:
    name = record.dataset.name
    try:
        dataset = load_dataset(name, store) if data is None else loaded(data, store)
    except UserError as error:
        raise (
            error if data is not None else UserError(f"{error}; or give the folder of {name} with data (--data DIR)")
        ) from None
    if dataset.fingerprint != record.dataset.fingerprint:
        given = name if data is None else data_words(data)[0]
        raise UserError(f"the record was made on other data than {given}: give the folder with data (--data DIR)")
    return dataset


def _relevant(dataset: Dataset, query_id: str) -> tuple[RelevantDocument, ...]:
    grades = {document: grade for document, grade in dataset.qrels[query_id].items() if grade > 0}
    ids = sorted(grades, key=lambda document: (-grades[document], document))
    rows = dataset.corpus.rows(ids)
    return tuple(
        RelevantDocument(document, grades[document], dataset.corpus.text(row) if row >= 0 else "")
        for document, row in zip(ids, rows, strict=True)
    )


def _label(record: Record, number: int) -> str:
    stage = record.stages[number]
    return (
        f"{record.stages[0].name} → {stage.name}" if number == 1 and record.stages[0].stage == "expand" else stage.name
    )


def _plain_ranks(record: Record, dataset: Dataset, query: Query, runtime: Runtime) -> dict[str, Mapping[str, int]]:
    """Return the ranks of a search without the expansion; empty if there is no expansion or the search cannot run."""
    try:
        system = System.parse(record.system, runtime)
        if system.expander is None:
            return {}
        alone = System(system.retriever, None, (), runtime)
        run = alone.run(replace(dataset, queries=(query,)), record.settings["k"]).run
    except UserError:  # weights, a key or a file are missing
        return {}
    ids = dataset.corpus.ids(run.rows[0][run.rows[0] != NO_DOCUMENT])
    grades = dataset.qrels[query.id]
    ranks = {name: rank for rank, name in enumerate(ids, 1) if grades.get(name, 0) > 0}
    return {f"{alone} (the question alone)": ranks}
