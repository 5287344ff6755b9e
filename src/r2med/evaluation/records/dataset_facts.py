"""The facts about a dataset and its queries that a record contains, and the scores of a run on it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from r2med.data.dataset import Dataset
from r2med.data.runs.run import Run
from r2med.evaluation.measure.measures import DEFAULT_MEASURES, Measure
from r2med.evaluation.measure.scores import dataset_scores
from r2med.evaluation.records.record_facts import DatasetFacts, OverlayFacts, QueryFacts


def scored_facts(dataset: Dataset, run: Run, measures: Iterable[Measure | str] = DEFAULT_MEASURES) -> dict[str, Any]:
    """Return the fields of a record about its dataset and queries, and their scores."""
    scores = dataset_scores(dataset, run, measures)
    return {
        "dataset": dataset_facts(dataset),
        "queries": query_facts(dataset),
        "mean": {str(measure): value for measure, value in scores.mean.items()},
        "per_query": {
            query: {str(measure): value for measure, value in values.items()}
            for query, values in scores.per_query.items()
        },
    }


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
