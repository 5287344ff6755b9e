"""Read the records of several systems on several datasets, and check that they can be compared."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from shlex import quote
from typing import TypeVar

from r2med.data.benchmark_names import is_known_set, is_reserved, own_name
from r2med.evaluation.records.answer_record import SUFFIX as ANSWERS_SUFFIX
from r2med.evaluation.records.answer_record import AnswerRecord
from r2med.evaluation.records.last_named import last_named, version
from r2med.evaluation.records.record import Record
from r2med.evaluation.records.record_checks import record_faults
from r2med.evaluation.records.repeats import mixed_repeats
from r2med.evaluation.records.sealed_json import OtherFormatError
from r2med.evaluation.records.stored_records import RecordCollection, StoredRecord
from r2med.evaluation.records.used_labels import published_name
from r2med.foundation.core.errors import UserError, unknown
from r2med.foundation.core.flags import flattened
from r2med.foundation.core.spec import named_system, variants
from r2med.foundation.text.terminal_text import quoted

log = logging.getLogger("r2med")

MAX_FAILURES = 0.1
"""Share of queries without generated text, or of failed calls, above which a score says little about its system."""


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
    If the code or the settings of a system changed, or a dataset, only what the last run named is read (`last_named`).
    A record with a larger share of failures than `max_failures` is left out with a note. Raises UserError if no record
    is left, or if records of different folders have the same name and other data or another version.
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
    return checked(last_named(_without_failed_tries(wanted, max_failures)), max_failures)


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
        key = (record.display_name, record.dataset.name)
        other = first.setdefault(record.dataset.name, kept)
        if fault := misfit(kept, other):
            raise UserError(fault)
        repeats = cells.setdefault(key, [])
        if same := next((other for other in repeats if other.record.repeat == record.repeat), None):
            repeat = f" of repeat {record.repeat}" if record.repeat else ""
            raise UserError(
                f"{record.display_name} has two records{repeat} on {record.dataset.name}, {same.path} and "
                f"{kept.path}: give one of the two folders, or run one version under a name of its own with name "
                "(--name)",
            )
        repeats.append(kept)
    for (system, dataset), repeats in cells.items():
        if mixed := mixed_repeats([each.record.settings for each in repeats]):
            raise UserError(
                f"{system} on {dataset}: {mixed}; give one of the two folders, or run one version under a name of "
                "its own with name (--name)",
            )
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
        (f"{kept.path}: {kept.record.display_name} on {kept.record.dataset.name}", fault)
        for kept, fault in zip(given, faults, strict=True)
        if fault
    ]
    if given and len(failed) == len(given):
        raise UserError(f"{failed[0][0]}: {failed[0][1]}")
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
    """Return the records without those that failed too often and have a sound record of the same system beside them.

    A sound record of another version of the system does not replace them: its scores are those of other code.
    """

    def cell(kept: StoredRecord) -> tuple[str, int, str]:
        return kept.record.display_name, kept.record.repeat, version(kept.record)

    sound = {cell(kept): kept for kept in records if not _failed(kept.record, limit)}
    left_out = [kept for kept in records if cell(kept) in sound and _failed(kept.record, limit)]
    _report_left_out((kept, f"it failed too often, and {sound[cell(kept)].path} is used") for kept in left_out)
    return [kept for kept in records if kept not in left_out]


def _report_left_out(reasons: Iterable[tuple[StoredRecord, str]]) -> None:
    """Write one note for each system, however many of its datasets and repeats are left out."""
    by_system: dict[str, list[str]] = {}
    for stored, reason in reasons:
        by_system.setdefault(stored.record.display_name, []).append(f"{stored.path} is left out: {reason}")
    for system, notes in by_system.items():
        more = f" (and {len(notes) - 1} more of {system})" if len(notes) > 1 else ""
        log.info("%s%s", notes[0], more)


AnyRecord = TypeVar("AnyRecord", Record, AnswerRecord)


def honestly_named(record: AnyRecord, path: Path) -> AnyRecord:
    """Return a record whose dataset has the name of a known dataset only if it is that dataset.

    Other data with that name are called own/NAME.
    """
    facts, stated = record.dataset, published_name(record.dataset)
    labelled_demo = bool(facts.overlays) and stated.startswith("demo/")  # its fingerprint includes the labels
    if not is_reserved(stated) or labelled_demo or is_known_set(stated, facts.source, facts.fingerprint):
        return record
    name = f"{own_name(stated)}{facts.name.removeprefix(stated)}"
    _report_name(path.parent, facts.name, name)
    return record.model_copy(update={"dataset": facts.model_copy(update={"name": name})})


@cache  # one warning for all records in a folder
def _report_name(folder: Path, stated: str, name: str) -> None:
    log.warning("%s: the data are not the dataset %s of the benchmark, so they are shown as %s", folder, stated, name)


def _read_all(source: Path) -> list[StoredRecord]:
    if source.name.endswith(ANSWERS_SUFFIX):
        raise UserError(
            f"{source} is a record of answers, not of a ranking: answers (--answers) compares answers",
        )
    files = [source] if source.is_file() else record_files(source)
    if not files:
        raise UserError(f"there are no records in {source}: make some with r2med run bm25 -o {quoted(source)}")
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
    systems = dict.fromkeys(kept.record.display_name for kept in everything)
    meant = named_system(name, systems)
    read = [kept for kept in everything if kept.record.display_name == meant]
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
            return (
                f"{stage.name} failed for {stage.failures:,} of {asked:,} ({share:.0%}), so its scores say little: "
                f"ask again with r2med run {quote(record.system)} --ask-again, or allow it with max_failures "
                f"(--max-failures {allowed})"
            )
    return ""
