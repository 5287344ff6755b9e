"""Export records in MTEB's format of results: results/ORG__MODEL/REVISION/TASK.json. This does not need mteb."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from shlex import quote
from statistics import fmean
from typing import Any

from r2med.data.dataset_cards import groups
from r2med.evaluation.records.collection import MAX_FAILURES, collect, given_records
from r2med.evaluation.records.public_values import public_value
from r2med.evaluation.records.record import Record
from r2med.evaluation.records.record_paths import slug
from r2med.evaluation.records.stored_records import StoredRecord, typed_name
from r2med.foundation.core.errors import UserError, unknown
from r2med.foundation.store.files import write_atomically
from r2med.models.encoders.weights import IN_FOLDER

VERSION = "2.26.24"
"""Release of mteb that defines this format."""

CUTOFFS = (1, 3, 5, 10, 20, 100, 1000)

UNKNOWN_REVISION = "no_revision_available"
"""MTEB's revision for a model or dataset without a known commit."""

FAMILIES = {"ndcg": "nDCG", "map": "MAP", "recall": "R", "precision": "P"}


def tasks() -> dict[str, str]:
    """Return the name of each of our datasets, with its task in MTEB."""
    return {name: f"R2MED{name.replace('-', '')}Retrieval" for name in groups()["R2MED"]}


def export_results(
    sources: str | Path | Sequence[str | Path],
    out: Path | str,
    results: Path | str = "results",
    max_failures: float = MAX_FAILURES,
) -> list[Path]:
    """Write records of files, folders or systems in the layout of MTEB's cache, and return the files of results.

    MTEB has one result of a model on a task, so the scores of several repeats are their means.
    Raises UserError if a record has no task in MTEB, lacks MTEB's measures, or would overwrite another record's file.
    """
    out = Path(out)
    kept = list(collect(given_records(sources), results, max_failures).cells.values())
    written = [(_folder(each.record), _task(each), each.record) for each in kept]
    systems: dict[Path, str] = {}
    for folder, task, record in written:
        other = systems.setdefault(folder / f"{task}.json", record.display_name)
        if other != record.display_name:
            raise UserError(
                f"{other} and {record.display_name} are one model to MTEB, {_model(record)[0]}: export one of them"
            )
    runs = [[run.record for run in each.repeats] for each in kept]
    contents = [_result(task, repeats) for (_, task, _), repeats in zip(written, runs, strict=True)]
    settings = [_settings(task, record, len(repeats)) for (_, task, record), repeats in zip(written, runs, strict=True)]
    for (folder, task, record), content in zip(written, contents, strict=True):
        _write(out / folder / f"{task}.json", content)
        _write(out / folder / "model_meta.json", _meta(record))
    for folder in dict.fromkeys(folder for folder, *_ in written):
        rows = [json.dumps(each) for (at, *_), each in zip(written, settings, strict=True) if at == folder]
        write_atomically(out / folder / "run_settings.jsonl", "".join(f"{row}\n" for row in rows).encode())
    return [out / folder / f"{task}.json" for folder, task, _ in written]


def _task(kept: StoredRecord) -> str:
    """Return the MTEB task of a record. Raises UserError if its dataset has no task."""
    known, name = tasks(), kept.record.dataset.name
    if name not in known:
        raise UserError(f"{kept.path}: {name} is not a task of MTEB, which has {', '.join(known)}")
    return known[name]


def dataset_of(task: str) -> str:
    """Return the name of our dataset for a task of MTEB. Raises UserError if the task is not one of this benchmark."""
    names = {task: name for name, task in tasks().items()}
    if task not in names:
        raise unknown("task of MTEB", task, names, "name the dataset with data (--data)")
    return names[task]


def _model(record: Record) -> tuple[str, str]:
    """Return name and revision: those of the weights if a system is a single model, otherwise those of r2med."""
    alone = not record.settings.get("expand") and not record.settings.get("rerank")
    retrieve = record.settings.get("retrieve") or {}
    document = retrieve.get("document") or {}
    if alone and "/" in str(document.get("model", "")):
        commit = "" if retrieve.get("weights") == IN_FOLDER else str(document.get("revision") or "")
        return document["model"], commit or UNKNOWN_REVISION
    return f"r2med/{slug(public_value(record.display_name))}", record.versions.get("r2med", UNKNOWN_REVISION)


def _folder(record: Record) -> Path:
    name, revision = _model(record)
    return Path("results", name.replace("/", "__"), slug(revision))


def _result(task: str, repeats: Sequence[Record]) -> dict[str, Any]:
    """Return the content of a file of results: the means over the repeats of a system."""
    of_each = [_scores(record) for record in repeats]
    scores = {name: _mean([each[name] for each in of_each]) for name in of_each[0]}
    whole = {**scores, "main_score": scores["ndcg_at_10"], "hf_subset": "default", "languages": ["eng-Latn"]}
    return {
        "dataset_revision": repeats[0].dataset.source.partition("@")[2],
        "task_name": task,
        "mteb_version": VERSION,
        "scores": {"test": [{**whole, "mteb_version": VERSION}]},
        "evaluation_time": _mean([record.cost.seconds for record in repeats]),
        "kg_co2_emissions": None,
    }


def _scores(record: Record) -> dict[str, float]:
    """Return MTEB's measures. Its means leave out queries without a relevant document."""
    judged = [values for query, values in record.per_query.items() if record.queries[query].positives]
    if missing := [f"nDCG@{k}" for k in CUTOFFS if f"nDCG@{k}" not in record.mean]:
        raise UserError(
            f"the record of {record.display_name} on {record.dataset.name} does not hold {missing[0]}: make it "
            f"again with r2med run {quote(record.system)} --data {quote(typed_name(record.dataset.name))} --fresh",
        )
    scores: dict[str, float] = {}
    for name, family in FAMILIES.items():
        scores |= {f"{name}_at_{k}": _mean([values[f"{family}@{k}"] for values in judged]) for k in CUTOFFS}
    for k in CUTOFFS:
        # The first relevant document is within the first k ranks if its reciprocal rank is at least 1/k.
        firsts = [values["MRR"] if values["MRR"] * k >= 1 - 1e-9 else 0.0 for values in judged]
        scores[f"mrr_at_{k}"] = _mean(firsts)
        scores[f"hit_rate_at_{k}"] = _mean([float(first > 0) for first in firsts])
    return {**scores, "accuracy": scores["recall_at_1"]}


def _mean(values: Sequence[float]) -> float:
    return round(fmean(values), 6) if values else 0.0


def _meta(record: Record) -> dict[str, Any]:
    name, revision = _model(record)
    unsaid = (
        *("loader", "release_date", "n_parameters", "memory_usage_mb", "max_tokens", "embed_dim", "license"),
        *("open_weights", "public_training_code", "public_training_data", "similarity_fn_name"),
        *("use_instructions", "training_datasets"),
    )
    return {
        "name": name,
        "revision": revision,
        "languages": ["eng-Latn"],
        **dict.fromkeys(unsaid),
        "framework": [],
        "modalities": ["text"],
    }


def _settings(task: str, record: Record, runs: int) -> dict[str, Any]:
    of_runs = {"scores": f"means over {runs} runs"} if runs > 1 else {}
    return {
        "task": task,
        "splits": ["test"],
        "version": {"mteb": None, **record.versions},
        "encode_kwargs": {"system": public_value(record.display_name), **of_runs},
        "subsets": ["default"],
    }


def _write(path: Path, content: Mapping[str, Any]) -> None:
    write_atomically(path, json.dumps(content, indent=2).encode() + b"\n")
