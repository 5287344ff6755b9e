"""Make the record of an evaluation: scores, costs, failures, versions and seeds."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from r2med.data.dataset import Dataset
from r2med.evaluation.measure import relevant_ranks
from r2med.evaluation.measure.dataset_scores import dataset_scores
from r2med.evaluation.records.dataset_facts import dataset_facts, query_facts
from r2med.evaluation.records.record import FileFacts, Record, StageFacts, declared_stages
from r2med.evaluation.running.lineage_facts import training_facts
from r2med.foundation.core.approximation import Approximation
from r2med.foundation.core.cost import Cost
from r2med.foundation.core.version import installed_versions, source_digest
from r2med.foundation.net.offline import is_offline
from r2med.foundation.text.plurals import counted
from r2med.models.llm.chat import repeat_seed
from r2med.systems.system import Outcome, System


def new_record(
    key: str,
    system: System,
    dataset: Dataset,
    outcome: Outcome,
    settings: dict[str, Any],
    approximate: Mapping[str, tuple[Approximation, ...]],
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
        stages=tuple(_stage_facts(system, outcome, dataset, approximate)),
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


def _stage_facts(
    system: System, outcome: Outcome, dataset: Dataset, approximate: Mapping[str, tuple[Approximation, ...]]
) -> Iterator[StageFacts]:
    """Yield the facts of every stage, in the order in which they ran."""
    expansion, searched = outcome.expansion, outcome.searched
    varying = iter([bool(each.varies) for each in system.main_stages])
    if system.expander is not None:
        yield StageFacts(
            stage="expand",
            varies=next(varying),
            name=str(system.expander),
            **_costs(expansion.cost),
            failures=expansion.failures,
            failure_kinds=dict(expansion.failure_kinds),
            failed=dict(expansion.failed),
            details={**expansion.counts, **({"cut_texts": expansion.cut_texts} if expansion.cut_texts else {})},
            approximate=approximate["expand"],
        )
    inside = searched.report
    yield StageFacts(
        stage="retrieve",
        varies=next(varying),
        name=str(system.retriever),
        **_costs(searched.cost),
        prepared=_bare(searched.prepared),
        failures=inside.failures,
        asked=inside.asked,
        failure_kinds=dict(inside.failure_kinds),
        failed=dict(inside.failed),
        repairs=dict(inside.repairs),
        details=dict(inside.counts),
        approximate=approximate["retrieve"],
        training=training_facts(system.bound_retriever, dataset),
        gold=relevant_ranks(dataset.qrels, outcome.run if not system.rerankers else searched.run),
    )
    rerankers = system.main_stages[len(system.main_stages) - len(system.rerankers) :]
    for stage, reranker, reranked in zip(system.rerankers, rerankers, outcome.reranked, strict=True):
        yield StageFacts(
            stage="rerank",
            varies=next(varying),
            name=str(stage),
            **_costs(reranked.cost),
            failures=reranked.failures,
            asked=reranked.asked,
            failure_kinds=reranked.failure_kinds,
            failed=reranked.failed,
            repairs=reranked.repairs,
            prompt=reranked.prompt,
            training=training_facts(reranker, dataset),
            gold=relevant_ranks(dataset.qrels, outcome.run if reranked is outcome.reranked[-1] else reranked.run),
        )


def _costs(cost: Cost) -> dict[str, Any]:
    quantiles = {"latency_p50": cost.latency(0.5), "latency_p95": cost.latency(0.95)}
    return {"cost": _bare(cost), **quantiles, "timing": _timing(cost)}


def _timing(cost: Cost) -> str:
    """Return how the seconds of a stage were measured."""
    if not cost.latencies:
        return "the mean of all queries, which were worked on together"
    if cost.calls:
        return f"{counted(len(cost.latencies), 'call')} of an LLM, when they were made"
    return f"{counted(len(cost.latencies), 'query', 'queries')} one at a time, after a warm-up"


def _bare(cost: Cost) -> Cost:
    """Return a cost without the seconds of single calls, because there may be thousands of them."""
    return replace(cost, latencies=())


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
