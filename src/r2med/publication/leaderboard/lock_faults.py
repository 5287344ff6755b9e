"""Compare submitted records with the lock that they name: `lock_faults(record, locks, runs)`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from r2med.evaluation.records.lock_file import Lock
from r2med.evaluation.records.public_values import public_value
from r2med.evaluation.records.record import Record
from r2med.evaluation.records.repeats import stages_of
from r2med.foundation.text.plurals import counted


def lock_faults(record: Record, locks: Mapping[str, Lock], runs: int) -> Iterator[str]:
    """Yield how a record differs from what its lock decided. `runs` is the number of runs of its system."""
    if not record.lock:
        return
    lock = locks.get(record.lock)
    if lock is None:
        yield "its lock is missing: put the file of r2med lock into the folder of the runs"
        return
    facts = record.dataset
    if difference := _public(lock).difference(record.system, facts.name, facts.fingerprint, stages_of(record.settings)):
        yield f"it does not keep to its lock: {difference}"
    elif record.varies and runs != lock.repeats:
        yield f"its lock states {counted(lock.repeats, 'run')}, but the entry has {runs}: submit all of them"
    elif lock.is_after(record.created):
        yield f"it was made before its lock, on {record.created[:60]}"


def _public(lock: Lock) -> Lock:
    """Return a lock without paths and addresses, as in the records of an entry."""
    settings = {public_value(system): public_value(each) for system, each in lock.settings.items()}
    return lock.model_copy(update={"systems": tuple(map(public_value, lock.systems)), "settings": settings})
