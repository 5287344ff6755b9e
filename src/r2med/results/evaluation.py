"""`evaluate(system, dataset)`: run, score, record; what is already there and sound is read back."""

from __future__ import annotations

import json
import logging
from pathlib import Path

from r2med.data import Dataset, load
from r2med.errors import UserError
from r2med.results.making import make_record
from r2med.results.places import record_path, run_path, slug, traces_path
from r2med.results.record import FORMAT, Record, RunFacts, TraceFacts
from r2med.retrieve import write_run
from r2med.setup import Setup
from r2med.store import Store, default_store, digest
from r2med.store.files import sha256, tidy, write_atomically
from r2med.system import Outcome, System

log = logging.getLogger("r2med")

DEPTH = 1000


def evaluate(
    system: System | str,
    dataset: Dataset | str | Path,
    out: Path | str | None = None,
    k: int = DEPTH,
    store: Store | None = None,
    fresh: bool = False,
) -> Record:
    """Evaluate a system on a dataset; with `out`, the record and its run are kept in that folder.

    A sound record of the same content is returned as it is, unless `fresh`.
    """
    if k < 1:
        raise UserError(f"k must be at least 1, not {k}")
    store = store or default_store()
    if fresh:
        store = store.fresh()
    system = System.parse(system, Setup(store=store)) if isinstance(system, str) else system
    dataset = dataset if isinstance(dataset, Dataset) else load(dataset, store)
    dataset.require_scorable()
    key = record_key(system, dataset, k, store)
    path = record_path(Path(out), system, dataset, key) if out is not None else None
    if path is not None and not fresh and (found := _recorded(path, key)):
        return found
    outcome = system.run(dataset, store, k)
    run = traces = None
    if path is not None:
        place = run_path(path)
        write_run(outcome.run, place, tag=slug(system.name))
        run = RunFacts(file=place.name, sha256=sha256(place), depth=k)
        traces = _write_traces(outcome, path)
    record = make_record(key, system, dataset, outcome, run, traces)
    if path is not None:
        record.write(path)
    return record


def record_key(system: System, dataset: Dataset, k: int, store: Store | None = None) -> str:
    """Return the key of an evaluation: its content, not its name or date."""
    return digest(["record", FORMAT, system.describe(dataset, store or default_store()), dataset.fingerprint, k])


def is_recorded(system: System, dataset: Dataset, out: Path, k: int, store: Store) -> bool:
    """Tell whether `evaluate` would read a record back instead of making it."""
    key = record_key(system, dataset, k, store)
    path = record_path(out, system, dataset, key)
    try:
        return path.is_file() and not _sound(path, key).unordered
    except UserError:
        return False


def _write_traces(outcome: Outcome, path: Path) -> TraceFacts | None:
    if not outcome.expansion.traces:
        return None
    place = traces_path(path)
    write_atomically(place, json.dumps(outcome.expansion.traces, indent=1, ensure_ascii=False).encode() + b"\n")
    return TraceFacts(file=place.name, sha256=sha256(place))


def _recorded(path: Path, key: str) -> Record | None:
    """Return the record that is there; a damaged one is told of and counts as absent."""
    tidy(path)
    tidy(run_path(path))
    tidy(traces_path(path))
    if not path.is_file():
        return None
    try:
        found = _sound(path, key)
    except UserError as damage:
        log.warning("%s", damage)
        return None
    # What was answered is in the journal: only the calls that failed are made again.
    return None if found.unordered else found


def _sound(path: Path, key: str) -> Record:
    record = Record.read(path)
    if record.key != key or not record.files_are_sound(path.parent):
        raise UserError(f"{path} does not fit the files beside it: making them again")
    return record
