"""Evaluate a system on a dataset: expand, look for an existing record, search, rerank, score, write the record."""

from __future__ import annotations

import glob
import logging
from pathlib import Path

from r2med.data import Dataset, load
from r2med.evaluation.records.lock_file import Lock
from r2med.evaluation.records.record import Record, record_key, set_apart
from r2med.evaluation.records.record_paths import files_beside, record_path
from r2med.evaluation.records.repeats import repeat_setting
from r2med.evaluation.records.stored_records import StoredRecord
from r2med.evaluation.running.new_record import new_record, time_of_naming
from r2med.foundation.core.errors import UserError
from r2med.foundation.net.offline import is_offline
from r2med.foundation.store import Store, default_store, digest
from r2med.foundation.store.sharing import tidy
from r2med.systems.expand.expansion import Expansion
from r2med.systems.system import System

log = logging.getLogger("r2med")

DEPTH = 1000

_AGAIN = "give another folder with out (--out)"


def evaluate(
    system: System | str,
    dataset: Dataset | str | Path,
    out: Path | str | None = None,
    k: int = DEPTH,
    store: Store | None = None,
    fresh: bool = False,
) -> Record:
    """Evaluate a system on a dataset and return the record. With `out`, the record and its run are saved in a folder.

    If `out` has a sound record with the same settings and data, that record is returned, unless `fresh`.
    """
    if k < 1:
        raise UserError(f"k must be at least 1, not {k}")
    store = store or (default_store() if isinstance(system, str) else system.runtime.store)
    system = System.parse(system) if isinstance(system, str) else system
    system = system.with_store(store.with_policy("fresh") if fresh else store)
    with system.runtime.network():
        dataset = dataset if isinstance(dataset, Dataset) else load(dataset, system.runtime.store)
    return evaluated(system, dataset, Path(out) if out is not None else None, k).record


def evaluated(
    system: System,
    dataset: Dataset,
    out: Path | None,
    k: int,
    expansion: Expansion | None = None,
    lock: Lock | None = None,
    name: str = "",
) -> StoredRecord:
    """Return the record of a system on a dataset, `reused` if it existed already. Over a fresh store it is made again.

    Without `out` nothing is written, and no file has the path of the record. `name` is what tables call the system. A
    record that existed notes when it was named, because of several versions of a system the one that a run named last
    counts. Raises UserError if `out` has a record that was made before `lock`, which then decides nothing.
    """
    dataset.require_scorable()
    with system.runtime.network():
        system = system.in_repeat(system.repeat)
        expansion = expansion or system.expand(dataset)
        settings = {**system.key(dataset, expansion), "k": k, **repeat_setting(system.repeat)}
        key, locked = record_key(settings, dataset.fingerprint), lock.digest if lock else ""
        path = record_path(out or Path(), name or system.name, dataset.name, key, set_apart(settings, dataset.part))
        if out is None:
            return StoredRecord(new_record(key, system, dataset, expansion, settings, None, locked, name), path)
        existing = _existing_record(path, key)
        if existing is not None and lock is not None and lock.is_after(existing.created):
            raise UserError(
                f"{path} was made on {existing.created}, before the lock, which decides nothing about it: {_AGAIN}, "
                "and compare that folder with results (--results)",
            )
        reused = existing is not None and system.runtime.store.policy != "fresh" and locked in ("", existing.lock)
        if existing is not None and reused:
            record = existing.model_copy(update={"name": name, "named": time_of_naming()})
        else:
            record = new_record(key, system, dataset, expansion, settings, path, locked, name)
        record.write(path)  # after the files beside it: a killed run leaves no record without them
        _remove_failed_tries(path, record)
        return StoredRecord(record, path, reused=reused)


def _existing_record(path: Path, key: str) -> Record | None:
    """Return the existing record, if it can be used. A damaged record is reported and treated as missing."""
    for file in (path, *files_beside(path)):
        tidy(file)
    if not path.is_file():
        return None
    try:
        record = Record.read(path)
        if record.key != key or not record.files_are_sound(path.parent):
            raise UserError(f"{path} does not fit the files beside it: making them again")
    except UserError as damage:
        log.warning("%s", damage)
        return None
    # After failures, the evaluation runs again. Answers are in the journal, so only failed calls are repeated. Offline,
    # a record made online is made again, so that the new one can say that no text left this machine.
    return None if record.may_improve or (is_offline() and not record.offline) else record


def _remove_failed_tries(path: Path, record: Record) -> None:
    """Remove older records of the same system on the same data that had more failures. This record replaces them."""
    stem = path.name.rpartition("-")[0]
    for file in path.parent.glob(f"{glob.escape(stem)}-??????????.json"):
        if file == path:
            continue
        try:
            other = Record.read(file)
        except UserError:
            continue
        if _tried(other) == _tried(record) and other.failures + other.unordered > record.failures + record.unordered:
            for old in (*files_beside(file), file):
                old.unlink(missing_ok=True)


def _tried(record: Record) -> tuple[str, str, str]:
    """Return the name, the data and a digest of the settings without the texts. A file has lists, and no tuples."""
    settings = {name: value for name, value in record.settings.items() if name != "generations"}
    return record.display_name, record.dataset.fingerprint, digest(settings)
