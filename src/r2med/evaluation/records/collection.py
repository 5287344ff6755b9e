"""Read the records of several systems on several datasets, and check that they can be compared."""

from __future__ import annotations

import contextlib
import json
import logging
import math
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from r2med.data.benchmark_names import fits_card, is_reserved, is_source_of, known_fingerprints, own_name, reserved_card
from r2med.data.dataset_cards import cards, groups
from r2med.evaluation.measure import HEADLINE_MEASURE, Measure
from r2med.evaluation.measure.measures import ANSWER_FAMILIES, ASPECT_FAMILIES, MIMIC_FAMILIES
from r2med.evaluation.measure.scores import Floats
from r2med.evaluation.records.answer_record import SUFFIX as ANSWERS_SUFFIX
from r2med.evaluation.records.answer_record import AnswerRecord
from r2med.evaluation.records.files_beside import checked_file
from r2med.evaluation.records.record import FileFacts, Record
from r2med.evaluation.records.record_checks import record_faults
from r2med.evaluation.records.sealed_json import OtherFormatError
from r2med.evaluation.records.used_labels import published_name
from r2med.foundation.core.errors import UserError, unknown
from r2med.foundation.core.notices import Command, Notice, Setting
from r2med.foundation.core.one_or_many import flattened
from r2med.foundation.core.spec import named_system, variants
from r2med.foundation.store import default_store

log = logging.getLogger("r2med")

MAX_FAILURES = 0.1
"""Share of queries without generated text, or of failed calls, above which a score says little about its system."""


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
    typed: str = ""
    """The system as it was typed, if the record is shown under another name; otherwise empty."""
    later: tuple[StoredRecord, ...] = ()
    """The records of later repeats of the same system on the same dataset, in their order."""

    @property
    def repeats(self) -> tuple[StoredRecord, ...]:
        """This record alone, then those of later repeats."""
        return (replace(self, later=()), *self.later) if self.later else (self,)

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

    def check_files(self) -> None:
        """Raise UserError if a file beside the record is missing or was changed."""
        for facts in (self.record.run, self.record.traces, self.record.generated):
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
            raise UserError(f"{file} is not a file that r2med wrote: ", self.how_to_make_it_again) from None

    @property
    def how_to_make_it_again(self) -> str:
        """The end of a message: the command that makes the record and its files again."""
        name = self.record.dataset.name
        data = name if name in cards() or name in groups()["demo"] else "FOLDER"
        return Notice("make it again with ", Command("run", self.record.system, data=data))


@dataclass(frozen=True)
class RecordCollection:
    """One record for each system, dataset and repeat. Different systems may have different numbers of repeats."""

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

    def complete(self) -> RecordCollection:
        """Return the systems that have a record on every dataset. Only their averages can be compared."""
        whole = {name for name in self.systems if len(self.records(name)) == len(self.datasets)}
        return RecordCollection({key: kept for key, kept in self.cells.items() if key[0] in whole})

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
    """Yield a remark for each system and dataset that lacks a repeat before its last one."""
    for (system, dataset), kept in collection.cells.items():
        numbers = [each.record.repeat for each in kept.repeats]
        if missing := [str(number) for number in range(max(numbers)) if number not in numbers]:
            which = f"repeat {missing[0]} is" if len(missing) == 1 else f"repeats {', '.join(missing)} are"
            yield f"{system} on {dataset}: {which} missing, and the others are averaged"


def equal_repeats(collection: RecordCollection) -> Iterator[str]:
    """Yield a remark for each varying system and dataset of which two repeats have the same rankings."""
    for (system, dataset), kept in collection.cells.items():
        by_run: dict[str, list[str]] = {}
        for each in kept.repeats:
            if each.record.run is not None and each.record.varies:
                by_run.setdefault(each.record.run.sha256, []).append(str(each.record.repeat))
        for numbers in by_run.values():
            if len(numbers) > 1:
                yield (
                    f"{system} on {dataset}: repeats {', '.join(numbers)} have the same rankings. Either its LLM "
                    "answers the same each time, or its seeds make no difference, or they are copies of one run"
                )


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
            raise UserError(f"{kept.path}: {kept.record.system} on {kept.record.dataset.name}: ", error) from None
        raise UserError(f"{kept.path} scores other queries than the records beside it: run it again") from None


def _needs_labels(measure: str) -> str:
    """Return the end of a message if a measure needs more than qrels; empty for any other measure."""
    family = measure.partition("@")[0]
    if family in ANSWER_FAMILIES:
        return Notice(
            f"{measure} is a measure of answers: ",
            Setting("compare", answers=True),
            " compares the records of r2med answer",
        )
    if family in ASPECT_FAMILIES:
        return Notice(
            f"{measure} needs a dataset with aspects, such as demo/Medical-Sciences: choose it with ",
            Setting("compare", data=...),
        )
    if family not in MIMIC_FAMILIES:
        return ""
    return Notice(
        f"{measure} needs labels of passages that argue for another answer: ",
        Setting("compare", overlays="FILE"),
        " adds them, and r2med judge --rubric mimic makes them",
    )


def given_records(*sources: object) -> list[str | Path]:
    """Return files, folders and names of systems, one or many of each, as a list. A `System` counts as its name.

    Braces in a name make several names.
    """
    return [
        each
        for given in flattened(sources)
        for each in ([given] if isinstance(given, Path) or Path(str(given)).exists() else variants(str(given)))
    ]


def collect(
    sources: Sequence[str | Path] = (),
    results: Path | str = "results",
    max_failures: float = MAX_FAILURES,
    fingerprint: str = "",
) -> RecordCollection:
    """Read records from files, from folders, or by the names of systems in `results`. Without sources, read `results`.

    With the fingerprint of a dataset, only its records are read: folders with different data may have one name.
    If a dataset changed and a system was run on it again, only its newest record is read. A record with a larger share
    of failures than `max_failures` is left out with a note. Raises UserError if no record is left, if records of one
    dataset were made on different data, or if two records claim one cell.
    """
    folder = Path(results)
    kept: dict[Path, StoredRecord] = {}
    everything: list[StoredRecord] | None = None
    for source in sources or [folder]:
        if Path(source).exists() and not _is_system(source, folder):
            read = _read_all(Path(source))
        else:
            if sources and not record_files(folder):
                raise UserError(f"{source}: there is no such record or folder, and no system of that name in {folder}")
            everything = _read_all(folder) if everything is None else everything
            read = _named(str(source), everything, folder)
        kept |= {each.path: each for each in read}
    wanted = [each for each in kept.values() if fingerprint in ("", each.record.dataset.fingerprint)]
    return checked(_without_outdated(_without_failed_tries(wanted, max_failures)), max_failures)


def _is_system(source: str | Path, folder: Path) -> bool:
    """Return True if a word that is also the name of a folder here, such as bm25, is a system with records."""
    if not isinstance(source, str) or Path(source).name != source or Path(source) == folder:
        return False
    return any(path.stem.rpartition("-")[0] == source for path in record_files(folder))


def checked(records: Iterable[StoredRecord], max_failures: float = MAX_FAILURES) -> RecordCollection:
    """Return records as a collection, without those that failed too often.

    Raises UserError if they cannot be compared with each other, or if all failed too often.
    """
    cells: dict[tuple[str, str], list[StoredRecord]] = {}
    first: dict[str, StoredRecord] = {}
    for kept in without_failed((each for cell in records for each in cell.repeats), max_failures):
        record = kept.record
        key = (record.system, record.dataset.name)
        other = first.setdefault(record.dataset.name, kept)
        if fault := misfit(kept, other):
            raise UserError(fault)
        repeats = cells.setdefault(key, [])
        if same := next((other for other in repeats if other.record.repeat == record.repeat), None):
            repeat = f" of repeat {record.repeat}" if record.repeat else ""
            raise UserError(
                f"{record.system} has two records{repeat} on {record.dataset.name}, {same.path} and {kept.path}: "
                "give the path of the right one, or delete the other"
            )
        repeats.append(kept)
    return RecordCollection({key: _together(repeats) for key, repeats in cells.items()})


def _together(repeats: Sequence[StoredRecord]) -> StoredRecord:
    """Return the record of the lowest repeat with the others."""
    first, *later = sorted(repeats, key=lambda kept: kept.record.repeat)
    return replace(first, later=tuple(later)) if later else first


def without_failed(records: Iterable[StoredRecord], max_failures: float) -> list[StoredRecord]:
    """Return the records without those that failed too often. A note names each that is left out.

    Raises UserError if all failed too often.
    """
    given = list(records)
    faults = [_failed(kept.record, max_failures) for kept in given]
    failed = [
        (f"{kept.path}: {kept.record.system} on {kept.record.dataset.name}", fault)
        for kept, fault in zip(given, faults, strict=True)
        if fault
    ]
    if given and len(failed) == len(given):
        raise UserError(failed[0][0], ": ", failed[0][1])
    for which, fault in failed:
        log.warning("%s is left out: %s", which, fault)
    return [kept for kept, fault in zip(given, faults, strict=True) if not fault]


def misfit(kept: StoredRecord, other: StoredRecord) -> str:
    """Return why a record cannot be compared with another one on the dataset of its name; empty if it can be."""
    record = kept.record
    if other.record.dataset.fingerprint != record.dataset.fingerprint:
        older = min(other, kept, key=lambda each: each.record.created)
        return (
            f"{other.path} and {kept.path} were made on different data, both called {record.dataset.name}: "
            f"run the older one, {older.record.system}, again"
        )
    if other.record.per_query.keys() != record.per_query.keys():
        return f"{kept.path} scores other queries of {record.dataset.name} than {other.path}: run it again"
    return ""


def _without_failed_tries(records: Sequence[StoredRecord], limit: float) -> list[StoredRecord]:
    """Return the records without those that failed too often and have a sound record of the same system beside them."""

    def cell(kept: StoredRecord) -> tuple[str, str, int]:
        return kept.record.system, kept.record.dataset.fingerprint, kept.record.repeat

    sound = {cell(kept): kept for kept in records if not _failed(kept.record, limit)}
    left_out = [kept for kept in records if cell(kept) in sound and _failed(kept.record, limit)]
    for kept in left_out:
        log.info("%s is left out: it failed too often, and %s is used", kept.path, sound[cell(kept)].path)
    return [kept for kept in records if kept not in left_out]


def _without_outdated(records: Sequence[StoredRecord]) -> list[StoredRecord]:
    """Return the records without those of earlier data that have a newer record of the same system beside them.

    `r2med data import --update` changes a dataset and keeps its name. Its earlier records stay in the same folder.
    """

    def cell(kept: StoredRecord) -> tuple[Path, str, str]:
        return kept.path.parent, kept.record.system, kept.record.dataset.name

    newest: dict[tuple[Path, str, str], StoredRecord] = {}
    for kept in records:
        if kept.record.created >= newest.setdefault(cell(kept), kept).record.created:
            newest[cell(kept)] = kept
    left_out = [kept for kept in records if _is_outdated(kept.record, newest[cell(kept)].record)]
    for kept in left_out:
        log.info("%s is left out: its data have changed, and %s is newer", kept.path, newest[cell(kept)].path)
    return [kept for kept in records if kept not in left_out]


def _is_outdated(record: Record, newest: Record) -> bool:
    return record.created < newest.created and record.dataset.fingerprint != newest.dataset.fingerprint


AnyRecord = TypeVar("AnyRecord", Record, AnswerRecord)


def honestly_named(record: AnyRecord, path: Path) -> AnyRecord:
    """Return a record whose dataset has a name of the benchmark only if it is the benchmark's data.

    Other data with that name are called own/NAME. If the fingerprint of the dataset is known, it decides. Otherwise the
    source, which names the pinned commit, and the counts of queries, documents and relevant pairs decide.
    """
    facts, stated = record.dataset, published_name(record.dataset)
    if not is_reserved(stated) or _is_benchmark(record):
        return record
    name = f"{own_name(stated)}{facts.name.removeprefix(stated)}"
    _report_name(path.parent, facts.name, name)
    return record.model_copy(update={"dataset": facts.model_copy(update={"name": name})})


@cache  # one warning for all records in a folder
def _report_name(folder: Path, stated: str, name: str) -> None:
    log.warning("%s: the data are not the dataset %s of the benchmark, so they are shown as %s", folder, stated, name)


def _is_benchmark(record: Record | AnswerRecord) -> bool:
    facts, name = record.dataset, published_name(record.dataset)
    known = known_fingerprints(name, default_store())
    if known and not facts.overlays:  # with overlays, the fingerprint and the relevant pairs include their labels
        return facts.fingerprint in known
    card = reserved_card(name)
    if not is_source_of(name, facts.source) and not (facts.overlays and card and card.counts):
        return False
    is_part = facts.overlays or isinstance(record, AnswerRecord)  # answers have facts of the asked queries only
    positives = None if is_part else [query.positives for query in record.queries.values()]
    return fits_card(name, facts.queries, facts.documents, positives)


def _read_all(source: Path) -> list[StoredRecord]:
    if source.name.endswith(ANSWERS_SUFFIX):
        raise UserError(
            f"{source} is a record of answers, not of a ranking: ",
            Setting("compare", answers=True),
            " compares answers",
        )
    files = [source] if source.is_file() else record_files(source)
    if not files:
        raise UserError(f"there are no records in {source}: make some with r2med run bm25 -o {source}")
    return [StoredRecord(record, path) for record, path in sound_records(files, Record.read, record_faults)]


def sound_records(
    files: Iterable[Path], read: Callable[[Path], AnyRecord], faults_of: Callable[[AnyRecord], Iterator[str]]
) -> Iterator[tuple[AnyRecord, Path]]:
    """Yield the records of files that r2med wrote, with their paths. Others are reported and left out.

    A record of another format is left out too: the record that replaces it has another name, so it stays in its folder.
    Raises UserError if all are left out.
    """
    faults: list[tuple[str, str]] = []
    is_any = False
    for path in files:
        try:
            record = read(path)
        except OtherFormatError as error:
            faults.append((str(error), ""))
            continue
        if fault := next(faults_of(record), ""):
            faults.append((f"{path} is not a record that r2med wrote: {fault}", ": run it again"))
        else:
            is_any = True
            yield honestly_named(record, path), path
    if not is_any:
        raise UserError("".join(faults[0]))
    for line, _ in faults:
        log.warning("%s: it is left out", line)


def record_files(folder: Path) -> list[Path]:
    """Return the files of a folder that have a record's name."""
    return [path for path in sorted(folder.rglob("*.json")) if may_be_record(path)]


def may_be_record(path: Path) -> bool:
    """Return True if a file name is that of a record. Other files in a folder of results are ignored."""
    stem, _, key = path.stem.rpartition("-")
    return bool(stem) and len(key) == 10 and all(character in "0123456789abcdef" for character in key)


def _named(name: str, everything: Sequence[StoredRecord], folder: Path) -> list[StoredRecord]:
    systems = dict.fromkeys(kept.record.system for kept in everything)
    meant = named_system(name, systems)
    read = [kept for kept in everything if kept.record.system == meant]
    if not read:
        there = ", ".join(systems) or "no system"
        raise unknown(
            "record, folder or system", name, systems, f"{folder} has records of {there}; r2med run SYSTEM makes others"
        )
    return read


def _failed(record: Record, limit: float) -> str:
    """Return a message if a stage of a record failed for more than this share; empty for a sound record."""
    for stage in record.stages:
        asked = stage.attempts(record.dataset.queries)
        if stage.failures > limit * asked:
            share = stage.failures / asked
            allowed = math.ceil(100 * share) / 100  # rounded up: the record passes with it
            return Notice(
                f"{stage.name} failed for {stage.failures:,} of {asked:,} ({share:.0%}), so its scores say "
                "little: ask again with ",
                Command("run", record.system, ask_again=True),
                ", or allow it with ",
                Setting("compare", max_failures=allowed),
            )
    return ""
