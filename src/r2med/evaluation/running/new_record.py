"""Run a system on a dataset and make its record: scores, costs, failures, versions, seeds, and the files beside it."""

from __future__ import annotations

import datetime
import json
import logging
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from r2med.data.dataset import Dataset
from r2med.data.runs import write_run
from r2med.evaluation.measure import relevant_ranks
from r2med.evaluation.records.dataset_facts import scored_facts
from r2med.evaluation.records.record import Record, declared_stages
from r2med.evaluation.records.record_facts import FileFacts, RunFacts, StageFacts
from r2med.evaluation.records.record_paths import files_beside, slug
from r2med.foundation.core.version import installed_versions, source_digest
from r2med.foundation.net.offline import is_offline
from r2med.foundation.store.files import sha256, write_atomically
from r2med.foundation.store.reads import differing, noted_reads
from r2med.foundation.text.unicode import to_unicode
from r2med.models.llm.chat import repeat_seed
from r2med.systems.expand.expansion import Expansion
from r2med.systems.rerank.reranking import Reranked
from r2med.systems.retrieve.retriever import SearchReport
from r2med.systems.system import Outcome, System

log = logging.getLogger("r2med")

_AGAIN = "fresh (--fresh)"


def new_record(
    key: str,
    system: System,
    dataset: Dataset,
    expansion: Expansion,
    settings: dict[str, Any],
    path: Path | None,
    lock: str = "",
    name: str = "",
) -> Record:
    """Run a system on a dataset and return the record. With its path, the files beside it are written.

    `lock` is the digest of a lock, and `name` is what tables call the system; empty for its own name.
    """
    with noted_reads() as reads:
        outcome = system.run(dataset, settings["k"], expansion)
    if others := differing(reads.versions):
        log.warning("%s: its stored vectors were made with %s; %s encodes again", system.name, others, _AGAIN)
    return Record(
        key=key,
        system=system.name,
        settings=settings,
        stages=tuple(_stage_facts(system, outcome, dataset)),
        seeds=dict(seeds_of(settings)),
        versions=installed_versions(),
        vector_versions=reads.versions,
        source=source_digest(),
        created=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        offline=is_offline(),
        lock=lock,
        name=name,
        named=time_of_naming(),
        **scored_facts(dataset, outcome.run),
        **(_written(outcome, path, system.name, settings["k"]) if path is not None else {}),
    )


def _written(outcome: Outcome, path: Path, system: str, depth: int) -> dict[str, FileFacts | None]:
    """Write the files beside a record, and return what the record says of them."""
    files = files_beside(path)
    write_run(outcome.run, files.run, slug(system))
    texts = [{"id": query, "texts": texts} for query, texts in outcome.generated.items()]
    return {
        "run": RunFacts(file=files.run.name, sha256=sha256(files.run), depth=depth),
        "traces": _write_lines([outcome.traces], files.traces) if outcome.traces else None,
        "generated": _write_lines(texts, files.generated) if texts else None,
    }


def _write_lines(values: Sequence[object], file: Path) -> FileFacts:
    """Write each value as one line of JSON."""
    lines = [json.dumps(value, ensure_ascii=False) for value in values]
    write_atomically(file, to_unicode("\n".join(lines)).encode() + b"\n")
    return FileFacts(file=file.name, sha256=sha256(file))


def time_of_naming() -> str:
    """Return the time in UTC, fine enough to order two runs within one second."""
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="microseconds")


def _stage_facts(system: System, outcome: Outcome, dataset: Dataset) -> Iterator[StageFacts]:
    """Yield the facts of every stage, in the order in which they ran."""
    expansion, searched = outcome.expansion, outcome.searched
    varying = iter([stage.varies(system.runtime) for stage in system.main_stages])
    if system.expander is not None:
        yield StageFacts(
            stage="expand",
            varies=next(varying),
            name=str(system.expander),
            cost=expansion.cost,
            details={**expansion.counts, **({"cut_texts": expansion.cut_texts} if expansion.cut_texts else {})},
            **_failures(expansion),
        )
    # The last ranking is that of the record, which may be cut.
    *before, _ = (searched.run, *(reranked.run for reranked in outcome.reranked))
    ranks = [relevant_ranks(dataset.qrels, run) for run in (*before, outcome.run)]
    yield StageFacts(
        stage="retrieve",
        varies=next(varying),
        name=str(system.retriever),
        cost=searched.cost,
        prepared=searched.prepared,
        details=dict(searched.report.counts),
        gold=ranks[0],
        **_failures(searched.report),
    )
    for stage, reranked, gold in zip(system.rerankers, outcome.reranked, ranks[1:], strict=True):
        yield StageFacts(
            stage="rerank",
            varies=next(varying),
            name=str(stage),
            cost=reranked.cost,
            prompt=reranked.prompt,
            gold=gold,
            **_failures(reranked),
        )


def _failures(report: Expansion | SearchReport | Reranked) -> dict[str, Any]:
    """Return what a stage reports of its failures. An expansion is asked once for each query and repairs nothing."""
    failures = {
        "failures": report.failures,
        "failure_kinds": dict(report.failure_kinds),
        "failed": dict(report.failed),
    }
    if isinstance(report, Expansion):
        return failures
    return {**failures, "asked": report.asked, "repairs": dict(report.repairs)}


def seeds_of(settings: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    """Yield the name of a stage and its seed in a repeat, for every seed in the settings of a system."""
    repeat = settings.get("repeat", 0)
    stages = [("expand", settings.get("expand") or {})]
    inside = [stage for stage in declared_stages(settings.get("retrieve")) if "llm" in stage]
    stages += [(f"retrieve {number}", stage) for number, stage in enumerate(inside, 1)]
    stages += [(f"rerank {number}", stage) for number, stage in enumerate(settings.get("rerank") or (), 1)]
    for name, stage in stages:
        sampling = stage.get("sampling") or {}
        if isinstance(sampling.get("seed"), int):
            yield f"{name} llm", repeat_seed(sampling["seed"], repeat)
        if isinstance(stage.get("seed"), int):
            yield name, repeat_seed(stage["seed"], repeat)
