"""`evaluate(system, dataset)`: run, score, record; what is already there and sound is read back."""

from __future__ import annotations

import contextlib
import datetime
import logging
import platform
import re
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

import r2med
from r2med.data import Dataset, load
from r2med.errors import UserError
from r2med.measure import score
from r2med.results.record import FORMAT, DatasetFacts, Record, RunFacts
from r2med.retrieve import write_run
from r2med.store import Store, default_store, digest
from r2med.store.files import sha256, tidy
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
        store = store.starting_over()
    system = System.parse(system, store=store) if isinstance(system, str) else system
    dataset = dataset if isinstance(dataset, Dataset) else load(dataset, store)
    if not len(dataset.qrels):
        raise UserError(f"{dataset.name} has no judgements: nothing can be scored (r2med data check shows more)")
    key = record_key(system, dataset, k, store)
    path = record_path(Path(out), system, dataset, key) if out is not None else None
    if path is not None and not fresh and (found := _recorded(path, key)):
        return found
    outcome = system.run(dataset, store, k)
    run = None
    if path is not None:
        run_path = _run_path(path)
        write_run(outcome.run, run_path, tag=_slug(system.name))
        run = RunFacts(file=run_path.name, sha256=sha256(run_path), depth=k)
    record = _record(key, system, dataset, outcome, run)
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
        return path.is_file() and bool(_sound(path, key))
    except UserError:
        return False


def _run_path(path: Path) -> Path:
    return path.with_suffix(".trec.gz")


def _recorded(path: Path, key: str) -> Record | None:
    """Return the record that is there; a damaged one is told of and counts as absent."""
    tidy(path)
    tidy(_run_path(path))
    if not path.is_file():
        return None
    try:
        return _sound(path, key)
    except UserError as damage:
        log.warning("%s", damage)
        return None


def _sound(path: Path, key: str) -> Record:
    record = Record.read(path)
    if record.key != key or not record.run_is_sound(path.parent):
        raise UserError(f"{path} does not fit its run file: making both again")
    return record


def _record(key: str, system: System, dataset: Dataset, outcome: Outcome, run: RunFacts | None) -> Record:
    scores = score(dataset.qrels, outcome.run)
    llm = outcome.expansion.usage
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
        failures=outcome.expansion.failures,
        failure_kinds=outcome.expansion.failure_kinds,
        llm=llm,
        llm_tokens=int(llm.get("prompt_tokens", 0) + llm.get("completion_tokens", 0)),
        usage=outcome.usage,
        cost_usd=outcome.usage.get("cost_usd", 0.0) + llm.get("cost_usd", 0.0),
        seeds=_seeds(outcome.settings),
        timings=outcome.timings,
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


def _seeds(settings: dict[str, Any]) -> dict[str, int]:
    sampling = (settings.get("expansion") or {}).get("sampling") or {}
    return {"llm": sampling["seed"]} if sampling.get("seed") is not None else {}


def _slug(name: str) -> str:
    return re.sub(r"[^\w.+=-]+", "_", name).strip("_.") or "unnamed"
