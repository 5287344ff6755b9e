"""Make the record of an evaluation: scores, costs, failures, versions and seeds."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping
from typing import Any

from r2med.data.dataset import Dataset
from r2med.evaluation.measure import relevant_ranks
from r2med.evaluation.measure.dataset_scores import dataset_scores
from r2med.evaluation.records.dataset_facts import dataset_facts, query_facts
from r2med.evaluation.records.record import Record, declared_stages
from r2med.evaluation.records.record_facts import FileFacts, StageFacts
from r2med.foundation.core.version import installed_versions, source_digest
from r2med.foundation.net.offline import is_offline
from r2med.models.llm.chat import repeat_seed
from r2med.systems.system import Outcome, System


def new_record(
    key: str,
    system: System,
    dataset: Dataset,
    outcome: Outcome,
    settings: dict[str, Any],
    lock: str = "",
    vector_versions: dict[str, list[str]] | None = None,
    name: str = "",
    **files: FileFacts | None,
) -> Record:
    """Return the record of a system on a dataset. `files` are the files beside it: run, traces and generated.

    `vector_versions` are those of the libraries that made its vectors, where these were stored with them. `name` is
    what tables call the system; empty for its own name.
    """
    scores = dataset_scores(dataset, outcome.run)
    return Record(
        key=key,
        system=system.name,
        settings=settings,
        dataset=dataset_facts(dataset),
        mean={str(measure): value for measure, value in scores.mean.items()},
        per_query={
            query: {str(measure): value for measure, value in values.items()}
            for query, values in scores.per_query.items()
        },
        queries=query_facts(dataset),
        stages=tuple(_stage_facts(system, outcome, dataset)),
        seeds=dict(seeds_of(settings)),
        versions=installed_versions(),
        vector_versions=vector_versions or {},
        source=source_digest(),
        created=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        offline=is_offline(),
        lock=lock,
        name=name,
        named=time_of_naming(),
        **files,
    )


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
            failures=expansion.failures,
            failure_kinds=dict(expansion.failure_kinds),
            failed=dict(expansion.failed),
            details={**expansion.counts, **({"cut_texts": expansion.cut_texts} if expansion.cut_texts else {})},
        )
    inside = searched.report
    yield StageFacts(
        stage="retrieve",
        varies=next(varying),
        name=str(system.retriever),
        cost=searched.cost,
        prepared=searched.prepared,
        failures=inside.failures,
        asked=inside.asked,
        failure_kinds=dict(inside.failure_kinds),
        failed=dict(inside.failed),
        repairs=dict(inside.repairs),
        details=dict(inside.counts),
        gold=relevant_ranks(dataset.qrels, outcome.run if not system.rerankers else searched.run),
    )
    for stage, reranked in zip(system.rerankers, outcome.reranked, strict=True):
        yield StageFacts(
            stage="rerank",
            varies=next(varying),
            name=str(stage),
            cost=reranked.cost,
            failures=reranked.failures,
            asked=reranked.asked,
            failure_kinds=reranked.failure_kinds,
            failed=reranked.failed,
            repairs=reranked.repairs,
            prompt=reranked.prompt,
            gold=relevant_ranks(dataset.qrels, outcome.run if reranked is outcome.reranked[-1] else reranked.run),
        )


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
