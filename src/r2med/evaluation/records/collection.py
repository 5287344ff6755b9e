"""Read the records of several systems on several datasets, and check that they can be compared."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from shlex import quote

from r2med.data.dataset_cards import is_known_set, is_reserved, own_name
from r2med.evaluation.records.last_named import last_named, version
from r2med.evaluation.records.record import ANSWERS_SUFFIX, Kind, OtherFormatError, Record
from r2med.evaluation.records.record_checks import record_faults
from r2med.evaluation.records.repeats import mixed_repeats
from r2med.evaluation.records.stored_records import RecordCollection, StoredRecord
from r2med.evaluation.records.used_labels import published_name
from r2med.foundation.core.errors import UserError, unknown
from r2med.foundation.core.flags import flattened
from r2med.foundation.core.spec import named_system, variants
from r2med.foundation.text.terminal_text import quoted

log = logging.getLogger("r2med")

MAX_FAILURES = 0.1
"""Share of queries without generated text, or of failed calls, above which a score says little about its system."""
_SUFFIXES: Mapping[Kind, str] = {"ranking": ".json", "answers": ANSWERS_SUFFIX}


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
    kind: Kind = "ranking",
) -> RecordCollection:
    """Read records of one kind from files, from folders, or by names in `results`. Without sources, read `results`.

    A name is that of a system; for answers, also that of a reader, or of both as in `bm25 · smollm2`. With the
    fingerprint of a dataset, only its records are read: folders with different data may have one name. If the code or
    the settings of a system changed, or a dataset, only what the last run named is read (`last_named`). A record with a
    larger share of failures than `max_failures` is left out with a note. Raises UserError if no record is left, or if
    records of different folders have the same name and other data or another version.
    """
    folder = Path(results)
    kept: dict[Path, StoredRecord] = {}
    everything: list[StoredRecord] | None = None
    for source in sources or [folder]:
        if Path(source).exists() and not _is_system(source, folder, kind):
            read = _read_all(Path(source), kind)
        else:
            if sources and not record_files(folder, kind):
                raise UserError(f"{source}: there is no such record or folder, and no system of that name in {folder}")
            everything = _read_all(folder, kind) if everything is None else everything
            read = _named(str(source), everything, folder, kind)
        kept |= {each.path: each for each in read}
    wanted = [each for each in kept.values() if fingerprint in ("", each.record.dataset.fingerprint)]
    if kind == "answers":
        wanted = named_apart(wanted)
    return checked(last_named(_without_failed_tries(wanted, max_failures)), max_failures)


def _is_system(source: str | Path, folder: Path, kind: Kind) -> bool:
    """Return True if a word that is also the name of a folder here, such as bm25, is a system with records."""
    if not isinstance(source, str) or Path(source).name != source or Path(source) == folder:
        return False
    names = (path.name.removesuffix(_SUFFIXES[kind]).rpartition("-")[0] for path in record_files(folder, kind))
    return any(source in (name, *name.split("__")) for name in names)


def named_apart(answers: Iterable[StoredRecord]) -> list[StoredRecord]:
    """Return records of answers whose names also say the number of passages or the form where these tell two apart."""
    kept = list(answers)
    passages: dict[str, set[int]] = {}
    forms: dict[tuple[str, str], set[str]] = {}
    plain = [each.record.model_copy(update={"name": ""}) for each in kept]
    for record in plain:
        passages.setdefault(record.display_name, set()).add(record.answers.passages)
        forms.setdefault((record.display_name, record.dataset.name), set()).add(record.answers.form)
    # Each dataset has its own form. Two forms are two names only if one dataset was asked in both.
    asked_in_both = {name for (name, _), of_dataset in forms.items() if len(of_dataset) > 1}

    def telling_name(record: Record) -> str:
        name = record.display_name
        shown_passages = f" · {record.answers.passages} passages" if len(passages[name]) > 1 else ""
        return name + shown_passages + (f" · {record.answers.form}" if name in asked_in_both else "")

    return [
        replace(each, record=record.model_copy(update={"name": telling_name(record)}))
        for each, record in zip(kept, plain, strict=True)
    ]


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
                f"{kept.path}: give one of the two folders{_or_a_name(record)}",
            )
        repeats.append(kept)
    for (system, dataset), repeats in cells.items():
        if mixed := mixed_repeats([each.record.settings for each in repeats]):
            raise UserError(
                f"{system} on {dataset}: {mixed}; give one of the two folders{_or_a_name(repeats[0].record)}",
            )
    return RecordCollection({key: _together(repeats) for key, repeats in cells.items()})


def _or_a_name(record: Record) -> str:
    return "" if record.kind == "answers" else ", or run one version under a name of its own with name (--name)"


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
    if record.kind == "ranking" and other.record.per_query.keys() != record.per_query.keys():
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


def honestly_named(record: Record, path: Path) -> Record:
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


def _read_all(source: Path, kind: Kind) -> list[StoredRecord]:
    """Return the records of a file or a folder. Raises UserError if there is none that can be used."""
    files = [source] if source.is_file() else record_files(source, kind)
    if not files and kind == "answers":
        raise UserError(
            f"there are no answer records in {source}: make some with "
            f"r2med answer bm25 --reader LLM -o {quoted(source)}"
        )
    if not files:
        raise UserError(f"there are no records in {source}: make some with r2med run bm25 -o {quoted(source)}")
    records, faults = sound_records(files, kind)
    if not records:
        raise UserError("".join(faults[0]))
    for fault, _ in faults:
        log.warning("%s: it is left out", fault)
    return records


def sound_records(files: Iterable[Path], kind: Kind) -> tuple[list[StoredRecord], list[tuple[str, str]]]:
    """Return the records of files, and for each file that has none of this kind the fault and what mends it.

    A record of another format is such a fault: the record that replaces it may have another name, so it stays in its
    folder. Raises UserError if a file was changed or cut off.
    """
    records, faults = [], []
    for path in files:
        try:
            record = Record.read(path)
        except OtherFormatError as error:
            faults.append((str(error), ""))
            continue
        if record.kind != kind:
            faults.append((f"{path} {_OF_THE_OTHER_KIND[record.kind]}", ""))
        elif fault := next(record_faults(record), ""):
            faults.append((f"{path} is not a record that r2med wrote: {fault}", ": run it again"))
        else:
            records.append(StoredRecord(honestly_named(record, path), path))
    return records, faults


_OF_THE_OTHER_KIND: Mapping[Kind, str] = {
    "ranking": "is a record of a ranking, not of answers: leave out answers (--answers), which compares answers",
    "answers": "is a record of answers, not of a ranking: answers (--answers) compares answers",
}


def record_files(folder: Path, kind: Kind = "ranking") -> list[Path]:
    """Return the files of a folder that have the name of a record of a kind. Its other files are ignored."""
    if kind == "answers":
        return sorted(folder.rglob(f"*{ANSWERS_SUFFIX}"))
    return [path for path in sorted(folder.rglob("*.json")) if _may_be_record(path)]


def _may_be_record(path: Path) -> bool:
    stem, _, key = path.stem.rpartition("-")
    return bool(stem) and len(key) == 10 and all(character in "0123456789abcdef" for character in key)


def _named(name: str, everything: Sequence[StoredRecord], folder: Path, kind: Kind) -> list[StoredRecord]:
    """Return the records of a system, or for answers also of a reader."""
    names = {each.path: _names(each.record) for each in everything}
    meant = named_system(name, dict.fromkeys(word for words in names.values() for word in words))
    read = [each for each in everything if meant in names[each.path]]
    if read:
        return read
    if kind == "answers":
        words = dict.fromkeys(word for each in names.values() for word in each[1:])
        raise unknown("answer record, folder, system or reader", name, words)
    systems = dict.fromkeys(each.record.display_name for each in everything)
    there = ", ".join(systems) or "no system"
    raise unknown(
        "record, folder or system", name, systems, f"{folder} has records of {there}; r2med run SYSTEM makes others"
    )


def _names(record: Record) -> tuple[str, ...]:
    """Return the names by which a user may name a record."""
    if record.kind == "answers":
        return record.display_name, record.system, record.answers.reader
    return (record.display_name,)


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
