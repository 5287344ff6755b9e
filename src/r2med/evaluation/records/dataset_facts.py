"""The facts about a dataset and its queries that a record contains."""

from __future__ import annotations

from dataclasses import asdict

from r2med.data.dataset import Dataset
from r2med.evaluation.records.record_facts import DatasetFacts, OverlayFacts, QueryFacts


def dataset_facts(dataset: Dataset) -> DatasetFacts:
    """Return the facts about a dataset that a record contains."""
    return DatasetFacts(
        name=dataset.name,
        fingerprint=dataset.fingerprint,
        corpus_fingerprint=dataset.corpus.fingerprint,
        queries=len(dataset.queries),
        documents=len(dataset.corpus),
        judged_queries=len(dataset.qrels),
        task=dataset.card.task if dataset.card else "",
        scenario=dataset.card.scenario if dataset.card else "",
        source=dataset.source,
        judges=dataset.card.judges if dataset.card else (),
        judge_test=dataset.card.judge_test if dataset.card else "",
        part=dataset.part,
        overlays=tuple(OverlayFacts(**asdict(overlay)) for overlay in dataset.overlays),
    )


def query_facts(dataset: Dataset) -> dict[str, QueryFacts]:
    """Return the facts about judged queries that a record contains."""
    return {
        query.id: QueryFacts(
            words=len(query.text.split()),
            positives=sum(grade > 0 for grade in dataset.qrels[query.id].values()),
            body_system=query.body_system,
        )
        for query in dataset.queries
        if query.id in dataset.qrels
    }
