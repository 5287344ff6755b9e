"""Of several records of one system on one dataset, what the last run named counts: after a change of code or data."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from r2med.evaluation.records.record import Record
from r2med.evaluation.records.repeats import stages_of
from r2med.evaluation.records.stored_records import StoredRecord
from r2med.foundation.store import digest
from r2med.foundation.text.plurals import counted

log = logging.getLogger("r2med")

CODE = ("code", "source", "revision", "files")
"""Settings that identify the code and the weights of a stage. They are the same on every dataset."""
NAMED_CELLS = 3
"""Number of systems and datasets that a note names. It counts the others."""


def version(record: Record) -> str:
    """Return a digest of the data and of the settings that all repeats of a run share."""
    return digest([record.dataset.fingerprint, stages_of(record.settings)])


def last_named(records: Sequence[StoredRecord]) -> list[StoredRecord]:
    """Return the records that count: in each folder, those of the last run that named their system and their dataset.

    A record that a run read from its folder was named by that run too. First the data of the last named record of a
    dataset count, then the version of each system that was named last on them, with all its repeats. Of answers, the
    version with the most questions counts, because a trial with few questions replaces nothing. Records of other
    folders are not touched, so neither are those of other datasets. One note counts what is left out, and another names
    systems whose datasets were run with different code.
    """
    on_these_data = _of_last(records, lambda kept: (kept.path.parent, kept.record.dataset.name), _data, _time)
    of_this_version = _of_last(on_these_data, _cell, lambda kept: version(kept.record), _questions_and_time)
    of_each_repeat = (lambda kept: (*_cell(kept), kept.record.repeat)), (lambda kept: kept.path)
    counting = _of_last(of_this_version, *of_each_repeat, _questions_and_time)
    _report_older([kept for kept in records if kept not in counting], counting)
    for line in _several_versions(counting):
        log.warning("%s", line)
    return counting


def _of_last(
    records: Sequence[StoredRecord],
    group: Callable[[StoredRecord], object],
    kind: Callable[[StoredRecord], object],
    order: Callable[[StoredRecord], tuple[object, ...]],
) -> list[StoredRecord]:
    """Return the records of each group that are of the kind of the last one in an order, as they came."""
    last: dict[object, StoredRecord] = {}
    for kept in records:
        if order(kept) >= order(last.setdefault(group(kept), kept)):
            last[group(kept)] = kept
    return [kept for kept in records if kind(kept) == kind(last[group(kept)])]


def _time(kept: StoredRecord) -> tuple[str, str]:
    return kept.record.named, kept.record.created


def _questions_and_time(kept: StoredRecord) -> tuple[int, str, str]:
    return len(kept.record.queries) if kept.record.kind == "answers" else 0, *_time(kept)


def _cell(kept: StoredRecord) -> tuple[Path, str, str]:
    return kept.path.parent, kept.record.display_name, kept.record.dataset.name


def _data(kept: StoredRecord) -> object:
    return kept.record.dataset.fingerprint


def _report_older(older: Sequence[StoredRecord], counting: Sequence[StoredRecord]) -> None:
    if not older:
        return
    cells = {_cell(kept) for kept in counting}
    replaced = [kept for kept in older if _cell(kept) in cells]
    alone = [kept for kept in older if _cell(kept) not in cells]
    parts = []
    if replaced and replaced[0].record.kind == "answers":
        parts.append(f"a record with more questions, or a later one, replaced {_named(replaced)}")
    elif replaced:
        parts.append(f"a later run replaced {_named(replaced)} (name (--name) keeps two versions apart)")
    if alone:
        parts.append(f"the data changed since the runs of {_named(alone)}: run them again")
    log.warning("%s left out: %s", counted(len(older), "older record"), "; ".join(parts))


def _named(records: Iterable[StoredRecord]) -> str:
    names = list(dict.fromkeys(f"{kept.record.display_name} on {kept.record.dataset.name}" for kept in records))
    more = f" and {len(names) - NAMED_CELLS} more" if len(names) > NAMED_CELLS else ""
    return ", ".join(names[:NAMED_CELLS]) + more


def _several_versions(records: Iterable[StoredRecord]) -> Iterator[str]:
    """Yield a line for each system whose datasets were run with different code: its mean is not that of one system."""
    systems: dict[str, list[StoredRecord]] = {}
    for kept in records:
        systems.setdefault(kept.record.display_name, []).append(kept)
    for system, of_system in systems.items():
        newest = max(of_system, key=_time)
        code = list(_code(newest.record.settings))
        older = dict.fromkeys(
            kept.record.dataset.name for kept in of_system if list(_code(kept.record.settings)) != code
        )
        if older:
            yield (
                f"{system} has another version on {', '.join(older)} than on {newest.record.dataset.name}, so a mean "
                "over both is not that of one system: run it again there"
            )


def _code(settings: Any) -> Iterator[tuple[str, str]]:
    """Yield the values that identify code and weights in nested settings, with their names."""
    if isinstance(settings, dict):
        for name, value in settings.items():
            if name in CODE:
                yield name, digest([value])
            else:
                yield from _code(value)
    elif isinstance(settings, list | tuple):
        for part in settings:
            yield from _code(part)
