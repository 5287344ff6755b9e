"""Find the answer records that a board shows: those on the datasets of its records."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from r2med.evaluation.records.collection import checked, named_apart, record_files, sound_records
from r2med.evaluation.records.last_named import last_named
from r2med.evaluation.records.record import ANSWERS_SUFFIX, Record
from r2med.evaluation.records.stored_records import RecordCollection, StoredRecord

log = logging.getLogger("r2med")

_ELSEWHERE = "the board has no record of a system on its data"


def is_answer_file(source: str | Path) -> bool:
    """Return True if a source is the file of one answer record."""
    return str(source).endswith(ANSWERS_SUFFIX)


def read_board_answers(
    sources: Sequence[str | Path],
    collection: RecordCollection,
    submitted: Sequence[StoredRecord] = (),
) -> RecordCollection:
    """Read the answer records in folders, in files, or of systems by name in the folder `results`. There may be none.

    Those of entries, `submitted`, come after them. A record that r2med did not write, and one on other data than those
    of `collection`, is reported and left out. If another record has the system and the reader of an entry, the name of
    the reader is followed by that of the entry. Raises UserError if a record was changed.
    """
    on_board = {(kept.record.dataset.name, kept.record.dataset.fingerprint) for kept in collection}

    def is_shown(each: StoredRecord) -> bool:
        dataset = each.record.dataset
        is_on_board = (dataset.name, dataset.fingerprint) in on_board
        if not is_on_board:
            what = f"{each.record.display_name} on {dataset.name}"
            log.warning("%s: %s: %s: it is left out", each.path, what, _ELSEWHERE)
        return is_on_board

    own = [each for each in _read(sources) if is_shown(each)]
    shown = last_named(named_apart(own))
    taken = {_cell(each.record) for each in shown}
    for repeats in _entries(submitted):
        if is_shown(repeats[0]):
            while _cell(repeats[0].record) in taken:
                repeats = [_with_entry(each) for each in repeats]
            taken.add(_cell(repeats[0].record))
            shown += repeats
    return checked(named_apart(shown))


def _read(sources: Sequence[str | Path]) -> list[StoredRecord]:
    """Return the answer records of sources. Files without one are reported."""
    systems = dict(_files(sources))
    records, faults = sound_records(systems, "answers")
    for fault, _ in faults:
        log.warning("%s: it is left out", fault)
    return [each for each in records if systems[each.path] in ("", each.record.system)]


def _files(sources: Sequence[str | Path]) -> Iterator[tuple[Path, str]]:
    """Yield each file, and the system that it must be of; empty for any system."""
    for source in sources:
        path = Path(source)
        if is_answer_file(source):
            yield path, ""
        elif not path.is_file():
            folder, system = (path, "") if path.is_dir() else (Path("results"), str(source))
            yield from ((file, system) for file in record_files(folder, "answers"))


def _entries(submitted: Sequence[StoredRecord]) -> list[list[StoredRecord]]:
    """Return the records of entries, the repeats of one system and reader of an entry together."""
    repeats: dict[tuple[object, ...], list[StoredRecord]] = {}
    for each in submitted:
        repeats.setdefault((each.entry, *_cell(each.record)), []).append(each)
    return list(repeats.values())


def _with_entry(each: StoredRecord) -> StoredRecord:
    """Return answers of an entry whose reader is followed by the name of the entry."""
    answers = each.record.answers.model_copy(update={"reader": f"{each.record.answers.reader} ({each.entry})"})
    return replace(each, record=each.record.model_copy(update={"answers": answers}))


def _cell(record: Record) -> tuple[object, ...]:
    """Return what a board shows once."""
    return record.system, record.answers.reader, record.answers.passages, record.answers.form, record.dataset.name
