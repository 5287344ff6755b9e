"""From what running a system gave to its record: scores, costs, versions."""

from __future__ import annotations

import contextlib
import datetime
import platform
from functools import cache
from importlib import metadata

import r2med
from r2med.data import Dataset
from r2med.measure import score
from r2med.results.record import DatasetFacts, Record, RunFacts, TraceFacts
from r2med.results.stages import seeds, stage_facts, total
from r2med.system import Outcome, System

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


def make_record(
    key: str,
    system: System,
    dataset: Dataset,
    outcome: Outcome,
    run: RunFacts | None,
    traces: TraceFacts | None,
) -> Record:
    """Return the record of a system on a dataset; `run` and `traces` are the files that were written beside it."""
    scores = score(dataset.qrels, outcome.run)
    stages = stage_facts(system, outcome)
    llm, usage = total(stage.llm for stage in stages), total(stage.usage for stage in stages)
    searched = outcome.searched
    timings = {"prepare": searched.prepared.seconds, "search": searched.cost.seconds}
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
        encoder_seconds=searched.prepared.encoder_seconds + searched.cost.encoder_seconds + by_encoders,
        seconds_per_query=sum(stage.seconds for stage in stages) / max(1, len(dataset.queries)),
        seeds=seeds(outcome.settings),
        timings=timings,
        versions=_versions(),
        created=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
    )


@cache
def _versions() -> dict[str, str]:
    """Return the versions of all that may have had a part in a number and is installed."""
    found = {"r2med": r2med.__version__, "python": platform.python_version()}
    for name in PACKAGES:
        with contextlib.suppress(metadata.PackageNotFoundError):
            found[name] = metadata.version(name)
    return found
