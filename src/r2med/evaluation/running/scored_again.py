"""Score the run file of a record again, and compare the scores with those of the record."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

from r2med.data import Dataset
from r2med.data.runs import Run
from r2med.evaluation.measure import Measure, relevant_ranks
from r2med.evaluation.measure.dataset_scores import dataset_scores
from r2med.evaluation.records.dataset_facts import dataset_facts, query_facts
from r2med.evaluation.records.record import Record
from r2med.foundation.core.errors import UserError
from r2med.foundation.text.plurals import counted


def score_fault(record: Record, file: Path, dataset: Dataset) -> str:
    """Return the first difference between a record and its run on its dataset; empty if there is none."""
    try:
        run = Run.read(file, encoded=True)
    except UserError as error:
        return str(error)
    return next(_faults(record, run, dataset), "")


def _faults(record: Record, run: Run, dataset: Dataset) -> Iterator[str]:
    here = dataset_facts(dataset)
    stated = {"name": record.dataset.name, "source": record.dataset.source}
    if here.model_copy(update=stated) != record.dataset or query_facts(dataset) != record.queries:
        yield f"its facts about {dataset.name} are not those of this dataset"
        return
    ids = run.documents.ids(run.distinct()[0])
    if not {*run.queries} <= {query.id for query in dataset.queries} or (dataset.corpus.rows(ids) < 0).any():
        yield f"its run names queries or documents that {dataset.name} does not have"
        return
    if record.run is not None and int(run.found.max(initial=0)) > record.run.depth:
        yield f"its run has more than {counted(record.run.depth, 'document')} for a query"
    scores = dataset_scores(dataset, run, record.mean)
    if unfounded := [name for name in record.mean if Measure.parse(name) not in scores.values]:
        yield f"it states {unfounded[0]}, which needs labels that {dataset.name} does not have"
        return
    if scores.per_query.keys() != record.per_query.keys():
        yield "its scored queries are not the judged queries"
        return
    means = {str(measure): value for measure, value in scores.mean.items()}
    for name, stated_mean in record.mean.items():
        if not math.isclose(stated_mean, means[name], abs_tol=1e-9):
            yield f"its {name} is {stated_mean:.4f}, but its run gives {means[name]:.4f}"
    for query, values in scores.per_query.items():
        for measure, value in values.items():
            known = record.per_query[query].get(str(measure))
            if known is not None and not math.isclose(known, value, abs_tol=1e-9):
                yield f"its {measure} of query {query} is {known:.4f}, but its run gives {value:.4f}"
    if relevant_ranks(dataset.qrels, run) != record.gold:
        yield "the ranks of its relevant documents are not those of its run"
