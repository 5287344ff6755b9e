"""Find the answer records that a board shows: those on the datasets of its records."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from r2med.evaluation.records.answer_checks import answer_faults
from r2med.evaluation.records.answer_collection import (
    AnswerCollection,
    StoredAnswers,
    answer_files,
    newest_of_each,
    read_current,
)
from r2med.evaluation.records.answer_record import SUFFIX
from r2med.evaluation.records.collection import honestly_named
from r2med.evaluation.records.repeated_answers import mean_of_repeats
from r2med.evaluation.records.stored_records import RecordCollection

log = logging.getLogger("r2med")

_ELSEWHERE = "the board has no record of a system on its data"


def is_answer_file(source: str | Path) -> bool:
    """Return True if a source is the file of one answer record."""
    return str(source).endswith(SUFFIX)


def read_board_answers(
    sources: Sequence[str | Path],
    collection: RecordCollection,
    submitted: Sequence[StoredAnswers] = (),
) -> AnswerCollection:
    """Read the answer records in folders, in files, or of systems by name in the folder `results`. There may be none.

    Those of entries, `submitted`, come after them. A record that r2med did not write, and one on other data than those
    of `collection`, is reported and left out. If another record has the system and the reader of an entry, the name of
    the reader is followed by that of the entry. Several repeats are one record with their means. Raises UserError if a
    record was changed.
    """
    known = {(kept.record.dataset.name, kept.record.dataset.fingerprint) for kept in collection}

    def is_shown(each: StoredAnswers, fault: str = "") -> bool:
        is_known = (each.record.dataset.name, each.record.dataset.fingerprint) in known
        if fault := fault or ("" if is_known else _ELSEWHERE):
            log.warning(
                "%s: %s on %s: %s: it is left out", each.path, each.record.name, each.record.dataset.name, fault
            )
        return not fault

    kept = []
    files = dict.fromkeys(_files(sources))
    records = {path: honestly_named(record, path) for record, path in read_current(dict.fromkeys(p for p, _ in files))}
    for path, system in files:
        if path in records and system in ("", records[path].system):
            each = StoredAnswers(records[path], path)
            if is_shown(each, next(answer_faults(each.record), "")):
                kept.append(each)
    found = newest_of_each(kept)
    for notice in found.notices:
        log.info("%s", notice)
    shown = {_cell(each): each for each in _together(found)}
    for each in _together(submitted):
        if is_shown(each):
            while _cell(each) in shown:
                each = _with_entry(each)
            shown[_cell(each)] = each
    return AnswerCollection(tuple(shown.values()), found.notices)


def _with_entry(each: StoredAnswers) -> StoredAnswers:
    """Return answers of an entry whose reader is followed by the name of the entry."""
    name = {"reader": f"{each.record.reader} ({each.entry})"}
    repeats = tuple(run.model_copy(update=name) for run in each.repeats)
    return replace(each, record=each.record.model_copy(update=name), repeats=repeats)


def _together(kept: Iterable[StoredAnswers]) -> list[StoredAnswers]:
    """Return the repeats of a system and a reader as one record with their means."""
    cells: dict[tuple[object, ...], list[StoredAnswers]] = {}
    for each in kept:
        cells.setdefault((each.entry, *_cell(each)), []).append(each)
    lowest = (min(repeats, key=lambda each: each.record.repeat) for repeats in cells.values())
    return [
        replace(
            first,
            record=mean_of_repeats(each.record for each in repeats),
            repeats=tuple(sorted((each.record for each in repeats), key=lambda record: record.repeat)),
        )
        for first, repeats in zip(lowest, cells.values(), strict=True)
    ]


def _cell(each: StoredAnswers) -> tuple[object, ...]:
    """Return what a board shows once."""
    return each.record.name, each.record.passages, each.record.form, each.record.dataset.name


def _files(sources: Sequence[str | Path]) -> Iterator[tuple[Path, str]]:
    """Yield each file, and the system that it must be of; empty for any system."""
    for source in sources:
        path = Path(source)
        if is_answer_file(source):
            yield path, ""
        elif not path.is_file():
            folder, system = (path, "") if path.is_dir() else (Path("results"), str(source))
            yield from ((file, system) for file in answer_files(folder))
