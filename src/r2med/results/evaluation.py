"""`evaluate(system, dataset)`: run, score, record; what is already there and sound is read back."""

from __future__ import annotations

import contextlib
import datetime
import json
import logging
import platform
import re
from functools import cache
from importlib import metadata
from pathlib import Path

import r2med
from r2med.data import Dataset, load
from r2med.errors import UserError
from r2med.measure import score
from r2med.results.record import FORMAT, DatasetFacts, Record, RunFacts, TraceFacts
from r2med.results.stages import seeds, stage_facts, total
from r2med.retrieve import write_run
from r2med.store import Store, default_store, digest
from r2med.store.files import sha256, tidy, write_atomically
from r2med.system import Outcome, Setup, System

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
        store = store.starting_over()
    system = System.parse(system, Setup(store=store)) if isinstance(system, str) else system
    dataset = dataset if isinstance(dataset, Dataset) else load(dataset, store)
    if not len(dataset.qrels):
        raise UserError(f"{dataset.name} has no judgements: nothing can be scored (r2med data check shows more)")
    key = record_key(system, dataset, k, store)
    path = record_path(Path(out), system, dataset, key) if out is not None else None
    if path is not None and not fresh and (found := _recorded(path, key)):
        return found
    outcome = system.run(dataset, store, k)
    run = traces = None
    if path is not None:
        run_path = _run_path(path)
        write_run(outcome.run, run_path, tag=_slug(system.name))
        run = RunFacts(file=run_path.name, sha256=sha256(run_path), depth=k)
        traces = _write_traces(outcome, path)
    record = _record(key, system, dataset, outcome, run, traces)
    if path is not None:
        record.write(path)
    return record


def record_key(system: System, dataset: Dataset, k: int, store: Store | None = None) -> str:
    """Return the key of an evaluation: its content, not its name or date."""
    return digest(["record", FORMAT, system.describe(dataset, store or default_store()), dataset.fingerprint, k])


def record_path(out: Path, system: System, dataset: Dataset, key: str) -> Path:
    """Return where a record goes: readable names, and the key that keeps different settings apart."""
    return out.joinpath(*map(_slug, dataset.name.split("/")), f"{_slug(system.name)}-{key[:10]}.json")


def is_recorded(system: System, dataset: Dataset, out: Path, k: int, store: Store) -> bool:
    """Tell whether `evaluate` would read a record back instead of making it."""
    key = record_key(system, dataset, k, store)
    path = record_path(out, system, dataset, key)
    try:
        return path.is_file() and not _sound(path, key).unordered
    except UserError:
        return False


def _run_path(path: Path) -> Path:
    return path.with_suffix(".trec.gz")


def _traces_path(path: Path) -> Path:
    return path.with_suffix(".traces.json")


def _write_traces(outcome: Outcome, path: Path) -> TraceFacts | None:
    if not outcome.expansion.traces:
        return None
    place = _traces_path(path)
    write_atomically(place, json.dumps(outcome.expansion.traces, indent=1, ensure_ascii=False).encode() + b"\n")
    return TraceFacts(file=place.name, sha256=sha256(place))


def _recorded(path: Path, key: str) -> Record | None:
    """Return the record that is there; a damaged one is told of and counts as absent."""
    tidy(path)
    tidy(_run_path(path))
    tidy(_traces_path(path))
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


def _record(
    key: str,
    system: System,
    dataset: Dataset,
    outcome: Outcome,
    run: RunFacts | None,
    traces: TraceFacts | None,
) -> Record:
    scores = score(dataset.qrels, outcome.run)
    stages = stage_facts(system, outcome)
    llm, usage = total(stage.llm for stage in stages), total(stage.usage for stage in stages)
    timings = outcome.searched.timings
    by_encoders = sum(stage.seconds for stage in stages if stage.stage == "rerank" and not stage.llm)
    card = dataset.card
    return Record(
        key=key,
        system=system.name,
        settings=outcome.settings,
        dataset=DatasetFacts(
            name=dataset.name,
            fingerprint=dataset.fingerprint,
            corpus_fingerprint=dataset.corpus.fingerprint,
            queries=len(dataset.queries),
            documents=len(dataset.corpus),
            judged_queries=len(dataset.qrels),
            task=card.task if card else "",
            source=dataset.source,
        ),
        mean={str(measure): value for measure, value in scores.mean.items()},
        per_query={
            query: {str(measure): value for measure, value in values.items()}
            for query, values in scores.per_query.items()
        },
        run=run,
        traces=traces,
        stages=stages,
        failures=outcome.expansion.failures,
        failure_kinds=outcome.expansion.failure_kinds,
        llm=llm,
        llm_tokens=int(llm.get("prompt_tokens", 0) + llm.get("completion_tokens", 0)),
        usage=usage,
        cost_usd=usage.get("cost_usd", 0.0) + llm.get("cost_usd", 0.0),
        encoder_seconds=timings.get("encode", 0.0) + timings.get("encode_queries", 0.0) + by_encoders,
        seconds_per_query=sum(stage.seconds for stage in stages) / max(1, len(dataset.queries)),
        seeds=seeds(outcome.settings),
        timings=timings,
        versions=_versions(),
        created=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
    )


PACKAGES = (
    "numpy",
    "scipy",
    "pyarrow",
    "torch",
    "transformers",
    "sentence-transformers",
    "openvino",
    "openai",
    "xllamacpp",
    "vllm",
    "voyageai",
)


@cache
def _versions() -> dict[str, str]:
    """Return the versions of all that may have had a part in a number and is installed."""
    found = {"r2med": r2med.__version__, "python": platform.python_version()}
    for name in PACKAGES:
        with contextlib.suppress(metadata.PackageNotFoundError):
            found[name] = metadata.version(name)
    return found


def _slug(name: str) -> str:
    return re.sub(r"[^\w.+=-]+", "_", name).strip("_.") or "unnamed"
