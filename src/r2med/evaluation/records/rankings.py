"""Read the rankings of records."""

from __future__ import annotations

from r2med.data.dataset import Dataset
from r2med.data.runs.trec import WrittenRun
from r2med.evaluation.measure.incomplete_labels import Lists
from r2med.evaluation.records.stored_records import StoredRecord

DEPTH = 100
"""Number of ranks that are read. Lower ranks do not change a measure at 10, unless nearly all of a list is unjudged."""


def ranked_lists(kept: StoredRecord, dataset: Dataset, depth: int = DEPTH) -> Lists | None:
    """Return the first documents of every judged query, best first; None if the record names no run file."""
    if (file := kept.run_file) is None:
        return None
    run = WrittenRun(file, [query.id for query in dataset.queries])
    return {query: [document for document, _ in run.top(query, depth)] for query in dataset.qrels}
