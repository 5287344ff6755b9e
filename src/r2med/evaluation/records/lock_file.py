"""A lock: an evaluation that was decided beforehand, in one file whose digest every record of it carries."""

from __future__ import annotations

import contextlib
import datetime
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from r2med.evaluation.measure.measures import RECORDED_MEASURES
from r2med.evaluation.records.collection import collect
from r2med.evaluation.records.record import Record
from r2med.evaluation.records.repeats import setting_difference, stages_of
from r2med.evaluation.records.stored_records import RecordCollection, StoredRecord
from r2med.foundation.core.errors import UserError
from r2med.foundation.runtime.setup import MOST_REPEATS
from r2med.foundation.store import digest
from r2med.foundation.store.files import refuse_device, strict_json, write_json
from r2med.foundation.text.terminal_text import quoted

FORMAT = 1


class Lock(BaseModel):
    """The systems, settings and datasets of an evaluation, and the comparisons that were decided beforehand."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    format: int = FORMAT
    """The number of this format."""
    systems: tuple[str, ...]
    """The systems, as typed."""
    datasets: dict[str, str]
    """Name of a dataset -> its fingerprint."""
    k: int
    """Number of documents that are asked for, for each query."""
    settings: dict[str, dict[str, dict[str, Any]]]
    """System -> dataset -> the settings of every stage, as in a record. Generated texts are not yet known."""
    measure: str
    """The measure of the comparison."""
    baseline: str = ""
    """The system that all others are compared with; empty if every pair is compared."""
    pairs: tuple[tuple[str, str], ...]
    """The pairs of systems that are compared."""
    created: str
    """Date and time in UTC."""
    repeats: int = Field(1, ge=1, le=MOST_REPEATS)
    """Number of runs of each system that varies."""

    @model_validator(mode="after")
    def _decides_every_cell(self) -> Lock:
        if any(dataset not in self.settings.get(system, {}) for system in self.systems for dataset in self.datasets):
            raise ValueError("a system has no settings on a dataset")
        cells = [cell for of_system in self.settings.values() for cell in of_system.values()]
        if any(cell.get("k", self.k) != self.k for cell in cells):
            raise ValueError("a system has another number of documents")
        if {self.baseline, *(name for pair in self.pairs for name in pair)} - {"", *self.systems}:
            raise ValueError("a compared system is not one of its systems")
        if self.measure not in RECORDED_MEASURES:
            raise ValueError("its measure is not one of records")
        datetime.datetime.fromisoformat(self.created)  # a ValueError for any other text
        return self

    @property
    def digest(self) -> str:
        """The digest of the content. Records of the evaluation carry it."""
        return digest(self.model_dump(mode="json"))

    def is_after(self, created: str) -> bool:
        """Return True if a record of this time was made before the lock, so that the lock did not decide it."""
        return _time(created) < _time(self.created)

    def write(self, path: Path | str) -> None:
        """Write the file with its digest."""
        write_json(Path(path), {**self.model_dump(mode="json"), "digest": self.digest})

    @classmethod
    def read(cls, path: Path | str) -> Lock:
        """Read a lock. Raises UserError if it was edited or is not a lock."""
        refuse_device(Path(path))
        try:
            body = strict_json(Path(path).read_bytes())
            stated, written = body.pop("digest"), body["format"]
            if written != FORMAT:
                raise UserError(f"{path} is a lock of format {str(written)[:20]}, but this version reads {FORMAT}")
            is_same = digest(body) == stated  # a ValueError for NaN
            lock = cls(**body) if is_same else None
        except FileNotFoundError:
            raise UserError(f"{path}: there is no such lock; make one with r2med lock SYSTEM --data NAME") from None
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError, ValidationError):
            raise UserError(f"{path} is not a lock: make one with r2med lock SYSTEM --data NAME") from None
        if lock is None or lock.digest != stated:
            raise UserError(
                f"{path} was edited after it was written, so it decides nothing: restore it, or make a new one with "
                "r2med lock"
            )
        return lock

    def difference(self, system: str, dataset: str, fingerprint: str, settings: dict[str, Any]) -> str:
        """Return what differs from the lock in one line; empty if this evaluation is part of it."""
        if system not in self.systems:
            return f"{system} is not one of its systems ({', '.join(self.systems)})"
        if dataset not in self.datasets:
            return f"{dataset} is not one of its datasets ({', '.join(self.datasets)})"
        if fingerprint != self.datasets[dataset]:
            return f"{dataset} has changed since it was locked"
        locked = self.settings[system][dataset]
        # A file has lists where the settings have tuples.
        given = json.loads(json.dumps(settings))
        if other := setting_difference(locked, given):
            return f"{system} has other settings than those that were locked: {other} was locked"
        return ""

    def model_settings(self) -> dict[str, str]:
        """Return the precision of the models, if all have the same: a lock of a laptop then runs on a GPU too."""
        dtypes = {*_values(self.settings, "dtype")}
        return {"dtype": dtypes.pop()} if len(dtypes) == 1 else {}


def _values(settings: Any, name: str) -> Iterator[Any]:
    """Yield every value of a setting, however deep."""
    if isinstance(settings, dict):
        if name in settings:
            yield settings[name]
        settings = list(settings.values())
    for each in settings if isinstance(settings, list | tuple) else ():
        yield from _values(each, name)


def _time(text: str) -> datetime.datetime:
    """Return a time. One without a zone is in UTC, and one that is none is the earliest possible time."""
    try:
        time = datetime.datetime.fromisoformat(text)
    except ValueError:
        return datetime.datetime.min.replace(tzinfo=datetime.UTC)
    return time if time.tzinfo else time.replace(tzinfo=datetime.UTC)


def locks_among(files: Iterable[Path]) -> dict[str, Lock]:
    """Return the locks among files by their digests. Other files are left out."""
    locks = {}
    for file in sorted({*files}):
        if file.suffix in (".lock", ".json") and file.is_file():
            with contextlib.suppress(UserError):
                lock = Lock.read(file)
                locks[lock.digest] = lock
    return locks


def locked_collection(
    lock: Lock, path: Path | str, sources: Sequence[str | Path], results: Path | str, max_failures: float
) -> RecordCollection:
    """Return the records of a lock. Raises UserError if one is missing, or if anything else is to be compared."""
    if strangers := [str(source) for source in sources if source not in lock.systems]:
        raise UserError(f"{path}: {strangers[0]} is not one of its systems ({', '.join(lock.systems)})")
    if sources and {*sources} != {*lock.systems}:
        raise UserError(f"{path} compares all of {', '.join(lock.systems)}: leave out the names of systems")
    read = collect(lock.systems, results, max_failures)
    cells = {key: kept for key, kept in read.cells.items() if key[1] in lock.datasets}
    for fault in _faults(lock, cells):
        raise UserError(f"{path}: {fault}: {_remedy(lock, path, results, cells)}")
    return RecordCollection(cells)


def _remedy(lock: Lock, path: Path | str, results: Path | str, cells: Mapping[tuple[str, str], StoredRecord]) -> str:
    """Return the commands that make the records. A folder with records from before the lock is never taken for it."""
    file = quoted(path)
    if any(lock.is_after(each.record.created) for kept in cells.values() for each in kept.repeats):
        again = f"r2med run --lock {file} --out DIR, then r2med compare --lock {file} --results DIR"
        return f"{results} has records from before the lock: {again}"
    return f"r2med run --lock {file} --out {quoted(results)}"


def _faults(lock: Lock, cells: Mapping[tuple[str, str], StoredRecord]) -> Iterator[str]:
    for system in lock.systems:
        for dataset in lock.datasets:
            kept = cells.get((system, dataset))
            if kept is None:
                yield f"{system} has no record on {dataset}"
                continue
            for each in kept.repeats:
                yield from _record_faults(lock, each.record)
            numbers = [each.record.repeat for each in kept.repeats]
            last = lock.repeats - 1 if kept.record.varies else 0
            if numbers != list(range(last + 1)):
                there = ", ".join(map(str, numbers))
                yield f"{system} on {dataset}: it has the repeats {there}, but 0 to {last} were locked"


def _record_faults(lock: Lock, record: Record) -> Iterator[str]:
    system, dataset = record.system, record.dataset.name
    if record.lock != lock.digest:
        yield f"the record of {system} on {dataset} was not made with this lock"
    elif lock.is_after(record.created):
        yield f"the record of {system} on {dataset} was made before this lock"
    elif difference := lock.difference(system, dataset, record.dataset.fingerprint, stages_of(record.settings)):
        yield difference
