"""Evaluate a system on a dataset: expand, look for an existing record, search, rerank, score, write the record."""

from __future__ import annotations

import json
import logging
import re
from pathlib import Path

from r2med.data import Dataset, load
from r2med.data.runs import write_run
from r2med.evaluation.records.lock_file import Lock
from r2med.evaluation.records.record import APART_SUFFIX, Record, record_key, set_apart
from r2med.evaluation.records.record_facts import FileFacts, RunFacts
from r2med.evaluation.records.repeats import repeat_setting
from r2med.evaluation.running.new_record import new_record, time_of_naming
from r2med.foundation.core.errors import UserError
from r2med.foundation.net.offline import is_offline
from r2med.foundation.runtime.setup import Setup
from r2med.foundation.store import Store, default_store, digest
from r2med.foundation.store.files import sha256, write_atomically
from r2med.foundation.store.library_versions import differing, listed, noted_versions
from r2med.foundation.store.locks import tidy
from r2med.foundation.text.unicode import to_unicode
from r2med.systems.expand.expansion import Expansion
from r2med.systems.system import System

log = logging.getLogger("r2med")

DEPTH = 1000

_AGAIN = "give another folder with out (--out)"

LONGEST = 140
"""Maximum number of bytes of a system's name in a file name. A file name has at most 255 bytes. It also contains a key,
a suffix and, during writing, the names of machine and process."""


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
    store = store or (default_store() if isinstance(system, str) else system.runtime.store)
    store = store.with_policy("fresh") if fresh else store
    system = System.parse(system, Setup(store=store)) if isinstance(system, str) else system
    with system.runtime.network():
        dataset = dataset if isinstance(dataset, Dataset) else load(dataset, store)
    record, _ = evaluated(system, dataset, Path(out) if out is not None else None, k, store, fresh)
    return record


def evaluated(
    system: System,
    dataset: Dataset,
    out: Path | None,
    k: int,
    store: Store,
    fresh: bool = False,
    expansion: Expansion | None = None,
    lock: Lock | None = None,
    name: str = "",
) -> tuple[Record, bool]:
    """Return the record of a system on a dataset, and True if it existed already.

    `name` is what tables call the system. A record that existed notes when it was named, because of several versions of
    a system the one that a run named last counts. Raises UserError if `out` has a record that was made before `lock`,
    which then decides nothing.
    """
    with system.runtime.network():
        return _evaluated(system, dataset, out, k, store, fresh, expansion, lock, name)


def _evaluated(
    system: System,
    dataset: Dataset,
    out: Path | None,
    k: int,
    store: Store,
    fresh: bool,
    expansion: Expansion | None,
    lock: Lock | None,
    name: str,
) -> tuple[Record, bool]:
    if k < 1:
        raise UserError(f"k must be at least 1, not {k}")
    dataset.require_scorable()
    system = system.in_repeat(system.repeat)
    expansion = expansion or system.expand(dataset, store)
    settings = {**system.key(dataset, expansion), "k": k, **repeat_setting(system.repeat)}
    key = record_key(settings, dataset.fingerprint)
    apart = set_apart(settings, dataset.part)
    path = record_path(out, name or system.name, dataset, key, apart) if out is not None else None
    known = _recorded(path, key) if path is not None else None
    if known is not None and lock is not None and lock.is_after(known.created):
        raise UserError(
            f"{path} was made on {known.created}, before the lock, which decides nothing about it: {_AGAIN}, and "
            "compare that folder with results (--results)",
        )
    if path is not None and known is not None and not fresh and (lock is None or lock.digest == known.lock):
        known = known.model_copy(update={"name": name, "named": time_of_naming()})
        known.write(path)
        _remove_failed_tries(path, known)
        return known, True
    with noted_versions() as versions:
        outcome = system.run(dataset, store, k, expansion)
    if others := differing(versions):
        again = "fresh (--fresh)"
        log.warning("%s: its stored vectors were made with %s; %s encodes again", system.name, others, again)
    files: dict[str, FileFacts | None] = {}
    if path is not None:
        run_file = run_path(path)
        write_run(outcome.run, run_file, slug(system.name))
        files["run"] = RunFacts(file=run_file.name, sha256=sha256(run_file), depth=k)
        files["traces"] = _write_text(_json(outcome.traces), traces_path(path)) if outcome.traces else None
        texts = [{"id": query, "texts": generated} for query, generated in outcome.generated.items()]
        files["generated"] = _write_text("\n".join(map(_json, texts)), generated_path(path)) if texts else None
    locked = lock.digest if lock else ""
    record = new_record(key, system, dataset, outcome, settings, locked, listed(versions), name, **files)
    if path is not None:
        record.write(path)
        _remove_failed_tries(path, record)
    return record, False


def record_path(out: Path, name: str, dataset: Dataset, key: str, apart: str = "") -> Path:
    """Return the path of the record of a system that tables show by a name.

    The key in the file name distinguishes records with different settings.
    A record that is set `apart` has a name by which no board or comparison finds it.
    """
    ending = APART_SUFFIX if apart else ".json"
    return out.joinpath(*map(slug, dataset.name.split("/")), f"{_stem(name)}-{key[:10]}{ending}")


def run_path(path: Path) -> Path:
    """Return the path of the run of a record."""
    return path.with_suffix(".trec.gz")


def traces_path(path: Path) -> Path:
    """Return the path of the conversations of a search agent."""
    return path.with_suffix(".traces.json")


def generated_path(path: Path) -> Path:
    """Return the path of the texts that an expansion wrote."""
    return path.with_suffix(".generated.jsonl")


def _files_beside(path: Path) -> tuple[Path, ...]:
    return run_path(path), traces_path(path), generated_path(path)


def slug(name: str) -> str:
    """Return a name that can be a file name. Other characters become underscores."""
    return re.sub(r"[^\w.+=-]+", "_", name).strip("_.") or "unnamed"


def _stem(system: str) -> str:
    return slug(system).encode()[:LONGEST].decode(errors="ignore")


def _json(content: object) -> str:
    return json.dumps(content, ensure_ascii=False)


def _write_text(text: str, file: Path) -> FileFacts:
    write_atomically(file, to_unicode(text).encode() + b"\n")
    return FileFacts(file=file.name, sha256=sha256(file))


def _recorded(path: Path, key: str) -> Record | None:
    """Return the existing record, if it can be used. A damaged record is reported and treated as missing."""
    for file in (path, *_files_beside(path)):
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
    for other in path.parent.glob(f"{glob_safe(_stem(record.display_name))}-??????????.json"):
        if other == path:
            continue
        try:
            old = Record.read(other)
        except UserError:
            continue
        same = (old.display_name, old.dataset.fingerprint, old.settings["k"])
        if same != (record.display_name, record.dataset.fingerprint, record.settings["k"]):
            continue
        if old.failures + old.unordered > record.failures + record.unordered and _but_texts(old) == _but_texts(record):
            for file in (*_files_beside(other), other):
                file.unlink(missing_ok=True)


def glob_safe(name: str) -> str:
    """Return a name as a glob pattern that matches only this name."""
    return re.sub(r"([*?\[])", r"[\1]", name)


def _but_texts(record: Record) -> str:
    """Return a digest of the settings, with the repeat and without the texts. A file has lists instead of tuples."""
    return digest({name: value for name, value in record.settings.items() if name != "generations"})
