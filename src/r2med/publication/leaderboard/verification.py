"""Compute the scores of an entry again from its runs, and report what does not match: `verify(entries, runs)`."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

import numpy as np

from r2med.data import Dataset
from r2med.data.dataset_cards import cards, groups, source_of
from r2med.data.loading import load_dataset
from r2med.data.runs.run import Run
from r2med.data.runs.run_file import decode_id, run_bytes
from r2med.data.runs.trec import format_run
from r2med.evaluation.measure import Measure, relevant_ranks
from r2med.evaluation.measure.scores import Scores, dataset_scores
from r2med.evaluation.records.answer_facts import read_answers
from r2med.evaluation.records.dataset_facts import dataset_facts, query_facts
from r2med.evaluation.records.lock_file import locks_among
from r2med.evaluation.records.record import Record
from r2med.evaluation.records.record_facts import DatasetFacts
from r2med.foundation.core.errors import UserError
from r2med.foundation.store import Store
from r2med.foundation.store.files import sha256
from r2med.publication.leaderboard.answer_verification import answer_record_faults, unverified
from r2med.publication.leaderboard.entry_verdicts import EntryVerdict, Verdicts, refuse_submitted
from r2med.publication.leaderboard.lock_faults import lock_faults
from r2med.publication.leaderboard.submission import entry_files, read_entry


@dataclass(frozen=True)
class Verification:
    """One record of an entry and its first fault. The fault is empty if all values were computed again and match.

    For an entry that cannot be read, system and dataset are empty.
    """

    entry: Path
    """The file of the entry."""
    system: str
    """The system, as typed."""
    dataset: str
    """The name of the dataset."""
    fault: str = ""
    """What does not match, in one line; empty if everything matches."""
    unverified: tuple[str, ...] = ()
    """What an answer record states that cannot be computed again, such as the grades of a judge."""
    repeat: int = 0
    """Which run of a varying system it is, from 0."""

    @property
    def verdict(self) -> str:
        """The fault, or that everything matches that can be computed again."""
        left = f"; not verified: {'; '.join(self.unverified)}" if self.unverified else ""
        return self.fault or f"matches{left}"

    def __str__(self) -> str:
        run = f", repeat {self.repeat}" if self.repeat else ""
        record = f"{self.system} on {self.dataset}{run}: " if self.system else ""
        return f"{self.entry}: {record}{self.verdict}"


def verified_entries(
    places: Sequence[Path], runs: Path, data: Sequence[Dataset], store: Store, verdicts: Path | None = None
) -> list[Verification]:
    """Check every record of entries against run files and judgements. A bad entry does not stop the others."""
    beside = [runs, *(place for place in places if place.is_dir())]
    if verdicts is not None:
        refuse_submitted(verdicts, beside)
    desk = _Desk(runs, {dataset.name: dataset for dataset in data}, store)
    checked: list[Verification] = []
    found: dict[str, EntryVerdict] = {}
    for path in entry_files(places):
        of_records, of_answers = desk.check_entry(path)
        checked += [*of_records, *of_answers]
        if path.is_file() and all(each.system for each in of_records):  # otherwise it cannot be read
            faults = [tuple(each.fault for each in part) for part in (of_records, of_answers)]
            found[sha256(path)] = EntryVerdict(records=faults[0], answers=faults[1])
    if verdicts is not None:
        Verdicts(entries=found).write(verdicts, beside)
    return checked


class _Desk:
    """The run files, the locks, and the datasets that were loaded so far."""

    def __init__(self, runs: Path, given: Mapping[str, Dataset], store: Store) -> None:
        self._files = _run_files(runs)
        self._locks = locks_among(runs.rglob("*"))
        self._datasets: dict[str, Dataset | str] = dict(given)
        self._store = store

    def check_entry(self, path: Path) -> tuple[list[Verification], list[Verification]]:
        """Return the result for each record and for each answer record of an entry."""
        try:
            entry = read_entry(path)
        except UserError as error:
            return [Verification(path, "", "", str(error).removeprefix(f"{path}: "))], []
        counts = Counter((record.display_name, record.dataset.name) for record in entry.records)
        records = []
        for record in entry.records:
            name, dataset = record.display_name, record.dataset.name
            fault = next(self._faults(record, counts[name, dataset]), "")
            records.append(Verification(path, name, dataset, fault, repeat=record.repeat))
        answers = []
        for each in entry.answers:
            fault = next(self._answer_faults(each), "")
            left = () if fault else unverified(each)
            answers.append(Verification(path, each.display_name, each.dataset.name, fault, left, each.repeat))
        return records, answers

    def _answer_faults(self, record: Record) -> Iterator[str]:
        """Yield the faults of an answer record, in the order of the checks."""
        stated = record.answers.file
        assert stated is not None
        if (file := self._files.get(stated.sha256)) is None:
            yield f"its file of answers is missing or was changed: {stated.file}"
            return
        dataset = self._dataset(record.dataset)
        if isinstance(dataset, str):
            yield dataset
            return
        yield from _fact_faults(record.dataset, dataset)
        try:
            answers = read_answers(file, "r2med answer makes it again")
        except UserError as error:
            yield str(error)
            return
        yield from answer_record_faults(record, answers, dataset)

    def _dataset(self, facts: DatasetFacts) -> Dataset | str:
        if facts.name not in self._datasets:
            self._datasets[facts.name] = _loaded(facts, self._store)
        return self._datasets[facts.name]

    def _faults(self, record: Record, runs: int) -> Iterator[str]:
        """Yield the faults of a record, in the order of the checks. `runs` is the number of its system's runs."""
        assert record.run is not None
        file = self._files.get(record.run.sha256)
        if file is None:
            named = next((each for each in self._files.values() if each.name == record.run.file), None)
            yield f"{named} is not the run of this record" if named else f"its run file is missing: {record.run.file}"
            return
        dataset = self._dataset(record.dataset)
        if isinstance(dataset, str):
            yield dataset
        else:
            yield from run_faults(record, dataset, file)
            yield from lock_faults(record, self._locks, runs)


def _run_files(runs: Path) -> dict[str, Path]:
    if not runs.is_dir():
        raise UserError(f"{runs}: no such folder: give the folder of the run files")
    files = [file for file in sorted(runs.rglob("*")) if file.is_file()]
    return {sha256(file): file for file in files if file.suffix != ".json"}


def _loaded(facts: DatasetFacts, store: Store) -> Dataset | str:
    """Return the dataset of a record, or why it cannot be loaded. A name in an entry is never used as a path."""
    name = facts.name
    if name not in cards() and name not in groups()["demo"]:
        what = "this dataset with the file of its overlay" if facts.overlays else "a folder of this name"
        return f"r2med does not know the dataset {name}: give {what} by data (--data)"
    try:
        dataset = load_dataset(name, store)
    except UserError as error:
        return str(error)
    if dataset.name != name:
        return f"on this machine, {name} is not the benchmark's dataset: one of your cards names {dataset.folder}"
    return dataset


def run_faults(record: Record, dataset: Dataset, file: Path) -> Iterator[str]:
    """Yield what does not match between a record, its dataset and its run file, in the order of the checks."""
    yield from _fact_faults(record.dataset, dataset)
    if query_facts(dataset) != record.queries:
        yield _wrong_facts(dataset)
    yield from _run_faults(record, dataset, file)


def _wrong_facts(dataset: Dataset) -> str:
    return f"its facts about {dataset.name} and its queries are wrong"


def _fact_faults(stated: DatasetFacts, dataset: Dataset) -> Iterator[str]:
    here = dataset_facts(dataset)
    if stated.fingerprint != here.fingerprint:
        yield (
            f"it was made on other data than {dataset.name} on this machine "
            f"(fingerprint {stated.fingerprint}, here {here.fingerprint})"
        )
    if stated.source not in ("", here.source, source_of(dataset.name)):
        yield f"it states a wrong source of {dataset.name}: {stated.source}"
    if here.model_copy(update={"source": stated.source}) != stated:
        yield _wrong_facts(dataset)


def _run_faults(record: Record, dataset: Dataset, file: Path) -> Iterator[str]:
    assert record.run is not None
    try:
        run = Run.read(file, encoded=True)
    except UserError as error:
        yield str(error)
        return
    yield from _strange_ids(run, dataset)
    yield from _odd_lines(run, file)
    if int(run.found.max(initial=0)) > record.run.depth:
        yield f"its run has more than {record.run.depth:,} documents for a query"
    scores = dataset_scores(dataset, run, record.mean)
    if unfounded := [name for name in record.mean if Measure.parse(name) not in scores.values]:
        yield f"it states {unfounded[0]}, but {dataset.name} does not have the labels for it"
        return
    yield from _wrong_scores(record, scores)
    if relevant_ranks(dataset.qrels, run) != record.gold:
        yield "the ranks of its relevant documents are not those of its run"


def _odd_lines(run: Run, file: Path) -> Iterator[str]:
    """Yield a fault if a file is not as r2med writes runs, because other tools could read something else in it.

    Such are infinite scores, digits of other scripts, ranks that do not follow the scores, and comments.
    """
    if not np.isfinite(run.scores).all():
        yield "its run has a score that is not a finite number"
    with run_bytes(file) as opened:
        lines = opened.read().split(b"\n")
    tag = lines[0].rpartition(b" ")[2].decode(errors="replace")
    for number, (line, expected) in enumerate(zip_longest(lines, _written(run, tag), fillvalue=None), 1):
        if line != expected:
            found = (line or b"").decode(errors="replace")[:60]
            yield f"line {number:,} of its run is not as r2med writes it: {found!r}"
            return


def _written(run: Run, tag: str) -> Iterator[bytes]:
    for part in format_run(run, decode_id(tag)):
        yield from part.split(b"\n")[:-1]
    yield b""


def _strange_ids(run: Run, dataset: Dataset) -> Iterator[str]:
    """Yield faults for queries and documents that the dataset does not have. No system can rank them."""
    if unknown := next(iter({*run.queries} - {query.id for query in dataset.queries}), None):
        yield f"its run names query {unknown!r}, which {dataset.name} does not have"
    documents = run.documents.ids(run.distinct()[0])
    missing = [name for name, row in zip(documents, dataset.corpus.rows(documents), strict=True) if row < 0]
    if missing:
        yield f"its run names document {missing[0]!r}, which {dataset.name} does not have"


def _wrong_scores(record: Record, computed: Scores) -> Iterator[str]:
    if computed.per_query.keys() != record.per_query.keys():
        yield "its scored queries are not the judged queries"
        return
    for query, values in computed.per_query.items():
        for measure, value in values.items():
            stated = record.per_query[query].get(str(measure))
            if stated is not None and not math.isclose(stated, value, abs_tol=1e-9):
                yield f"{measure} of query {query} is {stated:.4f}, but its run gives {value:.4f}"
    for measure, value in computed.mean.items():
        stated = record.mean.get(str(measure))
        if stated is not None and not math.isclose(stated, value, abs_tol=1e-9):
            yield f"its {measure} is {stated:.4f}, but its run gives {value:.4f}"
