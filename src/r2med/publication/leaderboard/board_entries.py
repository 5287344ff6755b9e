"""Choose the records of entries that a board shows: each with its verdict, under a name that no other entry has."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from r2med.evaluation.records.collection import MAX_FAILURES, honestly_named, misfit, without_failed
from r2med.evaluation.records.stored_records import StoredRecord
from r2med.foundation.core.errors import UserError
from r2med.foundation.text.terminal_text import quoted
from r2med.publication.leaderboard.entry_verdicts import Verdicts
from r2med.publication.leaderboard.submission import entry_files, read_entry
from r2med.publication.leaderboard.submitted_answers import unclear_name

log = logging.getLogger("r2med")

NOT_VERIFIED = "not verified"


@dataclass(frozen=True)
class SubmittedRecords:
    """The records of several entries."""

    records: list[StoredRecord] = field(default_factory=list)
    answers: list[StoredRecord] = field(default_factory=list)


def read_entries(
    folder: Path,
    beside: Sequence[StoredRecord] = (),
    max_failures: float = MAX_FAILURES,
    verdicts: Verdicts | None = None,
) -> SubmittedRecords:
    """Return the records of all entries in a folder, those with a verdict first.

    A warning names each entry that cannot be read, and each record that cannot be compared with the others. The name
    of a system belongs to the first that has it: `beside`, then verified entries. The system of another entry is called
    `NAME (ENTRY)`. The name of a system that is not verified ends in "(not verified)". Raises UserError if there are no
    entries, or if they have no record of a system and `beside` is empty.
    """
    files = entry_files([folder]) if folder.exists() else []
    if not files:
        raise UserError(
            f"there are no entries in {folder}: make one with r2med submit RECORDS -o {quoted(folder)}/NAME.json"
        )
    read = SubmittedRecords()
    faults: list[str] = []
    for file in files:
        try:
            _add(read, file, folder, verdicts or Verdicts(), max_failures)
        except UserError as error:
            faults.append(f"entry {file} is left out: {error}")
            log.warning("%s", faults[-1])
    shown = _Shown(beside)
    for system in _systems(read.records):
        shown.add(system)
    faults += shown.faults
    if not shown.records and not beside:
        why = faults[0] if faults else "they have only answers, and no record of a system"
        raise UserError(f"no entry in {folder} can be shown: {why}")
    return SubmittedRecords(shown.records, [shown.named_answers(each) for each in read.answers])


def _add(read: SubmittedRecords, file: Path, folder: Path, verdicts: Verdicts, max_failures: float) -> None:
    """Add the records of an entry. Raises UserError if it is bad, or if all its records failed too often."""
    entry = read_entry(file)
    team = str(file.relative_to(folder).with_suffix(""))  # with its folder, so that no two entries have one name
    for fault in unclear_name(team):
        raise UserError(fault)
    of_records, of_answers = verdicts.faults(file, len(entry.records), len(entry.answers))
    submitted = [
        StoredRecord(honestly_named(record, file), file, is_entry=True, unverified=fault, entry=team)
        for record, fault in zip(entry.records, of_records, strict=True)
    ]
    read.records.extend(without_failed(submitted, max_failures))
    for answers, fault in zip(entry.answers, of_answers, strict=True):
        named = honestly_named(answers, file)
        read.answers.append(StoredRecord(named, file, is_entry=True, unverified=fault, entry=team))
    read.answers.sort(key=lambda each: bool(each.unverified))


def _systems(records: Sequence[StoredRecord]) -> list[list[StoredRecord]]:
    """Return the records of each system of each entry, systems whose records are all verified first."""
    systems: dict[tuple[Path, str], list[StoredRecord]] = {}
    for kept in records:
        systems.setdefault((kept.path, kept.record.display_name), []).append(kept)
    return sorted(systems.values(), key=lambda each: any(kept.unverified for kept in each))


class _Shown:
    """The records that are shown so far."""

    def __init__(self, beside: Sequence[StoredRecord]) -> None:
        self.records: list[StoredRecord] = []
        self.faults: list[str] = []
        self._of_dataset: dict[str, StoredRecord] = {}
        self._taken = {kept.record.display_name for kept in beside}
        self._names: dict[tuple[Path, str], str] = {}
        for kept in beside:
            self._of_dataset.setdefault(kept.record.dataset.name, kept)

    def add(self, system: Sequence[StoredRecord]) -> None:
        """Add the records of a system of an entry, without those that cannot be compared with the others."""
        fitting = list(self._fitting(system))
        if not fitting:
            return
        name = self._free_name(fitting)
        self._taken.add(name)
        self._names[fitting[0].path, fitting[0].record.display_name] = name
        for kept in fitting:
            record = kept.record.model_copy(update={"name": name})
            shown = replace(kept, record=record)
            self._of_dataset.setdefault(record.dataset.name, shown)
            self.records.append(shown)

    def _fitting(self, system: Sequence[StoredRecord]) -> Iterator[StoredRecord]:
        of_dataset = dict(self._of_dataset)
        for kept in system:
            if fault := misfit(kept, of_dataset.setdefault(kept.record.dataset.name, kept)):
                self.faults.append(f"{kept.record.display_name} of entry {kept.path} is left out: {fault}")
                log.warning("%s", self.faults[-1])
            else:
                yield kept

    def _free_name(self, fitting: Sequence[StoredRecord]) -> str:
        mark = f" ({NOT_VERIFIED})" if any(kept.unverified for kept in fitting) else ""
        name = fitting[0].record.display_name
        while name in self._taken or f"{name}{mark}" in self._taken:
            name += f" ({fitting[0].entry})"
        return f"{name}{mark}"

    def named_answers(self, each: StoredRecord) -> StoredRecord:
        """Return answers with the name of the system of their entry, and with the mark of those without a verdict."""
        record = each.record
        name = self._names.get((each.path, record.system), record.system)
        mark = f" ({NOT_VERIFIED})" if each.unverified else ""
        answers = record.answers.model_copy(update={"reader": f"{record.answers.reader}{mark}"})
        return replace(each, record=record.model_copy(update={"system": name, "answers": answers}))
