"""Records with the files beside them, and collections of them: one record for each name, dataset and repeat."""

from __future__ import annotations

import contextlib
import json
import logging
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path
from shlex import quote
from statistics import fmean
from typing import Any

import numpy as np

from r2med.data.dataset_cards import cards, groups
from r2med.evaluation.measure import HEADLINE_MEASURE, Measure
from r2med.evaluation.measure.measures import ANSWER_FAMILIES, ASPECT_FAMILIES
from r2med.evaluation.measure.scores import Floats
from r2med.evaluation.records.answer_facts import GivenAnswer, read_answers
from r2med.evaluation.records.record import Record, checked_file
from r2med.evaluation.records.record_facts import FileFacts
from r2med.foundation.core.cost import Cost, total
from r2med.foundation.core.errors import UserError, unknown

log = logging.getLogger("r2med")


@dataclass(frozen=True)
class StoredRecord:
    """A record and its path. An entry of another person has no files beside it."""

    record: Record
    path: Path
    is_entry: bool = False
    """True if the path is that of an entry. Files beside an entry do not belong to the record."""
    unverified: str = ""
    """Why the record of an entry is not verified; empty if it is, and for records that were run here."""
    entry: str = ""
    """The names of the entries with this record, separated by commas; empty for records that were run here."""
    later: tuple[StoredRecord, ...] = ()
    """The records of later repeats of the same system on the same dataset, in their order."""
    reused: bool = False
    """True if the run that returns it found it in its folder."""

    @property
    def repeats(self) -> tuple[StoredRecord, ...]:
        """This record alone, then those of later repeats."""
        return (replace(self, later=()), *self.later) if self.later else (self,)

    @property
    def means(self) -> dict[str, float]:
        """Measure -> mean over the repeats."""
        records = [repeat.record for repeat in self.repeats]
        return {measure: fmean(record.mean[measure] for record in records) for measure in self.record.mean}

    @property
    def cost(self) -> Cost:
        """The cost of one run: the mean over the repeats."""
        return total(repeat.record.cost for repeat in self.repeats).times(1 / len(self.repeats))

    @property
    def seconds_per_query(self) -> float | None:
        """The mean seconds of a query, over the repeats; None if the cost of one of them is not known."""
        seconds = [repeat.record.seconds_per_query for repeat in self.repeats]
        known = [value for value in seconds if value is not None]
        return fmean(known) if len(known) == len(seconds) else None

    @property
    def run_file(self) -> Path | None:
        """The file of the ranking; None if the record names none, or is an entry.

        Raises UserError if the file is missing or was changed. The file is hashed each time.
        """
        return self._beside(self.record.run)

    def traces(self) -> dict[str, list[Any]]:
        """Return query -> the traces of its search agents. Raises UserError if the file is missing or changed."""
        file = self._beside(self.record.traces)
        with self._as_written(file):
            traces = dict(json.loads(file.read_bytes()) if file else {})
            return {query: trace if isinstance(trace, list) else [trace] for query, trace in traces.items()}

    def generated(self) -> dict[str, list[str]]:
        """Return the texts of an expansion: query -> texts. Raises UserError if the file is missing or changed."""
        file = self._beside(self.record.generated)
        with self._as_written(file):
            rows = map(json.loads, file.read_bytes().splitlines()) if file else ()
            return {str(row["id"]): list(map(str, row["texts"])) for row in rows}

    def given(self) -> tuple[GivenAnswer, ...]:
        """Return all answers of a reader. Raises UserError if their file is missing or was changed."""
        file = self._beside(self.record.answers.file)
        return read_answers(file, self.how_to_make_it_again) if file else ()

    def check_files(self) -> None:
        """Raise UserError if a file beside the record is missing or was changed."""
        for facts in self.record.files:
            self._beside(facts)

    def _beside(self, facts: FileFacts | None) -> Path | None:
        """Return the path of a file beside the record, after its bytes were checked."""
        if facts is None or self.is_entry:
            return None
        return checked_file(self.path.parent / facts.file, facts.sha256, self.how_to_make_it_again)

    @contextlib.contextmanager
    def _as_written(self, file: Path | None) -> Iterator[None]:
        """Turn an error in the content of a file into one line. A record of another person may name any file."""
        try:
            yield
        except (ValueError, KeyError, TypeError, RecursionError):
            raise UserError(f"{file} is not a file that r2med wrote: {self.how_to_make_it_again}") from None

    @property
    def how_to_make_it_again(self) -> str:
        """The end of a message: the command that makes the record and its files again."""
        if self.record.kind == "answers":
            return "r2med answer makes it again"
        run = ["r2med", "run", self.record.system, "--data", typed_name(self.record.dataset.name)]
        if self.record.name:
            run += ["--name", self.record.name]
        return f"make it again with {' '.join(map(quote, run))}"


def typed_name(name: str) -> str:
    """Return the name of a dataset in records as it is typed. Only its owner knows where a folder is."""
    return name if name in cards() or name in groups()["demo"] else "FOLDER"


@dataclass(frozen=True)
class RecordCollection:
    """One record for each system, dataset and repeat. Different systems may have different numbers of repeats.

    In a collection of answers, a system is one with a reader of its results.
    """

    cells: Mapping[tuple[str, str], StoredRecord]
    """System and dataset -> the record of the lowest repeat, which has those of later repeats."""

    @cached_property
    def systems(self) -> tuple[str, ...]:
        """The names of the systems, in the order of reading."""
        return tuple(dict.fromkeys(system for system, _ in self.cells))

    @cached_property
    def datasets(self) -> tuple[str, ...]:
        """The names of the datasets, in the benchmark's order, then all others."""
        order = {name: number for number, name in enumerate(cards())}
        names = dict.fromkeys(dataset for _, dataset in self.cells)
        return tuple(sorted(names, key=lambda name: (order.get(name.rpartition("/")[2], len(order)), name)))

    def __iter__(self) -> Iterator[StoredRecord]:
        """Yield one record of each system and dataset: that of the lowest repeat. `runs_of_all` has all."""
        return iter(self.cells.values())

    def cell(self, system: str, dataset: str) -> StoredRecord | None:
        """Return the record of a system on a dataset, if there is one. Of several repeats it is the lowest."""
        return self.cells.get((system, dataset))

    def repeats(self, system: str, dataset: str) -> tuple[StoredRecord, ...]:
        """Return the records of all repeats of a system on a dataset, in their order."""
        kept = self.cell(system, dataset)
        return kept.repeats if kept else ()

    @property
    def runs_of_all(self) -> tuple[StoredRecord, ...]:
        """The records of all repeats of all systems on all datasets."""
        return tuple(each for kept in self for each in kept.repeats)

    def varies(self, system: str) -> bool:
        """Return True if another run of a system can give other scores."""
        return any(kept.record.varies for name in self.datasets for kept in self.repeats(system, name))

    def records(self, system: str) -> dict[str, Record]:
        """Return a system's records: dataset -> record. Of several repeats it is the lowest."""
        return {name: kept.record for name in self.datasets if (kept := self.cell(system, name))}

    def on(self, datasets: Container[str]) -> RecordCollection:
        """Return the records on some datasets, and so the systems that have any."""
        return RecordCollection({key: kept for key, kept in self.cells.items() if key[1] in datasets})

    def with_measure(self, measure: str) -> RecordCollection:
        """Return the records to compare by a measure: all, or those on datasets with the labels that it needs."""
        if Measure.parse(measure).from_qrels:
            return self
        having = {key: kept for key, kept in self.cells.items() if measure in kept.record.mean}
        return RecordCollection(having) if having else self

    def values(self, measure: Measure | str = HEADLINE_MEASURE) -> dict[str, tuple[tuple[str, ...], Floats]]:
        """Return dataset -> (query ids, one row of values per system; NaN if it has no record).

        The values of a system with several repeats are means over them.
        """
        values = {}
        for dataset, (queries, runs) in self.runs(measure).items():
            nothing = np.full(len(queries), np.nan)
            values[dataset] = (queries, np.array([each.mean(axis=0) if len(each) else nothing for each in runs]))
        return values

    def runs(self, measure: Measure | str = HEADLINE_MEASURE) -> dict[str, tuple[tuple[str, ...], list[Floats]]]:
        """Return dataset -> (query ids, for each system one row of values per repeat; no row if it has no record)."""
        name = str(measure)
        runs = {}
        for dataset in self.datasets:
            queries = next(tuple(kept.record.per_query) for key, kept in self.cells.items() if key[1] == dataset)
            lines = [[_line(kept, queries, name) for kept in self.repeats(each, dataset)] for each in self.systems]
            runs[dataset] = (queries, [np.array(each, dtype=np.float64).reshape(-1, len(queries)) for each in lines])
        return runs


def missing_repeats(collection: RecordCollection) -> Iterator[str]:
    """Yield a remark for each system that lacks a repeat before its last one, with its datasets."""
    datasets: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for (system, dataset), kept in collection.cells.items():
        numbers = [each.record.repeat for each in kept.repeats]
        if missing := tuple(str(number) for number in range(max(numbers)) if number not in numbers):
            datasets.setdefault((system, missing), []).append(dataset)
    for (system, missing), names in datasets.items():
        which = f"repeat {missing[0]} is" if len(missing) == 1 else f"repeats {', '.join(missing)} are"
        yield f"{system} on {_counted(names)}: {which} missing, and the others are averaged"


def equal_repeats(collection: RecordCollection) -> Iterator[str]:
    """Yield a remark for each varying system whose rankings are equal in two repeats, with its datasets."""
    datasets: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for (system, dataset), kept in collection.cells.items():
        by_run: dict[str, list[str]] = {}
        for each in kept.repeats:
            if each.record.run is not None and each.record.varies:
                by_run.setdefault(each.record.run.sha256, []).append(str(each.record.repeat))
        for numbers in by_run.values():
            if len(numbers) > 1:
                datasets.setdefault((system, tuple(numbers)), []).append(dataset)
    for (system, repeats), names in datasets.items():
        yield (
            f"{system} on {_counted(names)}: repeats {', '.join(repeats)} have the same rankings. Either its LLM "
            "answers the same each time, or its seeds make no difference, or they are copies of one run"
        )


def _counted(datasets: Sequence[str]) -> str:
    """Return the one dataset, or how many there are: a note that is equal for all of them is one note."""
    return datasets[0] if len(datasets) == 1 else f"{len(datasets)} datasets"


def with_rankings(collection: RecordCollection) -> RecordCollection:
    """Return the records that have a ranking. A record whose run file is missing is reported and left out.

    Raises UserError if a run file was changed.
    """

    def has_ranking(kept: StoredRecord) -> bool:
        run = kept.record.run
        if run is not None and not kept.is_entry and not (file := kept.path.parent / run.file).exists():
            _report_missing(file, kept.how_to_make_it_again)
            return False
        return kept.run_file is not None

    return RecordCollection({key: kept for key, kept in collection.cells.items() if has_ranking(kept)})


@cache  # one note for all pages of a board
def _report_missing(file: Path, again: str) -> None:
    log.warning("not in the explorer: %s is missing: %s", file, again)


def _line(kept: StoredRecord, queries: Sequence[str], measure: str) -> list[float]:
    try:
        return [kept.record.per_query[query][measure] for query in queries]
    except KeyError:
        known = next(iter(kept.record.per_query.values()), {})
        if measure not in known:
            error = _needs_labels(measure) or unknown("measure", measure, known)
            raise UserError(f"{kept.path}: {kept.record.display_name} on {kept.record.dataset.name}: {error}") from None
        raise UserError(f"{kept.path} scores other queries than the records beside it: run it again") from None


def _needs_labels(measure: str) -> str:
    """Return the end of a message if a measure needs more than qrels; empty for any other measure."""
    family = measure.partition("@")[0]
    if family in ANSWER_FAMILIES:
        return f"{measure} is a measure of answers: answers (--answers) compares the records of r2med answer"
    if family in ASPECT_FAMILIES:
        return f"{measure} needs a dataset with aspects, such as demo/Medical-Sciences: choose it with data (--data)"
    return ""
